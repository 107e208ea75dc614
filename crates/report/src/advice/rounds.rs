//! The number of rounds to measure again because the machine was unstable.

use super::candidate::Candidate;

/// The number of rounds of an experiment to measure again. Of the two configurations with the
/// fewest stable rounds, it is the number that they lack to have `rounds` rounds in which the
/// machine was stable for both.
pub fn lacking(candidates: &[Candidate], experiment: &str, rounds: usize) -> usize {
    let stable = |candidate: &Candidate| -> Vec<u32> {
        let keys = candidate.rounds.keys().filter(|key| key.0 == experiment);
        keys.filter(|key| !candidate.unstable.contains(*key)).map(|key| key.1).collect()
    };
    // What cannot be compared needs no rounds.
    let is_in = |candidate: &&Candidate| {
        candidate.not_measured.is_none() && candidate.median(Some(experiment)).is_some()
    };
    let all: Vec<Vec<u32>> = candidates.iter().filter(is_in).map(stable).collect();
    let common = |a: &Vec<u32>, b: &Vec<u32>| a.iter().filter(|round| b.contains(round)).count();
    let fewest = all.iter().flat_map(|a| all.iter().map(move |b| common(a, b))).min();
    fewest.map_or(0, |fewest| rounds.saturating_sub(fewest))
}
