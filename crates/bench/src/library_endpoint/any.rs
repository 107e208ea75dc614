//! A socket of any message library.

use std::ffi::CString;
use std::time::Duration;

#[cfg(feature = "iceoryx2")]
use super::iceoryx::Iceoryx;
use super::nanomsg::Nanomsg;
use super::nng::Nng;
use super::socket::{Messages, Role};
use super::zeromq::Zeromq;
use crate::point::Carrier;
use crate::topology::PartSpec;

/// One socket.
pub(super) enum Socket {
    #[cfg(feature = "iceoryx2")]
    Iceoryx2(Box<Iceoryx>),
    Nanomsg(Nanomsg),
    Nng(Nng),
    Zeromq(Zeromq),
}

/// Runs the same expression on a socket of any library.
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
    /// Opens a socket of the point's library. The library's threads may run on any CPU; the calling
    /// thread may not.
    pub(super) fn open(spec: &PartSpec, role: Role) -> Result<Self, String> {
        let pinned = rustix::thread::sched_getaffinity(None);
        // Threads inherit the affinity.
        let every = conditions::every_cpu();
        let is_free = pinned.is_ok() && rustix::thread::sched_setaffinity(None, &every).is_ok();
        let opened = match spec.message.endpoint {
            #[cfg(feature = "iceoryx2")]
            Carrier::Iceoryx2 => Iceoryx::open(spec, role).map(|one| Self::Iceoryx2(Box::new(one))),
            #[cfg(not(feature = "iceoryx2"))]
            Carrier::Iceoryx2 => {
                Err("rdmascope was built without iceoryx2: build it with --features iceoryx2".to_owned())
            }
            Carrier::Nanomsg => Nanomsg::open(role).map(Self::Nanomsg),
            Carrier::Nng => Nng::open(role).map(Self::Nng),
            _ => Zeromq::open(role).map(Self::Zeromq),
        };
        if let (true, Ok(pinned)) = (is_free, pinned) {
            rustix::thread::sched_setaffinity(None, &pinned)
                .map_err(|error| format!("cannot pin this thread to its CPU again: {error}"))?;
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
