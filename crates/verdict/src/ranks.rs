//! Differences of two independent samples: the test of Mann and Whitney (1947), and the shift of
//! Hodges and Lehmann (1963) with the interval of that test (Hollander, Wolfe and Chicken,
//! Nonparametric Statistical Methods, 3rd ed., sections 4.1 to 4.3).

use crate::orders::{largest_of_normal, largest_within, middle, sorted};

/// Pairs of numbers up to which the probabilities of all counts are computed; their time grows with
/// the square of the pairs. Beyond, the normal distribution of the same mean and deviation takes
/// their place, whose tails are the heavier ones.
const EXACT_MAX: usize = 10_000;

/// Returns all differences new - base, sorted.
#[must_use]
pub fn differences(base: &[f64], new: &[f64]) -> Vec<f64> {
    sorted(new.iter().flat_map(|new| base.iter().map(move |base| new - base)).collect())
}

/// Returns the shift of Hodges and Lehmann: the median of the sorted differences. `None` without
/// differences.
#[must_use]
pub fn shift(differences: &[f64]) -> Option<f64> {
    middle(differences)
}

/// Returns the largest k for which the count of Mann and Whitney is at most k with a probability of
/// at most `tail`, if both samples of these sizes are of one distribution. `None` if no count is so
/// improbable.
#[must_use]
pub fn critical(base: usize, new: usize, tail: f64) -> Option<usize> {
    let pairs = base * new;
    if pairs > EXACT_MAX {
        return largest_of_normal(pairs as f64 / 2.0, pairs as f64 * (base + new + 1) as f64 / 12.0, tail);
    }
    // Exchanged samples have the same counts. The memory for them grows with the second size.
    largest_within(&counts(base.max(new), base.min(new)), tail)
}

/// Returns the probability of each count from 0 to half of all pairs. The largest of all numbers is
/// one of `new` with the probability new / (base + new); it then exceeds all of `base`.
fn counts(base: usize, new: usize) -> Vec<f64> {
    let most = base * new / 2 + 1;
    // A row for each size of `new` up to this one, at the present size of `base`.
    let mut rows = vec![vec![0.0; most]; new + 1];
    rows.iter_mut().for_each(|row| row[0] = 1.0);
    for of_base in 1..=base {
        for of_new in 1..=new {
            let share = of_new as f64 / (of_base + of_new) as f64;
            for count in (0..most).rev() {
                let largest_is_new = count.checked_sub(of_base).map_or(0.0, |count| rows[of_new - 1][count]);
                rows[of_new][count] = share * largest_is_new + (1.0 - share) * rows[of_new][count];
            }
        }
    }
    rows.swap_remove(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::inner;

    /// The largest statistic for which `scipy.stats.mannwhitneyu(new, base, alternative="less",
    /// method="exact").pvalue` is at most `tail` (scipy 1.17.1).
    #[test]
    fn critical_counts_are_scipys() {
        let scipys = [
            (5, 5, 0.025, 2),
            (5, 5, 0.005, 0),
            (8, 8, 0.025, 13),
            (10, 10, 0.025, 23),
            (10, 10, 0.005, 16),
            (7, 12, 0.025, 18),
            (20, 20, 0.025, 127),
            (20, 20, 0.005, 105),
        ];
        for (base, new, tail, k) in scipys {
            assert_eq!(critical(base, new, tail), Some(k), "{base} and {new} at {tail}");
        }
        assert_eq!(critical(3, 3, 0.025), None);
        assert_eq!(critical(5, 5, 0.025 / 33.0), None, "252 orders cannot decide 33 points");
    }

    /// The exact counts, from the same recurrence in numpy.
    #[test]
    fn critical_counts_of_many_runs_are_nearly_exact_and_never_larger() {
        let numpys = [(101, 101, 0.025, 4286), (101, 101, 0.025 / 100.0, 3663), (20, 600, 0.025, 4458)];
        for (base, new, tail, exact) in numpys {
            let found = critical(base, new, tail).unwrap();
            assert!(found <= exact && found as f64 > 0.99 * exact as f64, "{base} and {new}: {found}");
        }
    }

    /// Each order of the numbers 1 to n is one set of places for `new`.
    #[test]
    fn probabilities_are_those_of_all_orders() {
        for (base, new) in [(1, 1), (2, 3), (5, 4), (6, 6)] {
            let total = base + new;
            let mut found = vec![0.0; base * new / 2 + 1];
            let mut orders = 0.0;
            for places in 0_u32..1 << total {
                if places.count_ones() as usize != new {
                    continue;
                }
                orders += 1.0;
                let exceeded = |place: usize| (0..place).filter(|below| places >> below & 1 == 0).count();
                let count: usize = (0..total).filter(|place| places >> place & 1 == 1).map(exceeded).sum();
                if let Some(found) = found.get_mut(count) {
                    *found += 1.0;
                }
            }
            for (expected, got) in found.iter().zip(counts(base, new)) {
                assert!(
                    (expected / orders - got).abs() < 1e-12,
                    "{base} and {new}: {expected} of {orders}, {got}"
                );
            }
        }
    }

    #[test]
    fn the_interval_excludes_zero_exactly_if_the_test_does() {
        let base = [1.0, 2.5, 3.0, 4.2, 5.1];
        let new = [4.0, 5.5, 6.1, 7.3, 2.9];
        let all = differences(&base, &new);
        assert_eq!(all.len(), 25);
        let count = all.iter().filter(|difference| **difference <= 0.0).count();
        assert_eq!(count, 5, "4.0 below two, 2.9 below three, 4.2 and 5.1 among them");
        assert!(inner(&all, count).unwrap()[0] > 0.0);
        assert!(inner(&all, count - 1).unwrap()[0] < 0.0);
        assert_eq!(inner(&all, 13), None);
        assert_eq!((shift(&[]), shift(&[1.0, 2.0]), shift(&[1.0, 2.0, 9.0])), (None, Some(1.5), Some(2.0)));
    }
}
