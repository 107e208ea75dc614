//! Moments at which tests kill processes.

use std::time::Duration;

/// A generator of moments: xorshift with a fixed seed.
pub(crate) struct Moments(pub(crate) u64);

impl Moments {
    /// Returns a time from 0 to `max`.
    pub(crate) fn next(&mut self, max: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        max.mul_f64((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }
}
