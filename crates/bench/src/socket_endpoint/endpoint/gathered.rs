//! The part of a stream in which its receiver sleeps until much data has arrived.

use std::time::Duration;

use measure::clock::{Clock, Ticks};

/// Near the end of a stream, every arrival wakes the receiver again, so that the last message is
/// seen at once: within the last bytes of a byte stream, the last datagrams, or the last interval.
pub(super) const TAIL_BYTES: u64 = 4 * MUCH as u64;
pub(super) const TAIL_DATAGRAMS: u64 = 1000;
const TAIL: Duration = Duration::from_millis(5);
/// The bytes of a byte stream that wake the receiver. Twice as many are no faster over loopback;
/// half as many are a tenth slower.
pub(crate) const MUCH: usize = 1 << 20;
/// With a smaller buffer, the window fills before much has arrived, and the sender waits.
pub(super) const BUFFER_BYTES_MIN: u64 = 256 << 10;
/// The fewest datagrams since the last sleep that give a rate.
const DATAGRAMS_MIN: u64 = 4;

/// How long the receiver of a stream gathers data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    /// What has arrived on all lanes at the end: bytes of byte streams, or datagrams.
    amount: u64,
    /// In ticks.
    until: u64,
    /// How many datagrams may queue up; `None` for byte streams.
    pub(super) room: Option<u64>,
    /// What had arrived at the last sleep, and the time of that sleep.
    pace: (u64, Ticks),
}

impl Gathering {
    /// Creates the gathering of a stream of `flood` bytes or datagrams that lasts until `end`,
    /// after `received` have arrived, without its `tail`; `None` for a short stream.
    pub(super) fn new(clock: Clock, flood: u64, tail: u64, end: u64, received: u64) -> Option<Self> {
        let amount = received.saturating_add(flood).saturating_sub(tail);
        let until = end.saturating_sub(clock.ticks(TAIL));
        let now = clock.now();
        (amount > received && until > now.0).then_some(Self {
            amount,
            until,
            room: None,
            pace: (received, now),
        })
    }

    pub(super) fn is_over(self, now: Ticks, received: u64) -> bool {
        now.0 >= self.until || received >= self.amount
    }

    /// Returns how many ticks to sleep until as many datagrams have arrived as may queue up, at the
    /// rate since the last sleep; `None` if few have arrived.
    pub(super) fn pause(&mut self, now: Ticks, received: u64) -> Option<u64> {
        let (before, since) = std::mem::replace(&mut self.pace, (received, now));
        let came = received.saturating_sub(before);
        (came >= DATAGRAMS_MIN)
            .then(|| now.since(since).saturating_mul(self.room?).checked_div(came))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_not_gathered_and_the_tail_of_nothing_is() {
        let clock = Clock::monotonic();
        let new = |flood, end| Gathering::new(clock, flood, TAIL_BYTES, end, 1000);
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
        let mut gathering = Gathering::new(clock, u64::MAX, 0, u64::MAX, 0).unwrap();
        let room = 20;
        let begin = gathering.pace.1.0;
        gathering.room = Some(room);
        assert_eq!(gathering.pause(Ticks(begin + 1000), 10), Some(2000), "one every 100");
        assert_eq!(gathering.pause(Ticks(begin + 3000), 50), Some(1000), "one every 50");
        assert_eq!(gathering.pause(Ticks(begin + 4000), 53), None, "few have come");
        assert_eq!(gathering.pause(Ticks(begin + 5000), 53), None);
        assert_eq!(gathering.pause(Ticks(begin + 6000), 63), Some(2000), "since the last sleep");
    }
}
