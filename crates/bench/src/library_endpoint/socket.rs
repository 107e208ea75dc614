//! What sockets of all message libraries do.

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::endpoint::limits::timespec;

/// The messages that a queue holds: as many as the ring of shared memory. NNG allows no more.
pub(super) const QUEUE: i32 = 8192;
/// The size of a queue in bytes, for libraries that count bytes.
pub(super) const QUEUE_BYTES: i32 = 1 << 20;

/// The role of a socket towards its peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// It sends and receives.
    Pair,
    /// It sends to all subscribers.
    Publisher,
    /// It receives all messages.
    Subscriber,
}

/// The operations of a library's socket. The reasons of failures are the library's own texts.
pub(super) trait Messages {
    /// Listens at an address such as `tcp://127.0.0.1:7000`; with iceoryx2, at the name of a
    /// service.
    fn bind(&mut self, url: &CString) -> Result<(), String>;

    /// Connects to an address, and keeps trying in the background.
    fn connect(&mut self, url: &CString) -> Result<(), String>;

    /// Sends a message, which is copied; returns `false` if there is no room.
    fn send(&mut self, message: &[u8]) -> Result<bool, String>;

    /// Receives the next message, cut to the length of `message`; returns the full length.
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String>;

    /// Sleeps until a message has arrived, or for `limit`.
    fn wait(&mut self, limit: Duration) -> Result<(), String>;

    /// Returns the version that the library reports.
    fn version(&self) -> String;
}

/// Sleeps until a descriptor is readable, or for `limit`.
pub(super) fn readable(descriptor: BorrowedFd<'_>, limit: Duration) -> Result<(), String> {
    let mut one = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    match poll(&mut one, Some(&timespec(limit))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
