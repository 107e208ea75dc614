//! How the receiver of a flood sleeps until much has come. Whoever sends over loopback, or to an
//! adapter of software, pays for waking it: one that is woken for every segment takes a sixth of
//! the throughput of TCP, one that is for every datagram more of UDP.

use std::io;
use std::time::Duration;

use measure::clock::Ticks;
use rustix::net::sockopt;
use rustix::thread::nanosleep;

use super::gathered::{Gathering, MUCH, TAIL_BYTES, TAIL_DATAGRAMS};
use super::ready::Ready;
use super::watch::Woken;
use super::{Lane, SocketEndpoint};
use crate::Error;
use crate::endpoint::limits::timespec;
use crate::socket_endpoint::options;

/// How long less than [`MUCH`] is left lying: on a slow link that is most of the time, and nobody
/// is woken often.
const PATIENCE_MS: u16 = 1;
/// A receiver of datagrams sleeps so long at least and at most.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_micros(500);
/// It lets a share of its buffer fill, in which each takes its payload and as much as this. What
/// lies there is memory that the kernel does not use again: with megabytes of it, clearing more
/// took a tenth of the time.
const ROOM_SHARE: u64 = 4;
const ROOM_BYTES_MAX: u64 = 96 << 10;
const OVERHEAD_BYTES: u64 = 1024;
/// How exactly it is woken (`PR_SET_TIMERSLACK`, prctl(2)); 0 is what it was.
const SLACK_NS: libc::c_ulong = 1000;

impl SocketEndpoint {
    /// Gathers a flood of so many messages, or until a stamp.
    pub(super) fn gather(&mut self, messages: u64, end: u64) -> Result<(), Error> {
        let datagrams = self.lanes.iter().any(|lane| matches!(lane, Lane::Datagram(_)));
        let (flood, tail) = match datagrams {
            true => (messages, TAIL_DATAGRAMS),
            false => (messages.saturating_mul(self.size), TAIL_BYTES),
        };
        let mut gathering = Gathering::new(self.clock, flood, tail, end, self.received());
        if let Some(gathering) = gathering.as_mut().filter(|_| datagrams) {
            let buffer = sockopt::socket_recv_buffer_size(self.lanes[0].borrowed());
            let bytes = buffer.map_err(|error| failed(error.into()))? as u64;
            gathering.room = Some((bytes / ROOM_SHARE).min(ROOM_BYTES_MAX) / (self.size + OVERHEAD_BYTES));
        }
        self.set_gathering(gathering)
    }

    fn received(&self) -> u64 {
        self.lanes.iter().map(Lane::received).sum()
    }

    /// Tells the kernel when to wake this thread: for many bytes (`SO_RCVLOWAT`, socket(7)), of
    /// datagrams exactly in time.
    fn set_gathering(&mut self, gathering: Option<Gathering>) -> Result<(), Error> {
        let was = std::mem::replace(&mut self.gathering, gathering);
        let Some(either) = gathering.or(was) else { return Ok(()) };
        if either.room.is_some() {
            let slack = if gathering.is_some() { SLACK_NS } else { 0 };
            // SAFETY: it changes a number of this thread.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack) };
            return Ok(());
        }
        let bytes = if gathering.is_some() { MUCH } else { 1 };
        let wake = |lane: &Lane| options::wake_for(&lane.borrowed(), bytes);
        self.lanes.iter().try_for_each(wake).map_err(|error| failed(error.into()))
    }

    /// Sleeps until much has come, where a flood is gathered; then whether no signal came.
    pub(super) fn await_much(&mut self, now: Ticks) -> Result<Option<bool>, Error> {
        let received = self.received();
        let Some(gathering) = &mut self.gathering else { return Ok(None) };
        if gathering.is_over(now, received) {
            self.set_gathering(None)?;
            return Ok(None);
        }
        if gathering.room.is_none() {
            return self.await_bytes().map(Some);
        }
        let pause = gathering.pause(now, received).map(|ticks| Duration::from_nanos(self.clock.ns(ticks)));
        let Some(pause) = pause.filter(|pause| *pause >= PAUSE_MIN) else { return Ok(None) };
        // Whatever wakes it, it looks.
        let _ = nanosleep(&timespec(pause.min(PAUSE_MAX)));
        Ok(Some(true))
    }

    /// Sleeps until many bytes have come, or for so long that something should have; whether no
    /// signal came.
    fn await_bytes(&mut self) -> Result<bool, Error> {
        let woken = self.watch.sleep(&self.lanes, Some(PATIENCE_MS), |_, _| (true, false))?;
        if woken == Woken::Time {
            // What is less the kernel tells of no more.
            self.ready.iter_mut().for_each(Ready::suspect_all);
        }
        Ok(woken != Woken::Signal)
    }
}

fn failed(cause: io::Error) -> Error {
    Error::System { what: "wait for a flood".to_owned(), cause }
}
