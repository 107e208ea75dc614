//! Sleeps until one of several sockets is ready: poll(2) over a list that is reused, because a
//! sender of a stream sleeps often.

use std::io::{Error as IoError, ErrorKind};

use super::Lane;
use crate::Error;

/// The event that ended a sleep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Woken {
    Socket,
    Signal,
    Time,
}

/// The sockets of an endpoint.
#[derive(Default)]
pub(super) struct Watch(Vec<libc::pollfd>);

impl Watch {
    /// Creates a list for `lanes` lanes.
    pub(super) fn new(lanes: usize) -> Self {
        Self(Vec::with_capacity(lanes))
    }

    /// Sleeps until a lane has a message or room, as `wanted` selects for each lane by its number,
    /// or for `limit_ms`.
    pub(super) fn sleep(
        &mut self,
        lanes: &[Lane],
        limit_ms: Option<u16>,
        wanted: impl Fn(usize, &Lane) -> (bool, bool),
    ) -> Result<Woken, Error> {
        self.0.clear();
        self.0.extend(lanes.iter().enumerate().map(|(index, lane)| {
            let (message, room) = wanted(index, lane);
            // The return of lent memory is reported as an error, without a request.
            let asks_room = room && !lane.awaits_lent();
            let events = if message { libc::POLLIN } else { 0 } | if asks_room { libc::POLLOUT } else { 0 };
            // poll(2) ignores a negative descriptor.
            let fd = if message || room { lane.descriptor() } else { -1 };
            libc::pollfd { fd, events, revents: 0 }
        }));
        if self.0.iter().all(|socket| socket.fd < 0) {
            // No event would ever end the sleep.
            return Ok(Woken::Socket);
        }
        let limit_ms = limit_ms.map_or(-1, i32::from);
        // SAFETY: the list is writable and has this length.
        match unsafe { libc::poll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, limit_ms) } {
            0 => Ok(Woken::Time),
            1.. => Ok(Woken::Socket),
            _ => match IoError::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => Ok(Woken::Signal),
                cause => Err(Error::System { what: "wait for a socket".to_owned(), cause }),
            },
        }
    }

    /// Returns whether the last sleep found room on a lane.
    pub(super) fn has_room(&self, lane: usize) -> bool {
        self.0.get(lane).is_some_and(|socket| socket.fd >= 0 && socket.revents & !libc::POLLIN != 0)
    }
}
