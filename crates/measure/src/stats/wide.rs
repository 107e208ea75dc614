//! The part of 256-bit arithmetic that sums of squares need.

/// An unsigned integer of 256 bits.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Wide {
    // Compared first.
    high: u128,
    low: u128,
}

impl Wide {
    /// The product of two integers of 128 bits, by halves.
    pub(super) fn product(a: u128, b: u128) -> Self {
        let halves = |x: u128| (x >> 64, x & u128::from(u64::MAX));
        let (a1, a0) = halves(a);
        let (b1, b0) = halves(b);
        let mut wide = Self { high: a1 * b1, low: a0 * b0 };
        for middle in [a1 * b0, a0 * b1] {
            let (high, low) = halves(middle);
            wide = wide + Self { high, low: low << 64 };
        }
        wide
    }

    /// This times an integer of 64 bits. The product has to fit.
    pub(super) fn times(self, factor: u64) -> Self {
        let high = Self::product(self.high, u128::from(factor));
        debug_assert_eq!(high.high, 0, "the product has more than 256 bits");
        Self::product(self.low, u128::from(factor)) + Self { high: high.low, low: 0 }
    }

    /// Adds an integer of 128 bits.
    #[inline]
    pub(super) fn add_assign(&mut self, value: u128) {
        let (low, carry) = self.low.overflowing_add(value);
        self.low = low;
        self.high += u128::from(carry);
    }

    /// The nearest floating-point number, up to one more rounding.
    pub(super) fn to_f64(self) -> f64 {
        self.high as f64 * 2f64.powi(128) + self.low as f64
    }
}

impl std::ops::Add for Wide {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.add_assign(other.low);
        self.high += other.high;
        self
    }
}

impl std::ops::Sub for Wide {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Self { high: self.high - other.high - u128::from(borrow), low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_the_largest_integers_are_exact() {
        // (2^128 - 1)^2 = 2^256 - 2^129 + 1
        let square = Wide::product(u128::MAX, u128::MAX);
        assert_eq!(square, Wide { high: u128::MAX - 1, low: 1 });
        // (2^192 - 1) (2^64 - 1) = 2^256 - 2^192 - 2^64 + 1
        let product = Wide { high: u128::from(u64::MAX), low: u128::MAX }.times(u64::MAX);
        let expected = Wide { high: u128::MAX - (1 << 64), low: u128::MAX - u128::from(u64::MAX) + 1 };
        assert_eq!(product, expected);
    }

    #[test]
    fn carries_and_borrows_cross_the_halves() {
        let mut wide = Wide { high: 0, low: u128::MAX };
        wide.add_assign(1);
        assert_eq!(wide, Wide { high: 1, low: 0 });
        assert_eq!(wide - Wide { high: 0, low: 1 }, Wide { high: 0, low: u128::MAX });
        assert_eq!(wide.to_f64(), 2f64.powi(128));
    }
}
