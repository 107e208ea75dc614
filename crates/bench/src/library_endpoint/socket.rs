//! A socket of any of the libraries.

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

#[cfg(feature = "iceoryx2")]
use super::iceoryx::Iceoryx;
use super::nanomsg::Nanomsg;
use super::nng::Nng;
use super::zeromq::Zeromq;
use crate::endpoint::limits::timespec;
use crate::point::Carrier;
use crate::topology::PartSpec;

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

/// One socket.
pub(super) enum Socket {
    #[cfg(feature = "iceoryx2")]
    Iceoryx2(Box<Iceoryx>),
    Nanomsg(Nanomsg),
    Nng(Nng),
    Zeromq(Zeromq),
}

/// Does the same with a socket of any library.
macro_rules! any {
    ($socket:expr, $one:ident => $done:expr) => {
        match $socket {
            #[cfg(feature = "iceoryx2")]
            Socket::Iceoryx2($one) => $done,
            Socket::Nanomsg($one) => $done,
            Socket::Nng($one) => $done,
            Socket::Zeromq($one) => $done,
        }
    };
}

impl Socket {
    /// Opens one of a point's library. Its threads may run where they like, which the thread that calls may not.
    pub(super) fn open(spec: &PartSpec, role: Role) -> Result<Self, String> {
        let pinned = rustix::thread::sched_getaffinity(None);
        let mut all = rustix::thread::CpuSet::new();
        (0..rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        // What is not allowed is no CPU of the process, and left out by the kernel. Threads inherit this.
        let is_free = pinned.is_ok() && rustix::thread::sched_setaffinity(None, &all).is_ok();
        let opened = match spec.message.endpoint {
            #[cfg(feature = "iceoryx2")]
            Carrier::Iceoryx2 => Iceoryx::open(spec, role).map(|one| Self::Iceoryx2(Box::new(one))),
            #[cfg(not(feature = "iceoryx2"))]
            Carrier::Iceoryx2 => {
                Err("this program is built without iceoryx2: build it with --features iceoryx2".to_owned())
            }
            Carrier::Nanomsg => Nanomsg::open(role).map(Self::Nanomsg),
            Carrier::Nng => Nng::open(role).map(Self::Nng),
            _ => Zeromq::open(role).map(Self::Zeromq),
        };
        if let (true, Ok(pinned)) = (is_free, pinned) {
            rustix::thread::sched_setaffinity(None, &pinned)
                .map_err(|error| format!("this thread cannot go back to its CPU: {error}"))?;
        }
        opened
    }
}

impl Messages for Socket {
    fn bind(&mut self, url: &CString) -> Result<(), String> {
        any!(self, one => one.bind(url))
    }

    fn connect(&mut self, url: &CString) -> Result<(), String> {
        any!(self, one => one.connect(url))
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<bool, String> {
        any!(self, one => one.send(message))
    }

    #[inline]
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String> {
        any!(self, one => one.receive(message))
    }

    fn wait(&mut self, limit: Duration) -> Result<(), String> {
        any!(self, one => one.wait(limit))
    }

    fn version(&self) -> String {
        any!(self, one => one.version())
    }
}

/// Sleeps until a descriptor can be read, or for a time.
pub(super) fn readable(descriptor: BorrowedFd<'_>, limit: Duration) -> Result<(), String> {
    let mut one = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    match poll(&mut one, Some(&timespec(limit))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
