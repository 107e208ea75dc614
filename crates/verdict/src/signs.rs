//! Differences of pairs: the signed ranks of Wilcoxon (1945), and the estimate of Hodges and
//! Lehmann with the interval of that test from Walsh averages (Hollander, Wolfe and Chicken,
//! Nonparametric Statistical Methods, 3rd ed., sections 3.1 to 3.3).

use crate::orders::{largest_of_normal, largest_within, middle, sorted};

/// Pairs up to which the probabilities of all sums are computed; their time grows with the third
/// power of the pairs. Beyond, the normal distribution of the same mean and deviation takes their
/// place, whose tails are the heavier ones.
const EXACT_MAX: usize = 200;

/// Returns the Walsh averages of the pairs' differences, sorted: the means of each two differences,
/// each with itself too.
#[must_use]
pub fn averages(differences: &[f64]) -> Vec<f64> {
    let with_later = |first: usize| differences[first..].iter().map(move |other| (first, *other));
    let pairs = (0..differences.len()).flat_map(with_later);
    sorted(pairs.map(|(first, other)| f64::midpoint(differences[first], other)).collect())
}

/// Returns the estimate of Hodges and Lehmann: the median of the sorted Walsh averages. `None`
/// without averages.
#[must_use]
pub fn shift(averages: &[f64]) -> Option<f64> {
    middle(averages)
}

/// Returns the largest k for which the sum of the ranks of one sign is at most k with a probability
/// of at most `tail`, if each difference has either sign with equal probability. `None` if no sum
/// is so improbable.
#[must_use]
pub fn critical(pairs: usize, tail: f64) -> Option<usize> {
    if pairs > EXACT_MAX {
        let n = pairs as f64;
        return largest_of_normal(n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0, tail);
    }
    largest_within(&sums(pairs), tail)
}

/// Returns the probability of each sum of ranks from 0 to half of the largest sum.
fn sums(pairs: usize) -> Vec<f64> {
    let most = pairs * (pairs + 1) / 4 + 1;
    let mut sums = vec![0.0; most];
    sums[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..most).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |sum| sums[sum]);
            sums[sum] = f64::midpoint(sums[sum], with);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::inner;

    /// From `numpy.convolve` of the two signs of each rank; `scipy.stats.wilcoxon(method="exact")`
    /// gives p = 0.0273 for a sum of 6 of 10 pairs.
    #[test]
    fn critical_sums_are_numpys() {
        for (n, tail, k) in [(6, 0.025, 0), (8, 0.025, 3), (10, 0.025, 8), (16, 0.025, 29), (20, 0.005, 37)] {
            assert_eq!(critical(n, tail), Some(k), "{n} pairs at {tail}");
        }
        assert_eq!(critical(5, 0.025), None, "32 signs");
        let p: f64 = 2.0 * sums(10)[..=6].iter().sum::<f64>();
        assert!((p - 0.027_343_75).abs() < 1e-12, "{p}");
    }

    /// The exact sums, from `numpy.convolve`.
    #[test]
    fn critical_sums_of_many_pairs_are_nearly_exact_and_never_larger() {
        for (pairs, tail, exact) in [(201, 0.025, 8532), (201, 0.025 / 100.0, 7295), (400, 0.025, 35_566)] {
            let found = critical(pairs, tail).unwrap();
            assert!(found <= exact && found as f64 > 0.99 * exact as f64, "{pairs} pairs: {found}");
        }
    }

    #[test]
    fn probabilities_are_those_of_all_signs() {
        for pairs in [1, 4, 9] {
            let mut found = vec![0.0; pairs * (pairs + 1) / 4 + 1];
            for signs in 0_u32..1 << pairs {
                let sum: usize = (0..pairs).filter(|pair| signs >> pair & 1 == 1).map(|pair| pair + 1).sum();
                if let Some(found) = found.get_mut(sum) {
                    *found += 1.0 / f64::from(1 << pairs);
                }
            }
            for (expected, got) in found.iter().zip(sums(pairs)) {
                assert!((expected - got).abs() < 1e-12, "{pairs} pairs: {expected}, {got}");
            }
        }
    }

    #[test]
    fn averages_count_the_ranks_of_one_sign() {
        let differences = [0.5, -0.2, 1.1, 0.7, -0.6];
        let averages = averages(&differences);
        assert_eq!(averages.len(), 15);
        // The ranks of |d| are 2, 1, 5, 4, 3: the negative ones add up to 1 + 3.
        let negative = averages.iter().filter(|average| **average <= 0.0).count();
        assert_eq!(negative, 4);
        assert!(inner(&averages, 4).unwrap()[0] > 0.0 && inner(&averages, 3).unwrap()[0] < 0.0);
    }
}
