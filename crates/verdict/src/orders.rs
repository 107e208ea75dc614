//! Orders of numbers: ranks, shuffles and the middle of sorted numbers.

use measure::random::Random;
use statrs::distribution::{ContinuousCDF, Normal};

/// Returns the rank of each number, from 0. Numbers that are equal get their ranks in a random
/// order: each rank is given once, as for numbers without ties.
pub(crate) fn ranked(numbers: &[f64], random: &mut Random) -> Vec<u32> {
    let tickets: Vec<u64> = numbers.iter().map(|_| random.bits()).collect();
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_unstable_by(|&a, &b| numbers[a].total_cmp(&numbers[b]).then(tickets[a].cmp(&tickets[b])));
    let mut ranks = vec![0; numbers.len()];
    for (rank, at) in (0..).zip(order) {
        ranks[at] = rank;
    }
    ranks
}

/// Shuffles in place (Fisher and Yates; Durstenfeld 1964).
pub(crate) fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for last in (1..all.len()).rev() {
        let chosen = ((u128::from(random.bits()) * (last as u128 + 1)) >> 64) as usize;
        all.swap(last, chosen);
    }
}

/// Returns the middle of sorted numbers, or the mean of the middle two: the estimate of Hodges and
/// Lehmann when the numbers are differences or Walsh averages.
pub(crate) fn middle(sorted: &[f64]) -> Option<f64> {
    let above = *sorted.get(sorted.len() / 2)?;
    let below = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(below, above))
}

/// Sorts numbers.
pub(crate) fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers
}

/// Returns the (k + 1)-th smallest and the (k + 1)-th largest of sorted numbers: the interval that
/// excludes 0 exactly if at most k of them lie on one side of 0. `None` if the two would cross.
pub(crate) fn inner(sorted: &[f64], k: usize) -> Option<[f64; 2]> {
    (2 * k < sorted.len()).then(|| [sorted[k], sorted[sorted.len() - 1 - k]])
}

/// Returns the largest k for which the probabilities of 0 to k add up to at most `tail`; `None` if
/// even that of 0 exceeds it.
pub(crate) fn largest_within(probabilities: &[f64], tail: f64) -> Option<usize> {
    let mut below = 0.0;
    // The slack is far above the rounding of a sum and far below any probability of use.
    let limit = tail * (1.0 + 1e-9);
    let within = probabilities.iter().take_while(|probability| {
        below += **probability;
        below <= limit
    });
    within.count().checked_sub(1)
}

/// Returns the same of whole numbers that are distributed normally, nearly, with a correction for
/// the steps between them.
pub(crate) fn largest_of_normal(mean: f64, variance: f64, tail: f64) -> Option<usize> {
    let most = Normal::new(mean, variance.sqrt()).ok()?.inverse_cdf(tail) - 0.5;
    (most >= 0.0).then_some(most as usize)
}
