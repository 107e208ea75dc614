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
    fds: Vec<PollFd<'a>>,
    deadline: Deadline,
    interrupt: Option<&'a Interrupt>,
) -> Result<bool, Error> {
    Ok(ready(fds, deadline, interrupt)?.contains(&true))
}

/// Waits as [`wait`] does. Returns for each descriptor whether it is ready.
pub(super) fn ready<'a>(
    mut fds: Vec<PollFd<'a>>,
    deadline: Deadline,
    interrupt: Option<&'a Interrupt>,
) -> Result<Vec<bool>, Error> {
    let given = fds.len();
    let mut ready = vec![false; given];
    fds.extend(interrupt.map(|interrupt| PollFd::new(interrupt, PollFlags::IN)));
    if interrupt.and_then(Interrupt::received).is_none() {
        match poll(&mut fds, Some(&deadline.timespec())) {
            Ok(_) => ready = fds[..given].iter().map(|fd| !fd.revents().is_empty()).collect(),
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
