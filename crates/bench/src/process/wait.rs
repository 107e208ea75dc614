//! The one wait of the control connection: for descriptors, a signal or a deadline, whichever comes
//! first.

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::interrupt::Interrupt;
use crate::Error;

/// Waits until a descriptor is ready or the deadline has passed. Returns whether one is ready.
///
/// # Errors
///
/// [`Error::Interrupted`] once a signal has arrived.
pub(super) fn wait<'a>(
    mut fds: Vec<PollFd<'a>>,
    deadline: Deadline,
    interrupt: Option<&'a Interrupt>,
) -> Result<bool, Error> {
    let mut ready = false;
    fds.extend(interrupt.map(|interrupt| PollFd::new(interrupt, PollFlags::IN)));
    if interrupt.and_then(Interrupt::received).is_none() {
        match poll(&mut fds, Some(&deadline.timespec())) {
            Ok(count) => ready = count > 0,
            Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(Error::System { what: "wait for messages".to_owned(), cause: errno.into() });
            }
        }
    }
    match interrupt.and_then(Interrupt::received) {
        Some(signal) => Err(Error::Interrupted { signal: signal.to_owned() }),
        None => Ok(ready),
    }
}
