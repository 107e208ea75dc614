//! Finds the sockets that have data by epoll(7), without a system call for each socket.

use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::Lane;
use crate::Error;

/// The most sockets that one check reports.
pub(super) const AT_ONCE: usize = 64;

/// The sockets of an endpoint.
pub(super) struct Ready {
    epoll: OwnedFd,
    /// One more than [`AT_ONCE`], for a lane that is suspected.
    events: Vec<Event>,
    /// The sockets of the last check that are left.
    left: usize,
    /// The number of lanes.
    lanes: usize,
}

impl Ready {
    /// Watches all lanes.
    pub(super) fn new(lanes: &[Lane]) -> Result<Self, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        for (index, lane) in lanes.iter().enumerate() {
            let data = EventData::new_u64(index as u64);
            epoll::add(&epoll, lane.borrowed(), data, EventFlags::IN).map_err(failed)?;
        }
        let events = vec![Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; AT_ONCE + 1];
        Ok(Self { epoll, events, left: 0, lanes: lanes.len() })
    }

    /// Treats every lane as ready, up to [`AT_ONCE`].
    pub(super) fn suspect_all(&mut self) {
        self.left = self.lanes.min(AT_ONCE);
        for (index, event) in self.events[..self.left].iter_mut().enumerate() {
            event.data = EventData::new_u64(index as u64);
        }
    }

    /// Treats a lane as ready: it may hold messages that the kernel no longer reports.
    pub(super) fn suspect(&mut self, lane: usize) {
        let lane = lane as u64;
        if self.events[..self.left].iter().all(|event| event.data.u64() != lane) {
            self.events[self.left].data = EventData::new_u64(lane);
            self.left += 1;
        }
    }

    /// Returns the next lane that is ready, until it is [done](Self::done).
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        self.left.checked_sub(1).map(|last| self.events[last].data.u64() as usize)
    }

    /// Notes that this lane has no more data.
    #[inline]
    pub(super) fn done(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Checks again; with `sleeps`, waits until a lane is ready or a signal comes. Returns whether
    /// a lane is ready.
    pub(super) fn look(&mut self, sleeps: bool) -> Result<bool, Error> {
        let at_once = Timespec::default();
        match epoll::wait(
            &self.epoll,
            &mut self.events[..AT_ONCE],
            if sleeps { None } else { Some(&at_once) },
        ) {
            Ok(found) => self.left = found,
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(self.left > 0)
    }
}

fn failed(error: Errno) -> Error {
    Error::System { what: "watch sockets".to_owned(), cause: error.into() }
}
