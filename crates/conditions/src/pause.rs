//! Waiting.

use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::poll;

/// Sleeps for a time.
pub(crate) fn pause(time: Duration) {
    // A signal may shorten the sleep: callers check their condition again.
    let _ = poll(&mut [], Some(&Deadline::after(time).timespec()));
}
