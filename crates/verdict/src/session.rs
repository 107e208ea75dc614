//! The floor of a comparison of two sessions: what one session differs from the next although
//! nothing was changed, from a history of sessions.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::ranks;
use crate::regime::choose_ln;

/// The fewest sessions of a history.
pub const LEAST: usize = 5;

/// Returns half the width of the interval of a difference between two sessions that differ in
/// nothing: t rms, where rms is the root mean square of the differences from each session of the
/// history to the next, and t is the 1 - `tail` quantile of Student's distribution with as many
/// degrees of freedom as there are differences. `history` holds a number of each session (its
/// median), in the order of time; the session that is compared is its last. `None` for fewer than
/// [`LEAST`] differences.
#[must_use]
pub fn floor(history: &[f64], tail: f64) -> Option<f64> {
    let differences = history.len().checked_sub(1).filter(|differences| *differences >= LEAST)? as f64;
    let squares: f64 = history.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let student = StudentsT::new(0.0, 1.0, differences).ok()?;
    Some(student.inverse_cdf(1.0 - tail) * (squares / differences).sqrt())
}

/// Returns how many of the differences from each session of a history to the next are at least as
/// large as a difference, and how many there are.
#[must_use]
pub fn as_large(history: &[f64], difference: f64) -> [usize; 2] {
    let is_as_large = |pair: &&[f64]| (pair[1] - pair[0]).abs() >= difference.abs();
    [history.windows(2).filter(is_as_large).count(), history.len().saturating_sub(1)]
}

/// The probability below which an order of runs is not random.
const ALPHA: f64 = 0.05;

/// Whether the runs of two sides, in the order of time, alternate as often as in a random order:
/// the runs test of Wald and Wolfowitz (1940) against too few stretches of one side. Sides that
/// were measured one after the other fail it from four runs a side on.
///
/// Neither side may be measured later than the other (test of Mann and Whitney, 1947): otherwise,
/// drift alone makes the sides differ.
#[must_use]
pub fn is_mixed(is_new: &[bool]) -> bool {
    let new = is_new.iter().filter(|new| **new).count();
    let base = is_new.len() - new;
    if new == 0 || base == 0 {
        return false;
    }
    let stretches = is_new.chunk_by(|a, b| a == b).count();
    // Logarithms: the orders of 515 runs a side are more than an f64 can hold.
    let total = choose_ln((base + new) as u64, new as u64);
    // Stretches of the sides alternate, so their numbers differ by at most one.
    let share = |r: usize| {
        let [less, more] = [r / 2, r.div_ceil(2)];
        let of = |base_r, new_r| Some(stretches_ln(base, base_r)? + stretches_ln(new, new_r)?);
        let ways = [of(less, more), of(more, less)];
        ways.into_iter().flatten().map(|ways| (ways - total).exp()).sum::<f64>()
    };
    (2..=stretches).map(share).sum::<f64>() > ALPHA && times_agree(is_new, base, new)
}

/// Whether neither side is measured later than the other. `base` and `new` are their numbers of
/// runs.
fn times_agree(is_new: &[bool], base: usize, new: usize) -> bool {
    // The number of pairs in which the run of the base comes before the run of the new side.
    let mut before = 0;
    let mut pairs = 0;
    for is_new in is_new {
        if *is_new { pairs += before } else { before += 1 }
    }
    let smaller = pairs.min(base * new - pairs);
    ranks::critical(base, new, ALPHA / 2.0).is_none_or(|critical| smaller > critical)
}

/// The logarithm of the ways to cut `n` runs into `r` stretches; `None`: there is none.
fn stretches_ln(n: usize, r: usize) -> Option<f64> {
    (r > 0 && r <= n).then(|| choose_ln((n - 1) as u64, (r - 1) as u64))
}

#[cfg(test)]
mod tests {
    /// `scipy.stats.t.ppf(1 - 0.025 / m, 5) * sqrt(mean(diff(h) ** 2))`.
    #[test]
    fn the_floor_is_students() {
        let history = [0.0, 0.01, -0.02, 0.0, 0.03, 0.01];
        for (tail, floor) in FLOORS {
            let found = super::floor(&history, tail).unwrap();
            assert!((found / floor - 1.0).abs() < 1e-9, "{found}, not {floor}");
        }
        assert_eq!(super::floor(&history[1..], 0.025), None, "four differences");
        assert_eq!(super::floor(&[], 0.025), None);
    }

    #[test]
    fn differences_of_sessions_that_are_as_large_are_counted() {
        let history = [0.0, 0.02, 0.05, 0.04];
        assert_eq!(super::as_large(&history, -0.02), [2, 3]);
        assert_eq!((super::as_large(&history, 0.1), super::as_large(&[0.3], 0.1)), ([0, 3], [0, 0]));
    }

    /// By counting all orders of the same sides.
    #[test]
    fn orders_with_few_stretches_are_not_mixed() {
        for (base, new) in [(5, 5), (4, 6), (3, 3)] {
            let orders: Vec<Vec<bool>> = (0_u32..1 << (base + new))
                .filter(|bits| bits.count_ones() == new)
                .map(|bits| (0..base + new).map(|at| bits >> at & 1 == 1).collect())
                .collect();
            let stretches = |order: &[bool]| order.chunk_by(|a, b| a == b).count();
            for order in &orders {
                let few = orders.iter().filter(|other| stretches(other) <= stretches(order)).count();
                let is_random = few as f64 / orders.len() as f64 > 0.05;
                let sooner = |order: &[bool]| -> usize {
                    let places = || order.iter().enumerate();
                    let of = |side| places().filter(move |(_, new)| **new == side).map(|(at, _)| at);
                    let pairs =
                        of(false).map(|base| of(true).filter(|new| *new > base).count()).sum::<usize>();
                    pairs.min((base * new) as usize - pairs)
                };
                let apart = orders.iter().filter(|other| sooner(other) <= sooner(order)).count();
                let is_even = apart as f64 / orders.len() as f64 > 0.05;
                assert_eq!(super::is_mixed(order), is_random && is_even, "{order:?}");
            }
        }
        assert!(!super::is_mixed(&[false, false]) && !super::is_mixed(&[]));
        assert!(super::is_mixed(&[false, true, true, false, true, false]));
        // More orders than the largest number.
        let mut random = measure::random::Random(5);
        let many: Vec<bool> = (0..2000).map(|_| random.fraction() < 0.5).collect();
        assert!(super::is_mixed(&many));
        assert!(!super::is_mixed(&[[false; 600], [true; 600]].concat()));
    }

    const FLOORS: [(f64, f64); 2] =
        [(0.025, 0.059_734_923_836_896_416), (0.025 / 33.0, 0.145_692_619_560_540_66)];
}
