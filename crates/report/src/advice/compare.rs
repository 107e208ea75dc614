//! Whether two ways differ by more than the error.

use super::{Candidate, WORTH};
use crate::grid::median;

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

/// Compares a way with another; `None` where no round has both.
pub fn compare(way: &Candidate, other: &Candidate) -> Option<Comparison> {
    let both = way.rounds.iter().filter_map(|(key, value)| Some((*value, *other.rounds.get(key)?)));
    let (ours, theirs): (Vec<f64>, Vec<f64>) = both.unzip();
    let (value_ns, other_ns) = (median(ours.clone())?, median(theirs.clone())?);
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
        verdict,
    })
}

/// Level of the one-sided test.
const LEVEL: f64 = 0.05;
/// Its normal quantile.
const LEVEL_Z: f64 = 1.645;
/// Above this many pairs the statistic is as good as normal, and the exact distribution long.
const PAIRS_EXACT_MAX: usize = 400;

/// Whether values are below others by the rank-sum test.
pub(super) fn is_below(low: &[f64], high: &[f64]) -> bool {
    let pairs = low.len() * high.len();
    if pairs == 0 {
        return false;
    }
    let against = |low: f64, high: f64| match low.total_cmp(&high) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 1.0,
    };
    // Pairs that speak against it: the statistic U.
    let u: f64 = low.iter().flat_map(|low| high.iter().map(move |high| against(*low, *high))).sum();
    if pairs > PAIRS_EXACT_MAX {
        let (mean, count) = (pairs as f64 / 2.0, (low.len() + high.len() + 1) as f64);
        return u <= mean - LEVEL_Z * (pairs as f64 * count / 12.0).sqrt();
    }
    chance(low.len(), high.len(), u.ceil() as usize) <= LEVEL
}

/// How likely U is at most this where both are drawn from the same: ways to order them by U, those below added up.
fn chance(n: usize, m: usize, u: usize) -> f64 {
    // ways[j][k]: orders of i of the one and j of the other with U = k; the largest of all is of one or of the other.
    let mut ways = vec![vec![0.0; n * m + 1]; m + 1];
    ways.iter_mut().for_each(|row| row[0] = 1.0);
    for _ in 0..n {
        for j in 1..=m {
            // From above: those below are of one fewer yet.
            for k in (0..=n * m).rev() {
                // Of the one: it is above all j of the other.
                let before = if k >= j { ways[j][k - j] } else { 0.0 };
                ways[j][k] = before + ways[j - 1][k];
            }
        }
    }
    let all: f64 = ways[m].iter().sum();
    ways[m].iter().take(u + 1).sum::<f64>() / all
}
