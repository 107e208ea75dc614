//! Whether two ways differ by more than the error.

use super::candidate::Candidate;
use super::counted::{Counted, counted};
use crate::series_table::median;

/// Less than this share of the smaller value is no difference: it is what one start of a program
/// differs from the next.
pub const WORTH: f64 = 0.01;
/// One way beside another, in the rounds that both were measured in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of the rounds, in ns.
    pub value_ns: f64,
    /// Least and largest round, in ns.
    pub spread_ns: [f64; 2],
    /// How much more that is than the other's median, in ns.
    pub more_ns: f64,
    /// The same as a share of the other's.
    pub more_share: f64,
    /// Rounds of each.
    pub rounds: usize,
    /// Those of them in which the machine was unstable for one of the two; then the verdict should
    /// not be trusted.
    pub unstable: usize,
    /// What follows.
    pub verdict: Verdict,
}

/// How one way is to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is below by more than the error.
    Better,
    /// Neither is below the other by more than the error.
    Equal,
    /// It is above by more than the error.
    Worse,
}

/// Compares a way with another, in the rounds that count for both; `None` where no round has both.
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
    let more_ns = value_ns - other_ns;
    let verdict = if more_ns.abs() < WORTH * value_ns.min(other_ns) {
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
        more_share: if other_ns > 0.0 { more_ns / other_ns } else { 0.0 },
        rounds,
        unstable,
        verdict,
    })
}

/// Level of the one-sided test.
const LEVEL: f64 = 0.05;

/// Whether the first of each pair is below the second, by the signed-rank test on the logarithms of
/// their ratios. A pair without a difference says nothing.
pub(super) fn is_below(low: &[f64], high: &[f64]) -> bool {
    let ratios = low.iter().zip(high).map(|(low, high)| (low / high).ln());
    let mut ratios: Vec<f64> = ratios.filter(|ratio| !ratio.is_nan() && *ratio != 0.0).collect();
    ratios.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Twice the rank each, so that those of equal ratios, which share the mean of theirs, are
    // whole.
    let rank = |ratio: &f64| {
        let below = ratios.partition_point(|other| other.abs() < ratio.abs());
        let until = ratios.partition_point(|other| other.abs() <= ratio.abs());
        below + until + 1
    };
    let ranks: Vec<usize> = ratios.iter().map(rank).collect();
    let against = ratios.iter().zip(&ranks).filter(|(ratio, _)| **ratio > 0.0).map(|(_, rank)| rank).sum();
    chance(&ranks, against) <= LEVEL
}

/// How likely the ranks that speak against it add up to at most this where each is as likely to do
/// so as not.
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
