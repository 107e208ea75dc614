//! What a socket of any of the libraries does.

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::endpoint::limits::timespec;

/// Messages that a queue holds: as many as shared memory's ring. NNG has no longer ones.
pub(super) const QUEUE: i32 = 8192;
/// The same in bytes, where they are counted.
pub(super) const QUEUE_BYTES: i32 = 1 << 20;

/// What a socket is to the one at the other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// It sends and receives.
    Pair,
    /// It sends to whoever has subscribed.
    Publisher,
    /// It receives all.
    Subscriber,
}

/// What a library's socket does. Reasons are in its own words.
pub(super) trait Messages {
    /// Listens at a place such as `tcp://127.0.0.1:7000`; of iceoryx2, the name of a service.
    fn bind(&mut self, url: &CString) -> Result<(), String>;

    /// Goes on trying to reach a place.
    fn connect(&mut self, url: &CString) -> Result<(), String>;

    /// Hands over a message, which is copied; `false` if there is no room.
    fn send(&mut self, message: &[u8]) -> Result<bool, String>;

    /// Takes the next message that has come, as far as there is room for it; gives how long it is.
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String>;

    /// Sleeps until a message has come, or for a time.
    fn wait(&mut self, limit: Duration) -> Result<(), String>;

    /// What the library says that it is.
    fn version(&self) -> String;
}

/// Sleeps until a descriptor can be read, or for a time.
pub(super) fn readable(descriptor: BorrowedFd<'_>, limit: Duration) -> Result<(), String> {
    let mut one = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    match poll(&mut one, Some(&timespec(limit))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
