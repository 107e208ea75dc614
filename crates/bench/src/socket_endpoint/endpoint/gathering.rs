//! How the receiver of a flood sleeps until much has come. Whoever sends over loopback, or to an adapter of software, pays for
//! waking it: one that is woken for every segment takes a sixth of the throughput of TCP, one that is for every datagram more of
//! UDP.

use std::io;
use std::time::Duration;

use measure::clock::{Clock, Ticks};
use rustix::net::sockopt;
use rustix::thread::nanosleep;

use super::ready::Ready;
use super::watch::Woken;
use super::{Lane, SocketEndpoint};
use crate::Error;
use crate::endpoint::limits::timespec;
use crate::socket_endpoint::options;

/// Before the end of a flood everything that comes wakes its receiver again, so that the last message is seen when it comes: from
/// so many bytes of a stream on, or so many datagrams, or for so long.
const TAIL_BYTES: u64 = 4 * MUCH as u64;
const TAIL_DATAGRAMS: u64 = 1000;
const TAIL: Duration = Duration::from_millis(5);
/// Bytes of a stream that it is woken for. Twice as many are no faster over loopback, half as many cost a tenth.
pub(crate) const MUCH: usize = 1 << 20;
/// Where a buffer holds less, the window is full before much has come, and who sends waits.
pub(super) const BUFFER_BYTES_MIN: u64 = 256 << 10;
/// How long less than [`MUCH`] is left lying: on a slow link that is most of the time, and nobody is woken often.
const PATIENCE_MS: u16 = 1;
/// A receiver of datagrams sleeps so long at least and at most, and where so many have come since it slept last.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_micros(500);
const DATAGRAMS_MIN: u64 = 4;
/// It lets a share of its buffer fill, in which each takes its payload and as much as this. What lies there is memory that the
/// kernel does not use again: with megabytes of it, clearing more took a tenth of the time.
const ROOM_SHARE: u64 = 4;
const ROOM_BYTES_MAX: u64 = 96 << 10;
const OVERHEAD_BYTES: u64 = 1024;
/// How exactly it is woken (`PR_SET_TIMERSLACK`, prctl(2)); 0 is what it was.
const SLACK_NS: libc::c_ulong = 1000;

/// Up to where a flood is received so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    /// What has come on all lanes by then: bytes of streams, datagrams.
    amount: u64,
    /// In ticks.
    until: u64,
    /// Of datagrams, how many may be left lying.
    room: Option<u64>,
    /// What had come when it slept last, and when.
    pace: (u64, Ticks),
}

impl Gathering {
    /// For a flood of so much, with this tail, that begins when so much has come, or that lasts until `end`; none for a short
    /// one.
    fn new(clock: Clock, (flood, tail): (u64, u64), end: u64, received: u64) -> Option<Self> {
        let amount = received.saturating_add(flood).saturating_sub(tail);
        let (until, now) = (end.saturating_sub(clock.ticks(TAIL)), clock.now());
        (amount > received && until > now.0).then_some(Self {
            amount,
            until,
            room: None,
            pace: (received, now),
        })
    }

    fn is_over(self, now: Ticks, received: u64) -> bool {
        now.0 >= self.until || received >= self.amount
    }

    /// For how many ticks to sleep until as many datagrams have come as may lie, at the rate since the last sleep; none where few
    /// have come.
    fn pause(&mut self, now: Ticks, received: u64) -> Option<u64> {
        let (before, since) = std::mem::replace(&mut self.pace, (received, now));
        let came = received.saturating_sub(before);
        (came >= DATAGRAMS_MIN)
            .then(|| now.since(since).saturating_mul(self.room?).checked_div(came))
            .flatten()
    }
}

impl SocketEndpoint {
    /// Gathers a flood of so many messages, or until a stamp.
    pub(super) fn gather(&mut self, messages: u64, end: u64) -> Result<(), Error> {
        let datagrams = self.lanes.iter().any(|lane| matches!(lane, Lane::Datagram(_)));
        let amounts = match datagrams {
            true => (messages, TAIL_DATAGRAMS),
            false => (messages.saturating_mul(self.size), TAIL_BYTES),
        };
        let mut gathering = Gathering::new(self.clock, amounts, end, self.received());
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

    /// Tells the kernel when to wake this thread: for many bytes (`SO_RCVLOWAT`, socket(7)), of datagrams exactly in time.
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

    /// Sleeps until many bytes have come, or for so long that something should have; whether no signal came.
    fn await_bytes(&mut self) -> Result<bool, Error> {
        let woken = self.watch.sleep(&self.lanes, Some(PATIENCE_MS), |_, _| (true, false))?;
        if woken == Woken::Time {
            // What is less the kernel tells of no more.
            self.ready.iter_mut().for_each(Ready::suspect_all);
        }
        Ok(woken != Woken::Signal)
    }

    /// For how many bytes the kernel wakes it on its first lane.
    #[cfg(test)]
    pub(crate) fn wakes_for(&self) -> usize {
        use std::os::fd::AsRawFd;
        let (mut bytes, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
        let socket = self.lanes[0].borrowed().as_raw_fd();
        // SAFETY: the number is writable and of that length.
        let got = unsafe {
            libc::getsockopt(
                socket,
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                (&raw mut bytes).cast(),
                &raw mut length,
            )
        };
        assert_eq!(got, 0);
        bytes as usize
    }
}

fn failed(cause: io::Error) -> Error {
    Error::System { what: "wait for a flood".to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_not_gathered_and_the_tail_of_nothing_is() {
        let clock = Clock::monotonic();
        let new = |flood, end| Gathering::new(clock, (flood, TAIL_BYTES), end, 1000);
        let after = |ms: u64| clock.now().0 + clock.ticks(Duration::from_millis(ms));
        assert!(
            new(TAIL_BYTES, u64::MAX).is_none() && new(u64::MAX, after(4)).is_none() && new(0, 0).is_none()
        );
        let of_messages = new(100 << 20, u64::MAX).unwrap();
        let end = 1000 + (96 << 20);
        assert!(!of_messages.is_over(clock.now(), end - 1) && of_messages.is_over(clock.now(), end));
        let of_time = new(u64::MAX, after(1000)).unwrap();
        assert!(!of_time.is_over(Ticks(after(900)), 1 << 50) && of_time.is_over(Ticks(after(999)), 0));
    }

    #[test]
    fn the_pause_is_as_long_as_the_room_takes_to_fill() {
        let clock = Clock::monotonic();
        let mut gathering = Gathering::new(clock, (u64::MAX, 0), u64::MAX, 0).unwrap();
        let (room, begin) = (20, gathering.pace.1.0);
        gathering.room = Some(room);
        assert_eq!(gathering.pause(Ticks(begin + 1000), 10), Some(2000), "one every 100");
        assert_eq!(gathering.pause(Ticks(begin + 3000), 50), Some(1000), "one every 50");
        assert_eq!(gathering.pause(Ticks(begin + 4000), 53), None, "few have come");
        assert_eq!(gathering.pause(Ticks(begin + 5000), 53), None);
        assert_eq!(gathering.pause(Ticks(begin + 6000), 63), Some(2000), "since the last sleep");
    }
}
