//! The end of a wait. Measured times use a [`Clock`](super::Clock) instead.

use std::time::Duration;

use rustix::event::Timespec;

use super::monotonic::monotonic_ns;

/// An instant of `CLOCK_MONOTONIC` that a wait must not pass.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    end_ns: u64,
    timeout: Duration,
}

impl Deadline {
    /// The end of a wait that starts now; longer waits than a century end after a century.
    pub fn after(timeout: Duration) -> Self {
        let timeout = timeout.min(CENTURY);
        Self { end_ns: monotonic_ns() + ns(timeout), timeout }
    }

    /// The same deadline, later by `more`.
    pub fn and(self, more: Duration) -> Self {
        let more = more.min(CENTURY);
        Self { end_ns: self.end_ns.saturating_add(ns(more)), timeout: self.timeout.saturating_add(more) }
    }

    /// The deadline that ends first.
    pub fn earlier(self, other: Self) -> Self {
        if other.end_ns < self.end_ns { other } else { self }
    }

    /// The time that is left.
    pub fn remaining(self) -> Duration {
        Duration::from_nanos(self.end_ns.saturating_sub(monotonic_ns()))
    }

    /// The time that has passed since the start, and after the end that of the whole wait.
    pub fn elapsed(self) -> Duration {
        self.timeout.saturating_sub(self.remaining())
    }

    /// The time that is left, as poll takes it.
    pub fn timespec(self) -> Timespec {
        Timespec::try_from(self.remaining()).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
    }

    /// Whether no time is left.
    pub fn is_over(self) -> bool {
        self.remaining().is_zero()
    }

    /// The whole time from start to end, in seconds.
    pub fn timeout_s(self) -> f64 {
        self.timeout.as_secs_f64()
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_over_when_its_time_has_passed_and_not_before() {
        let long = Deadline::after(Duration::from_secs(3600));
        assert!(!long.is_over());
        assert!((3500..=3600).contains(&long.remaining().as_secs()) && long.timespec().tv_sec <= 3600);
        let short = Deadline::after(Duration::ZERO);
        assert!(short.is_over() && short.remaining().is_zero());
        assert!(long.earlier(short).is_over() && short.earlier(long).is_over());
        let more = short.and(Duration::from_secs(3600));
        assert!(!more.is_over());
        assert_eq!(more.timeout_s(), 3600.0);
        assert!(long.elapsed() < Duration::from_secs(100) && short.elapsed().is_zero());
        assert!(Deadline { end_ns: 0, timeout: Duration::from_secs(5) }.elapsed() == Duration::from_secs(5));
    }

    #[test]
    fn no_time_is_too_long() {
        let forever = Deadline::after(Duration::MAX).and(Duration::MAX).and(Duration::MAX);
        assert!(!forever.is_over() && forever.remaining() > CENTURY);
        assert!(forever.timespec().tv_sec > 0);
    }
}
