//! Preemptions that a polling loop notices.
//!
//! # Invariants
//!
//! * A polling loop that times one-way messages reads its clock on every fruitless turn: a jump of
//!   the clock is time that other processes, an interrupt or the hypervisor took.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use serde::{Deserialize, Serialize};

/// Compares the readings of the clock on successive fruitless turns of a loop. Where two readings
/// are farther apart than a turn takes, the scheduler, the hypervisor or an interrupt took the CPU.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The last reading; [`NEVER`] after other work, so that it is not counted as a preemption.
    last: u64,
    threshold: u64,
    longest: u64,
    total: u64,
    count: u64,
    /// Start and end of each preemption above the threshold, as long as there is room.
    gaps: Vec<u64>,
}

/// The preemptions that a rank noticed, in ticks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watched {
    /// Preemptions up to this length are not counted.
    pub threshold: u64,
    /// The longest, counted or not.
    pub longest: u64,
    /// The sum of all that are counted.
    pub total: u64,
    /// The number of all that are counted.
    pub count: u64,
}

/// The shortest preemption that counts: longer than any turn of a polling loop, shorter than what a
/// scheduler, a hypervisor or an interrupt takes.
const GAP: Duration = Duration::from_micros(2);
/// No reading.
const NEVER: u64 = u64::MAX;
/// The room for preemptions, two numbers each: enough for one per 100 us during a second.
const ROOM: usize = 2 * 10_000;

impl Watch {
    /// A watch for preemptions of a polling loop.
    pub(crate) fn for_gaps(clock: Clock) -> Self {
        Self::new(clock.ticks(GAP))
    }

    /// A watch for preemptions of more than this many ticks.
    pub(crate) fn new(threshold: u64) -> Self {
        // Writing the memory now avoids page faults in the measurement.
        let mut gaps = vec![u64::MAX; ROOM];
        gaps.clear();
        Self { last: NEVER, threshold, longest: 0, total: 0, count: 0, gaps }
    }

    /// Records a reading of the clock.
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

    /// Records that the loop did other work, whose time does not count.
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

    /// The preemptions so far.
    pub(crate) fn seen(&self) -> Watched {
        let Self { threshold, longest, total, count, .. } = *self;
        Watched { threshold, longest, total, count }
    }

    /// Start and end of each preemption, in order.
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
