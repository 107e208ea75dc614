//! How long an answer may take before its message seems to be lost.

use std::time::Duration;

use measure::clock::{Clock, Ticks};

/// How long nothing comes where a message must have been lost, over what loses some: the least of TCP (`TCP_RTO_MIN`).
pub(super) const LOST_AFTER: Duration = Duration::from_millis(200);

/// When what seems to be lost is asked for again, in ticks.
pub(super) struct Patience {
    pub(super) lost_after: u64,
    /// When it was asked again last.
    pub(super) asked_at: Ticks,
}

impl Patience {
    pub(super) fn new(clock: Clock) -> Self {
        Self { lost_after: clock.ticks(LOST_AFTER), asked_at: clock.now() }
    }
}
