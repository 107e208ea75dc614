//! Which rounds count: those in which the machine was stable, where there are enough of them to tell ways apart.

use super::{Candidate, ROUNDS_MIN};

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

/// How many rounds of an experiment are to be measured again: as many as those lack that the machine was stable in for both, of
/// the two ways that have fewest, to be `rounds`.
pub fn lacking(candidates: &[Candidate], experiment: &str, rounds: usize) -> usize {
    let stable = |candidate: &Candidate| -> Vec<u32> {
        let keys = candidate.rounds.keys().filter(|key| key.0 == experiment);
        keys.filter(|key| !candidate.unstable.contains(*key)).map(|key| key.1).collect()
    };
    // What cannot be compared lacks nothing.
    let is_in = |candidate: &&Candidate| {
        candidate.not_measured.is_none() && candidate.median(Some(experiment)).is_some()
    };
    let all: Vec<Vec<u32>> = candidates.iter().filter(is_in).map(stable).collect();
    let common = |a: &Vec<u32>, b: &Vec<u32>| a.iter().filter(|round| b.contains(round)).count();
    let fewest = all.iter().flat_map(|a| all.iter().map(move |b| common(a, b))).min();
    fewest.map_or(0, |fewest| rounds.saturating_sub(fewest))
}
