//! The rounds that count: those in which the machine was stable, if they are enough to distinguish
//! configurations.

/// The smallest number of rounds that distinguishes two configurations: one is below the other by
/// chance in all of five rounds in one of 32 cases, in all of four in one of 16.
pub const ROUNDS_MIN: usize = 5;
/// Rounds that count.
#[derive(Debug)]
pub(super) struct Counted<T> {
    /// The rounds.
    pub(super) rounds: Vec<T>,
    /// How many of them are unstable; 0 where enough others are stable.
    pub(super) unstable: usize,
}

/// Selects the rounds that count, from rounds with a flag for stable ones.
pub(super) fn counted<T>(rounds: impl Iterator<Item = (T, bool)>) -> Counted<T> {
    let (stable, unstable): (Vec<_>, Vec<_>) = rounds.partition(|(_, is_stable)| *is_stable);
    let is_enough = stable.len() >= ROUNDS_MIN;
    let instead = if is_enough { Vec::new() } else { unstable };
    let unstable = instead.len();
    Counted { rounds: stable.into_iter().chain(instead).map(|(round, _)| round).collect(), unstable }
}
