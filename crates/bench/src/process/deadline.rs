//! The control plane's clock: the one place of `process` that asks what time it is. Nothing measured depends on it.

use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// An instant that a wait must not pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    end: Instant,
    timeout: Duration,
}

impl Deadline {
    pub(super) fn after(timeout: Duration) -> Self {
        // A century is as good as for ever, and adding it cannot overflow the clock.
        let timeout = timeout.min(CENTURY);
        Self { end: Instant::now() + timeout, timeout }
    }

    /// The same wait, and then some.
    pub(super) fn and(self, more: Duration) -> Self {
        let more = more.min(CENTURY);
        Self { end: self.end + more, timeout: self.timeout + more }
    }

    pub(super) fn earlier(self, other: Self) -> Self {
        if other.end < self.end { other } else { self }
    }

    pub(super) fn remaining(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// The remaining time as poll takes it.
    pub(super) fn timespec(self) -> Timespec {
        let remaining = self.remaining();
        Timespec {
            tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: remaining.subsec_nanos().into(),
        }
    }

    pub(super) fn is_over(self) -> bool {
        self.remaining().is_zero()
    }

    /// The whole time that there was.
    pub(super) fn timeout_s(self) -> f64 {
        self.timeout.as_secs_f64()
    }
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn elapsed_ns(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
