//! The confidence interval of a median from order statistics.

use statrs::distribution::{Binomial, DiscreteCDF};

/// The ranks, from 1, of the two samples that bound the median of the samples' distribution with at
/// least 95 % confidence, whatever that distribution is. The number of samples below the median is
/// binomial(n, 1/2), so the interval from rank l to rank n + 1 - l misses it with probability
/// 2 P(B < l). l is the largest rank for which that is at most 5 % (Conover, Practical
/// Nonparametric Statistics, 3rd ed., section 3.2; Hahn, Meeker and Escobar, Statistical Intervals,
/// 2nd ed., section 5.2).
///
/// The interval holds for independent samples. The messages of one run are not independent, so it
/// shows how well the median of this run is known and nothing about the next run: for that see
/// [`super::spread`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MedianInterval {
    /// Rank of the lower bound.
    pub low: u64,
    /// Rank of the upper bound.
    pub high: u64,
}

impl MedianInterval {
    /// The interval for `count` samples; `None` below 6, where even the smallest and the largest
    /// sample bound the median with less than 95 % confidence.
    pub fn of(count: u64) -> Option<Self> {
        let low = if count <= EXACT_MAX { exact(count) } else { approximate(count) };
        (low >= 1).then(|| Self { low, high: count + 1 - low })
    }
}

/// The smallest k with P(B <= k) >= 2.5 % is the largest rank l with P(B < l) < 2.5 %. (No P(B < l)
/// is 2.5 % exactly: it is a multiple of 2^-n, and 1/40 is not.)
fn exact(count: u64) -> u64 {
    Binomial::new(0.5, count).map_or(0, |below| below.inverse_cdf(TAIL))
}

/// The normal approximation with continuity correction: P(B <= l - 1) = Phi((l - 1/2 - n/2) /
/// (sqrt(n) / 2)).
fn approximate(count: u64) -> u64 {
    let n = count as f64;
    (n / 2.0 + 0.5 - NORMAL_97_5 * n.sqrt() / 2.0).floor() as u64
}

/// Half of the probability that the interval misses the median.
const TAIL: f64 = 0.025;
/// The 97.5th percentile of the standard normal distribution.
pub const NORMAL_97_5: f64 = 1.959_963_984_540_054;
/// Above this count the normal approximation is within a rank of the exact interval, which is then
/// some 2000 ranks wide.
const EXACT_MAX: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approximation_is_within_a_rank() {
        for count in (6..20_000).step_by(97).chain((EXACT_MAX - 1000..EXACT_MAX).step_by(250)) {
            assert!(exact(count).abs_diff(approximate(count)) <= 1, "{count} samples");
        }
        let low = |count| MedianInterval::of(count).unwrap().low;
        assert!(
            low(EXACT_MAX + 1).abs_diff(low(EXACT_MAX)) <= 1,
            "a jump where the approximation takes over"
        );
        assert_eq!(MedianInterval::of(1 << 40).map(|ranks| ranks.low + ranks.high), Some((1 << 40) + 1));
    }
}
