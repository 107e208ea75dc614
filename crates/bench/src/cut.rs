//! The early end of a point, after a signal to the coordinator: a pattern that can end early keeps
//! the messages until then.
//!
//! The thread that reads an agent's requests sets a flag. Patterns read it where they compare the
//! time with the end of the point, so that it costs a load of a cached line.

use std::sync::atomic::{AtomicBool, Ordering};

use measure::clock::{Clock, Ticks};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Asks the point of this process to end.
pub(crate) fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Forgets the request: another point begins.
pub(crate) fn clear() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Whether the point of this process has to end now.
#[inline]
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Whether a measurement that ends at a time stamp is over: at that time, or because it is cut.
#[inline]
pub(crate) fn is_over(now: Ticks, end: u64) -> bool {
    now.0 >= end || is_requested()
}

/// As [`is_over`], but does not read the clock where no time ends the measurement ([`u64::MAX`]).
#[inline]
pub(crate) fn is_over_at(clock: Clock, end: u64) -> bool {
    (end != u64::MAX && clock.now().0 >= end) || is_requested()
}
