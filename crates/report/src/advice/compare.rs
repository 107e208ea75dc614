//! Whether two configurations differ by more than the error.

use super::candidate::Candidate;
use super::counted::{Counted, counted};
use crate::series_table::median;

/// A difference of less than this share of the smaller value does not count: one start of a program
/// differs as much from the next.
pub const WORTH: f64 = 0.01;
/// One configuration compared with another, in the rounds in which both were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of the rounds, in ns.
    pub value_ns: f64,
    /// Smallest and largest round, in ns.
    pub spread_ns: [f64; 2],
    /// The difference to the other configuration in the same round, in ns: the Hodges-Lehmann
    /// estimate over the rounds.
    pub more_ns: f64,
    /// The interval of that difference which belongs to the test of the verdict: its ends are as
    /// likely to be wrong as the verdict, 5 % each. `None` for fewer than five rounds.
    pub interval_ns: Option<[f64; 2]>,
    /// The difference as a share of the other median.
    pub more_share: f64,
    /// Rounds of each configuration.
    pub rounds: usize,
    /// Rounds in which the machine was unstable for one of the two; if there are any, the verdict
    /// is not decided.
    pub unstable: usize,
    /// The verdict.
    pub verdict: Verdict,
}

/// The relation of one configuration to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is below by more than the error.
    Better,
    /// Neither is below the other by more than the error.
    Equal,
    /// It is above by more than the error.
    Worse,
}

/// Compares two configurations, in the rounds that count for both; `None` where no round measured
/// both.
pub fn compare(way: &Candidate, other: &Candidate) -> Option<Comparison> {
    let is_stable = |key| !way.unstable.contains(key) && !other.unstable.contains(key);
    let both = way.rounds.iter().filter_map(|(key, value)| {
        let pair = (*value, *other.rounds.get(key)?);
        Some((pair, is_stable(key)))
    });
    let Counted { rounds: both, unstable } = counted(both);
    let (ours, theirs): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    let value_ns = median(ours.clone())?;
    let other_ns = median(theirs.clone())?;
    let differences: Vec<f64> = ours.iter().zip(&theirs).map(|(our, their)| our - their).collect();
    let (more_ns, interval_ns) = paired(&differences)?;
    let is_too_small = more_ns.abs() < WORTH * value_ns.min(other_ns) || more_ns.abs() < step(&ours, &theirs);
    let verdict = if is_too_small {
        Verdict::Equal
    } else if more_ns < 0.0 && is_below(&ours, &theirs) {
        Verdict::Better
    } else if more_ns > 0.0 && is_below(&theirs, &ours) {
        Verdict::Worse
    } else {
        Verdict::Equal
    };
    let least = ours.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = ours.iter().copied().fold(0.0, f64::max);
    let rounds = ours.len();
    Some(Comparison {
        value_ns,
        spread_ns: [least, largest],
        more_ns,
        interval_ns,
        more_share: if other_ns > 0.0 { more_ns / other_ns } else { 0.0 },
        rounds,
        unstable,
        verdict,
    })
}

/// The smallest difference between values, in ns: the step of the clock shows in it, because all
/// values are times of messages. Smaller differences have no meaning.
fn step(ours: &[f64], theirs: &[f64]) -> f64 {
    let mut all: Vec<f64> = ours.iter().chain(theirs).copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let steps = all.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    steps.reduce(f64::min).unwrap_or(0.0)
}

/// The Hodges-Lehmann estimate of paired differences, which is the median of the means of all pairs
/// of differences, and the interval that belongs to the signed-rank test (Hollander and Wolfe,
/// Nonparametric Statistical Methods, sections 3.2 and 3.3).
fn paired(differences: &[f64]) -> Option<(f64, Option<[f64; 2]>)> {
    let starts = differences.iter().enumerate();
    let mut means: Vec<f64> = starts
        .flat_map(|(index, one)| differences[index..].iter().map(move |other| (one + other) / 2.0))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let estimate = median(means.clone())?;
    let ranks: Vec<usize> = (1..=differences.len()).map(|rank| 2 * rank).collect();
    let cut = (0..means.len() / 2).take_while(|cut| chance(&ranks, 2 * cut) <= LEVEL).last();
    Some((estimate, cut.map(|cut| [means[cut], means[means.len() - 1 - cut]])))
}

/// Level of the one-sided test.
const LEVEL: f64 = 0.05;

/// Whether the first of each pair is below the second, by the signed-rank test on the logarithms of
/// their ratios. A pair without a difference does not count.
pub(super) fn is_below(low: &[f64], high: &[f64]) -> bool {
    let ratios = low.iter().zip(high).map(|(low, high)| (low / high).ln());
    let mut ratios: Vec<f64> = ratios.filter(|ratio| !ratio.is_nan() && *ratio != 0.0).collect();
    ratios.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Twice the rank each, so that equal ratios, which share the mean of their ranks, have whole
    // numbers.
    let rank = |ratio: &f64| {
        let below = ratios.partition_point(|other| other.abs() < ratio.abs());
        let until = ratios.partition_point(|other| other.abs() <= ratio.abs());
        below + until + 1
    };
    let ranks: Vec<usize> = ratios.iter().map(rank).collect();
    let against = ratios.iter().zip(&ranks).filter(|(ratio, _)| **ratio > 0.0).map(|(_, rank)| rank).sum();
    chance(&ranks, against) <= LEVEL
}

/// The probability that the ranks against the hypothesis add up to at most this, if each sign is
/// equally likely.
fn chance(ranks: &[usize], most: usize) -> f64 {
    let mut chances = vec![0.0; most + 1];
    chances[0] = 1.0;
    for rank in ranks {
        for sum in (0..=most).rev() {
            let before = if sum >= *rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = (chances[sum] + before) / 2.0;
        }
    }
    chances.iter().sum()
}
