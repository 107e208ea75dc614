//! How the receiver of a flood sleeps until much has come. Whoever sends over TCP pays for waking it: one that is woken for every
//! segment takes a sixth of the throughput over loopback.

use std::io;
use std::time::Duration;

use measure::clock::{Clock, Ticks};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::ready::Ready;
use super::{Lane, SocketEndpoint};
use crate::Error;
use crate::socket_endpoint::options;
use crate::socket_endpoint::stream::AT_ONCE;

/// Bytes before the end of a flood from which on every segment wakes its receiver again, so that the last one is seen when it
/// comes; and the time before it.
const TAIL_BYTES: u64 = 4 * AT_ONCE as u64;
const TAIL: Duration = Duration::from_millis(5);
/// How long less than [`AT_ONCE`] is left lying: on a slow link that is most of the time, and nobody is woken often.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Up to where a flood is received so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    /// Bytes that have come on all lanes by then.
    bytes: u64,
    /// In ticks.
    until: u64,
}

impl Gathering {
    /// For a flood of so many messages that begins when so much has come, or that lasts until `end`; none for one that is short.
    pub(super) fn new(clock: Clock, size: u64, messages: u64, end: u64, received: u64) -> Option<Self> {
        let bytes = received.saturating_add(messages.saturating_mul(size)).saturating_sub(TAIL_BYTES);
        let until = end.saturating_sub(clock.ticks(TAIL));
        (bytes > received && until > clock.now().0).then_some(Self { bytes, until })
    }

    fn is_over(self, now: Ticks, received: u64) -> bool {
        now.0 >= self.until || received >= self.bytes
    }
}

impl SocketEndpoint {
    /// Begins to gather, or ends it: tells the kernel for how much to wake this thread (`SO_RCVLOWAT`, socket(7)).
    pub(super) fn gather(&mut self, gathering: Option<Gathering>) -> Result<(), Error> {
        if gathering.is_some() || self.gathering.is_some() {
            let bytes = if gathering.is_some() { AT_ONCE } else { 1 };
            for lane in &self.lanes {
                options::wake_for(&lane.borrowed(), bytes).map_err(|error| failed(error.into()))?;
            }
        }
        self.gathering = gathering;
        Ok(())
    }

    /// Whether it gathers still.
    pub(super) fn gathers(&mut self, now: Ticks) -> Result<bool, Error> {
        let Some(gathering) = self.gathering else { return Ok(false) };
        if gathering.is_over(now, self.lanes.iter().map(Lane::received).sum()) {
            self.gather(None)?;
        }
        Ok(self.gathering.is_some())
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

    /// Sleeps until much has come, or for so long that something should have; whether no signal came.
    pub(super) fn await_much(&mut self) -> Result<bool, Error> {
        let mut wanted: Vec<_> =
            self.lanes.iter().map(|lane| PollFd::from_borrowed_fd(lane.borrowed(), PollFlags::IN)).collect();
        match poll(&mut wanted, Some(&PATIENCE)) {
            Ok(0) => {
                // What is less the kernel tells of no more.
                self.ready.iter_mut().for_each(Ready::suspect_all);
                Ok(true)
            }
            Ok(_) => Ok(true),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(failed(error.into())),
        }
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
        let new = |messages, end| Gathering::new(clock, 1 << 20, messages, end, 1000);
        let after = |ms: u64| clock.now().0 + clock.ticks(Duration::from_millis(ms));
        assert!(new(1, u64::MAX).is_none() && new(u64::MAX, after(4)).is_none() && new(0, 0).is_none());
        let of_messages = new(100, u64::MAX).unwrap();
        let end = 1000 + (99 << 20);
        assert!(!of_messages.is_over(clock.now(), end - 1) && of_messages.is_over(clock.now(), end));
        let of_time = new(u64::MAX, after(1000)).unwrap();
        assert!(!of_time.is_over(Ticks(after(900)), 1 << 50) && of_time.is_over(Ticks(after(999)), 0));
    }
}
