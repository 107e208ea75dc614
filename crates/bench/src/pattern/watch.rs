//! What a polling loop sees of the time in which it did not run.
//!
//! # Invariants
//!
//! * A polling loop that times one way reads its clock in every fruitless turn: the time that the
//!   loop did not see is time that other processes or the hypervisor took.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use serde::{Deserialize, Serialize};

/// Looks at the clock with every fruitless turn of a loop: what passes between two looks, more than
/// a turn takes, was the scheduler's, the hypervisor's or an interrupt's.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The last look; beyond every other where something was done since, so that no gap follows it.
    last: u64,
    threshold: u64,
    longest: u64,
    total: u64,
    count: u64,
    /// Beginning and end of each gap above the threshold, as far as there is room.
    gaps: Vec<u64>,
}

/// The gaps that a rank saw in its time, in ticks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watched {
    /// Shorter ones are not counted.
    pub threshold: u64,
    /// The longest, counted or not.
    pub longest: u64,
    /// All that are counted.
    pub total: u64,
    /// Their number.
    pub count: u64,
}

/// A gap is one from here on: longer than any turn of a polling loop, shorter than what a
/// scheduler, a hypervisor or an interrupt takes.
const GAP: Duration = Duration::from_micros(2);
/// No look.
const NEVER: u64 = u64::MAX;
/// Gaps that are kept, two numbers each: a gap in 100 us for a second.
const ROOM: usize = 2 * 10_000;

impl Watch {
    /// A watch for what a polling loop does not see.
    pub(crate) fn for_gaps(clock: Clock) -> Self {
        Self::new(clock.ticks(GAP))
    }

    /// A watch for gaps of more than so many ticks.
    pub(crate) fn new(threshold: u64) -> Self {
        // Written, so that no page is missing later.
        let mut gaps = vec![u64::MAX; ROOM];
        gaps.clear();
        Self { last: NEVER, threshold, longest: 0, total: 0, count: 0, gaps }
    }

    /// Looks at the clock.
    #[inline(always)]
    pub(crate) fn see(&mut self, now: Ticks) {
        let gap = now.0.saturating_sub(self.last);
        if gap > self.longest {
            self.longest = gap;
        }
        if gap > self.threshold {
            self.keep(now.0, gap);
        }
        self.last = now.0;
    }

    /// Something was done that takes its time.
    #[inline(always)]
    pub(crate) fn pass(&mut self) {
        self.last = NEVER;
    }

    #[cold]
    fn keep(&mut self, now: u64, gap: u64) {
        self.count += 1;
        self.total += gap;
        if self.gaps.len() < ROOM {
            self.gaps.extend([self.last, now]);
        }
    }

    /// What it saw.
    pub(crate) fn seen(&self) -> Watched {
        let Self { threshold, longest, total, count, .. } = *self;
        Watched { threshold, longest, total, count }
    }

    /// Beginning and end of each gap, in turn.
    pub(crate) fn into_gaps(self) -> Vec<u64> {
        self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_between_two_looks_is_a_gap() {
        let mut watch = Watch::new(100);
        for now in [1000, 1010, 1110, 1211, 1220] {
            watch.see(Ticks(now));
        }
        watch.pass();
        for now in [9000, 9005, 9406] {
            watch.see(Ticks(now));
        }
        assert_eq!(watch.seen(), Watched { threshold: 100, longest: 401, total: 101 + 401, count: 2 });
        assert_eq!(watch.into_gaps(), [1110, 1211, 9005, 9406]);
    }

    #[test]
    fn more_gaps_than_there_is_room_for_are_counted() {
        let mut watch = Watch::new(1);
        for now in 1..=ROOM as u64 {
            watch.see(Ticks(10 * now));
        }
        let count = ROOM as u64 - 1;
        assert_eq!(watch.seen(), Watched { threshold: 1, longest: 10, total: 10 * count, count });
        assert_eq!(watch.into_gaps().len(), ROOM);
    }
}
