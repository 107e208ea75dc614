//! Sockets of a message library as an endpoint.

use std::time::Duration;

use measure::clock::{Clock, Ticks};

use super::any::Socket;
use super::socket::Messages;
use crate::Error;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::header::Header;
use crate::endpoint::limits::Limits;
use crate::endpoint::{Arrival, Endpoint, FILL, Mark, Posted, words};
use crate::topology::PartSpec;

/// Unsuccessful receives, each a call of the library, between two readings of the clock.
const SPINS: u32 = 64;
/// The longest sleep after a send that found no room: no library reports when there is room.
const ROOM_AFTER: Duration = Duration::from_millis(1);
/// Room for a start message.
const START_BYTES: usize = 16;

/// The sockets that messages leave and arrive by.
pub(super) struct Sockets {
    out: Socket,
    /// `None` if one socket does both.
    into: Option<Socket>,
}

impl Sockets {
    /// Assigns the sockets: the bound one sends and the connected one receives. A single socket
    /// does both.
    pub(super) fn of(bound: Option<Socket>, connected: Option<Socket>) -> Option<Self> {
        let (out, into) = match bound {
            Some(out) => (out, connected),
            None => (connected?, None),
        };
        Some(Self { out, into })
    }

    #[inline]
    fn incoming(&mut self) -> &mut Socket {
        self.into.as_mut().unwrap_or(&mut self.out)
    }
}

/// The endpoint of one of two ranks that a library connects.
pub(crate) struct LibraryEndpoint {
    sockets: Sockets,
    /// The path to the other rank, for errors.
    path: String,
    /// The message to send, and the last one received. The second buffer is one byte longer, so
    /// that a message that is too long is noticed.
    message: Box<[u8]>,
    received: Box<[u8]>,
    size: usize,
    posted: u64,
    clock: Clock,
    limits: Limits,
    sleeps: bool,
    yields_cpu: bool,
    spins: u32,
    awaits_room: bool,
}

impl LibraryEndpoint {
    pub(super) fn new(
        spec: &PartSpec,
        sockets: Sockets,
        path: String,
        yields_cpu: bool,
        clock: Clock,
    ) -> Self {
        let size = spec.message.size();
        Self {
            sockets,
            path,
            message: vec![FILL; size].into(),
            received: vec![0; size.saturating_add(1).max(START_BYTES)].into(),
            size,
            posted: 0,
            clock,
            limits: Limits::new(spec, clock),
            sleeps: spec.message.poll.sleeps(),
            yields_cpu,
            spins: 0,
            awaits_room: false,
        }
    }

    /// Sends a start message, which is not measured; does nothing if there is no room.
    pub(super) fn send_start(&mut self, message: &[u8]) -> Result<(), Error> {
        let sent = self.sockets.out.send(message);
        sent.map(drop).map_err(|reason| self.failed("send on", reason))
    }

    /// Returns the next start message of the other rank, if one arrives within `limit`.
    pub(super) fn receive_start(&mut self, limit: Duration) -> Result<Option<Vec<u8>>, Error> {
        if let Some(length) = self.receive_any()? {
            return Ok(Some(self.received[..length.min(self.received.len())].to_vec()));
        }
        self.sockets.incoming().wait(limit).map_err(|reason| self.failed("wait on", reason))?;
        Ok(None)
    }

    #[inline]
    fn receive_any(&mut self) -> Result<Option<usize>, Error> {
        let came = self.sockets.incoming().receive(&mut self.received);
        came.map_err(|reason| self.failed("receive on", reason))
    }

    #[cold]
    fn failed(&self, what: &'static str, reason: String) -> Error {
        let advice = "check whether the program of the other rank still runs".to_owned();
        Error::Socket { what, path: self.path.clone(), reason, advice }
    }

    #[inline]
    fn post(&mut self, header: Header) -> Result<Posted, Error> {
        header.write(&mut self.message);
        let sent = self.sockets.out.send(&self.message).map_err(|reason| self.failed("send on", reason))?;
        self.awaits_room = !sent;
        if !sent {
            return Ok(Posted::Busy);
        }
        self.limits.moved();
        Ok(Posted::Queued)
    }

    /// Ends the point if its time is over. Returns the time.
    #[cold]
    fn look_at_clock(&mut self) -> Result<Ticks, Error> {
        self.limits.check(self.awaits_room, || self.path.clone())
    }

    /// The slow path of being idle.
    #[cold]
    fn rest(&mut self, instant: u64) -> Result<(), Error> {
        let now = self.look_at_clock()?;
        if self.sleeps && now.0 < instant {
            let left = instant.min(self.limits.next_look().0).saturating_sub(now.0);
            let left = Duration::from_nanos(self.clock.ns(left));
            let limit = if self.awaits_room { left.min(ROOM_AFTER) } else { left };
            self.sockets.incoming().wait(limit).map_err(|reason| self.failed("wait on", reason))?;
        } else if self.yields_cpu {
            std::thread::yield_now();
        }
        self.awaits_room = false;
        Ok(())
    }
}

impl DrivenEndpoint for LibraryEndpoint {
    const CAPABILITIES: Capabilities = Capabilities::NONE;

    fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        self.limits.start(Duration::from_secs_f64(timeout_s));
        Ok(())
    }

    fn stop(&mut self) {}

    fn library(&self) -> Option<String> {
        Some(self.sockets.out.version())
    }
}

impl Endpoint for LibraryEndpoint {
    #[inline]
    fn clock(&self) -> Clock {
        self.clock
    }

    #[inline]
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        let posted = self.post(Header::of(mark, self.posted as u32))?;
        self.posted += u64::from(posted == Posted::Queued);
        Ok(posted)
    }

    fn try_send_sync(&mut self) -> Result<Posted, Error> {
        self.try_send_sync_as(0)
    }

    fn try_send_sync_as(&mut self, number: u32) -> Result<Posted, Error> {
        self.post(Header::greeting(number))
    }

    #[inline]
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        while let Some(length) = self.receive_any()? {
            // A late start message may still arrive.
            if length == self.size {
                let header = Header::read(&self.received[..length]);
                self.limits.moved();
                self.spins = 0;
                return Ok(Some(header.arrival(0)));
            }
        }
        Ok(None)
    }

    /// The library has taken every posted message.
    fn outstanding(&mut self) -> Result<u32, Error> {
        Ok(0)
    }

    fn try_sent(&mut self) -> Result<u64, Error> {
        Ok(self.posted)
    }

    #[inline]
    fn has_room(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    #[inline]
    fn put(&mut self, word: usize, value: u64) -> Result<(), Error> {
        words::put(&mut self.message, word, value);
        Ok(())
    }

    #[inline]
    fn get(&self, word: usize) -> Result<u64, Error> {
        Ok(words::get(&self.received, word))
    }

    #[inline]
    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error> {
        self.spins += 1;
        if self.spins < SPINS && !self.sleeps && !self.yields_cpu {
            return Ok(());
        }
        self.spins = 0;
        self.rest(instant.0)
    }

    fn yield_cpu(&mut self) -> Result<(), Error> {
        self.look_at_clock()?;
        if self.yields_cpu {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn quiet(&self) -> Duration {
        self.limits.quiet()
    }
}
