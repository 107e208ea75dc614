//! Count, sum and sum of squares, exact for any 2^64 samples of 64 bits.

use super::wide::Wide;

/// Exact sums of a set of samples. The variance is `(n * sum x^2 - (sum x)^2) / (n * (n - 1))`, a
/// formula that is useless in floating point and exact in integers. With n and x below 2^64, the
/// squares add up to less than 2^192 and both products are below 2^256, which the sums here hold.
/// Only the division and the root round.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Moments {
    count: u64,
    sum: u128,
    squares: Wide,
}

impl Moments {
    /// Adds a sample.
    #[inline]
    pub fn add(&mut self, sample: u64) {
        self.count += 1;
        self.sum += u128::from(sample);
        self.squares.add_assign(u128::from(sample) * u128::from(sample));
    }

    /// Adds the samples of another set.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares + other.squares;
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the samples.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Arithmetic mean; `None` without a sample. The whole part and the rest are divided
    /// separately, so that the mean of equal samples is that sample.
    pub fn mean(&self) -> Option<f64> {
        let count = u128::from(self.count);
        let rest = self.sum.checked_rem(count)?;
        Some((self.sum / count) as f64 + rest as f64 / count as f64)
    }

    /// Sample standard deviation, with divisor n - 1; `None` below two samples.
    pub fn stddev(&self) -> Option<f64> {
        let pairs = u128::from(self.count) * u128::from(self.count.checked_sub(1)?);
        let numerator = self.squares.times(self.count) - Wide::product(self.sum, self.sum);
        (pairs > 0).then(|| (numerator.to_f64() / pairs as f64).sqrt())
    }
}

impl FromIterator<u64> for Moments {
    fn from_iter<I: IntoIterator<Item = u64>>(samples: I) -> Self {
        let mut moments = Self::default();
        samples.into_iter().for_each(|sample| moments.add(sample));
        moments
    }
}
