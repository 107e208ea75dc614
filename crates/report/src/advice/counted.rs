//! Which rounds count: those in which the machine was stable, where there are enough of them to
//! tell ways apart.

/// Fewest rounds that tell two ways apart: to be below in each of five is an accident in one of 32
/// cases, of four in 16.
pub const ROUNDS_MIN: usize = 5;
/// Rounds that count.
#[derive(Debug)]
pub(super) struct Counted<T> {
    /// What is known of them.
    pub(super) rounds: Vec<T>,
    /// How many of them should not be trusted: some only where too few others are there.
    pub(super) unstable: usize,
}

/// Of rounds, each with whether it was stable, those that count.
pub(super) fn counted<T>(rounds: impl Iterator<Item = (T, bool)>) -> Counted<T> {
    let (stable, unstable): (Vec<_>, Vec<_>) = rounds.partition(|(_, is_stable)| *is_stable);
    let is_enough = stable.len() >= ROUNDS_MIN;
    let instead = if is_enough { Vec::new() } else { unstable };
    let unstable = instead.len();
    Counted { rounds: stable.into_iter().chain(instead).map(|(round, _)| round).collect(), unstable }
}
