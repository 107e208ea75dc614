//! Lets the receiver of a stream sleep until much data has arrived. Over loopback or a software
//! adapter, the sender pays for waking the receiver: a wake-up for every segment costs a sixth of
//! the throughput of TCP, and one for every datagram costs more with UDP.

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

/// How long less than [`MUCH`] may wait. On a slow link data waits most of the time, but wake-ups
/// stay rare.
const PATIENCE_MS: u16 = 1;
/// The shortest and the longest sleep of a receiver of datagrams.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_micros(500);
/// The receiver lets a share of its buffer fill, in which a datagram takes its payload and this
/// overhead. Memory that is queued there is not reused by the kernel: with megabytes of it, a tenth
/// of the time went into clearing new memory.
const ROOM_SHARE: u64 = 4;
const ROOM_BYTES_MAX: u64 = 96 << 10;
const OVERHEAD_BYTES: u64 = 1024;
/// The precision of wake-ups (`PR_SET_TIMERSLACK`, prctl(2)); 0 restores the default.
const SLACK_NS: libc::c_ulong = 1000;

impl SocketEndpoint {
    /// Gathers a stream of `messages` messages, or until the stamp `end`.
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

    /// Tells the kernel when to wake this thread: after many bytes (`SO_RCVLOWAT`, socket(7)), or
    /// for datagrams exactly in time.
    fn set_gathering(&mut self, gathering: Option<Gathering>) -> Result<(), Error> {
        let was = std::mem::replace(&mut self.gathering, gathering);
        let Some(either) = gathering.or(was) else { return Ok(()) };
        if either.room.is_some() {
            let slack = if gathering.is_some() { SLACK_NS } else { 0 };
            // SAFETY: the call changes a number of this thread.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack) };
            return Ok(());
        }
        let bytes = if gathering.is_some() { MUCH } else { 1 };
        let wake = |lane: &Lane| options::wake_for(&lane.borrowed(), bytes);
        self.lanes.iter().try_for_each(wake).map_err(|error| failed(error.into()))
    }

    /// Sleeps until much has arrived, if a stream is gathered; returns whether no signal came.
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
        // The caller checks again, whatever ends the sleep.
        let _ = nanosleep(&timespec(pause.min(PAUSE_MAX)));
        Ok(Some(true))
    }

    /// Sleeps until many bytes have arrived, or for [`PATIENCE_MS`]; returns whether no signal
    /// came.
    fn await_bytes(&mut self) -> Result<bool, Error> {
        let woken = self.watch.sleep(&self.lanes, Some(PATIENCE_MS), |_, _| (true, false))?;
        if woken == Woken::Time {
            // The kernel no longer reports a smaller amount.
            self.ready.iter_mut().for_each(Ready::suspect_all);
        }
        Ok(woken != Woken::Signal)
    }
}

fn failed(cause: io::Error) -> Error {
    Error::System { what: "wait for a stream".to_owned(), cause }
}
