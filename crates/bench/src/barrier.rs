//! A barrier in shared memory for the ranks of one host (Sur 2007, section 3.1). The ranks also
//! share when each of them began, and whether it has finished.
//!
//! # Invariants
//!
//! * Ranks of a host that begin every message together pass a barrier in shared memory, outside of
//!   any device. Loads begin when rank 0 tells them. The skew is recorded. The throughput of
//!   several ranks is counted in the time in which all of them send; if that time is too short,
//!   there is no number.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use measure::clock::Ticks;

use crate::Error;
use crate::shared::Shared;

/// The line with the number of arrivals in all rounds.
const ARRIVED: usize = 0;
/// The line with the number of members that have finished.
const FINISHED: usize = 1;
/// The line with the number of the last round, once member 0 has set it.
const LAST: usize = 2;
/// The first line of the members. Each member has two lines: for even rounds and for odd rounds.
const BEGUN: usize = 3;

/// One member of a barrier.
#[derive(Debug)]
pub(crate) struct Barrier {
    memory: Shared,
    members: usize,
    /// The index of this member.
    index: usize,
    /// The number of rounds that it has passed.
    rounds: u64,
}

impl Barrier {
    /// The number of lines of memory that a barrier needs.
    pub(crate) fn lines(members: usize) -> usize {
        BEGUN + 2 * members
    }

    /// A member of a barrier, by its index from 0. The memory must be unused.
    pub(crate) fn new(memory: Shared, members: usize, index: usize) -> Self {
        Self { memory, members, index, rounds: 0 }
    }

    /// The number of members.
    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Whether this member reads what the others have written. A single member does not.
    pub(crate) fn leads(&self) -> bool {
        self.index == 0 && self.members > 1
    }

    /// Waits until all members have arrived.
    ///
    /// # Errors
    /// The errors of `idle`, which is called whenever there is nothing to do.
    #[inline]
    pub(crate) fn pass(&mut self, mut idle: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
        self.rounds += 1;
        let all = self.rounds * self.members as u64;
        let arrived = self.memory.word(ARRIVED);
        arrived.fetch_add(1, Release);
        while arrived.load(Acquire) < all {
            idle()?;
        }
        Ok(())
    }

    /// Makes the next round the last, if this is member 0. The others know it once they have passed
    /// that round.
    pub(crate) fn close(&self) {
        if self.index == 0 {
            self.memory.word(LAST).store(self.rounds + 1, Relaxed);
        }
    }

    /// Whether the round that this member passed last is the last.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        let last = self.memory.word(LAST).load(Relaxed);
        last != 0 && last <= self.rounds
    }

    /// Writes when this member began, after the barrier that it passed last.
    #[inline]
    pub(crate) fn began(&self, at: Ticks) {
        self.memory.word(self.line(self.index, self.rounds)).store(at.0, Relaxed);
    }

    /// The time between the first and the last start in the previous round, in ticks. All members
    /// wrote that start before they arrived in this round, and no member overwrites it before this
    /// member arrives again.
    pub(crate) fn skew(&self) -> u64 {
        let begun = |member| self.memory.word(self.line(member, self.rounds - 1)).load(Relaxed);
        let (first, last) = (0..self.members)
            .map(begun)
            .fold((u64::MAX, 0), |(first, last), at| (first.min(at), last.max(at)));
        last.saturating_sub(first)
    }

    /// Writes that this member has finished.
    pub(crate) fn finish(&self) {
        self.memory.word(FINISHED).fetch_add(1, Release);
    }

    /// Whether all members have finished.
    #[inline]
    pub(crate) fn have_all_finished(&self) -> bool {
        self.memory.word(FINISHED).load(Acquire) >= self.members as u64
    }

    fn line(&self, member: usize, round: u64) -> usize {
        BEGUN + 2 * member + (round % 2) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn members(count: usize) -> Vec<Barrier> {
        let first = Shared::offer("rdmascope-test", Barrier::lines(count)).unwrap();
        let handle = first.handle().unwrap();
        let others = (1..count).map(|_| Shared::open(&handle, Barrier::lines(count)).unwrap());
        let all: Vec<Shared> = others.collect();
        let memories = std::iter::once(first).chain(all);
        memories.enumerate().map(|(index, memory)| Barrier::new(memory, count, index)).collect()
    }

    #[test]
    fn all_members_stop_after_the_round_that_the_first_makes_the_last() {
        const LAST_ROUND: u64 = 150;
        let yields = || {
            std::thread::yield_now();
            Ok(())
        };
        let rounds = std::thread::scope(|scope| {
            let all = members(4).into_iter().map(|mut barrier| {
                scope.spawn(move || {
                    while !barrier.is_closed() && barrier.rounds < 2 * LAST_ROUND {
                        // Only the first member's wish counts.
                        if barrier.index > 0 || barrier.rounds + 1 == LAST_ROUND {
                            barrier.close();
                        }
                        barrier.pass(yields).unwrap();
                    }
                    barrier.rounds
                })
            });
            let all: Vec<_> = all.collect();
            all.into_iter().map(|member| member.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(rounds, [LAST_ROUND; 4]);
    }

    #[test]
    fn nobody_passes_before_all_have_arrived() {
        const ROUNDS: u64 = 200;
        let arrivals = AtomicU64::new(0);
        let yields = || {
            std::thread::yield_now();
            Ok(())
        };
        let skews = std::thread::scope(|scope| {
            let ends = members(4).into_iter().map(|mut barrier| {
                let arrivals = &arrivals;
                scope.spawn(move || {
                    let mut skews = Vec::new();
                    for round in 1..=ROUNDS {
                        arrivals.fetch_add(1, Relaxed);
                        barrier.pass(yields).unwrap();
                        assert!(arrivals.load(Relaxed) >= 4 * round);
                        if round > 1 && barrier.leads() {
                            skews.push(barrier.skew());
                        }
                        barrier.began(Ticks(1000 * round + barrier.index as u64 * round));
                    }
                    assert!(!barrier.have_all_finished() || barrier.index > 0);
                    skews
                })
            });
            let ends: Vec<_> = ends.collect();
            ends.into_iter().map(|end| end.join().unwrap()).collect::<Vec<_>>()
        });
        // Member i begins i times the round late, so the last of four begins three times that late.
        assert_eq!(skews[0], (1..ROUNDS).map(|round| 3 * round).collect::<Vec<_>>());
        assert!(skews[1..].iter().all(Vec::is_empty));
    }

    #[test]
    fn a_member_that_never_comes_is_waited_for_no_longer_than_idle_allows() {
        let mut ends = members(2);
        let mut looks = 0;
        let error = ends[0].pass(|| {
            looks += 1;
            if looks < 3 { Ok(()) } else { Err(Error::TooFewMessages { messages: 0 }) }
        });
        assert!(error.is_err() && looks == 3);
    }

    #[test]
    fn all_have_finished_when_each_has() {
        let ends = members(3);
        for end in &ends {
            assert!(!ends[2].have_all_finished());
            end.finish();
        }
        assert!(ends.iter().all(Barrier::have_all_finished));
    }
}
