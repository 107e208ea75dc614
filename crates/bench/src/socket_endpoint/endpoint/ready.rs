//! Which of several sockets have something: epoll(7), so that it costs no system call for each of them.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Lane;
use crate::Error;

/// Sockets that one look tells of.
pub(super) const AT_ONCE: usize = 64;

/// The sockets of an endpoint.
pub(super) struct Ready {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    /// Of the last look, those that are left.
    left: usize,
    /// How many there are.
    lanes: usize,
}

impl Ready {
    /// Watches all lanes.
    pub(super) fn new(lanes: &[Lane]) -> Result<Self, Error> {
        // SAFETY: the function has no preconditions.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(failed());
        }
        // SAFETY: the descriptor was just made, and nobody else owns it.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        for (index, lane) in lanes.iter().enumerate() {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: index as u64 };
            // SAFETY: both descriptors are open, and the event is readable.
            let added = unsafe {
                libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, lane.descriptor(), &raw mut event)
            };
            if added < 0 {
                return Err(failed());
            }
        }
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        Ok(Self { epoll, events, left: 0, lanes: lanes.len() })
    }

    /// Takes every lane for one that has something: there are no more than [`AT_ONCE`].
    pub(super) fn suspect_all(&mut self) {
        self.left = self.lanes.min(AT_ONCE);
        for (index, event) in self.events[..self.left].iter_mut().enumerate() {
            event.u64 = index as u64;
        }
    }

    /// The next lane that has something, until it is [done](Self::done).
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        self.left.checked_sub(1).map(|last| self.events[last].u64 as usize)
    }

    /// That lane has nothing any more.
    #[inline]
    pub(super) fn done(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Looks again, or where it sleeps, until there is something or a signal comes; whether there is something.
    pub(super) fn look(&mut self, sleeps: bool) -> Result<bool, Error> {
        let timeout = if sleeps { -1 } else { 0 };
        // SAFETY: the events are writable, and so many.
        let found = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), AT_ONCE as i32, timeout)
        };
        match usize::try_from(found) {
            Ok(found) => self.left = found,
            Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Err(failed()),
        }
        Ok(self.left > 0)
    }
}

fn failed() -> Error {
    Error::System { what: "watch sockets".to_owned(), cause: std::io::Error::last_os_error() }
}
