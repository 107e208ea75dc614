//! Waiting.

use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::poll;

/// Waits.
pub(crate) fn pause(time: Duration) {
    // A signal makes it shorter, and what is waited for is looked at again.
    let _ = poll(&mut [], Some(&Deadline::after(time).timespec()));
}
