//! The raw one-way time of a cache line between the CPUs of two ranks of one host.
//!
//! It is the floor under every latency through shared memory, and it changes when a hypervisor
//! moves virtual CPUs: by up to forty times within seconds. So it is measured before and after each
//! point, and a point is flagged when it changed in between.
//!
//! # Invariants
//!
//! * The placement of virtual CPUs changes under a running measurement, by up to forty times. So
//!   the raw time of a cache line between the ranks' CPUs is taken before and after each point, and
//!   the samples' own series is searched for steps.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use measure::clock::Clock;

use crate::Error;
use crate::shared::{Handle, Shared};

/// Batches whose median is taken, after one that warms up. A time stamp may resolve no better than
/// the line takes (10 ns have been seen), so single round trips cannot be timed.
const BATCHES: usize = 41;
/// Round trips in a batch.
const ROUND_TRIPS: usize = 100;
/// How long one answer may take before the other rank has gone: a busy machine may keep it off its
/// CPU for long.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a calibration may take in all: milliseconds where both ranks run. One that is kept off
/// its CPU at every turn would take longer, and give no time of a cache line.
const LIMIT: Duration = Duration::from_secs(1);
/// Fruitless looks between glances at the clock.
const SPINS: u32 = 256;

/// A cache line that two ranks share.
pub(crate) struct Line {
    memory: Shared,
    first: bool,
    /// Value that the last run ended with: the next goes on from it.
    at: u64,
}

impl Line {
    /// Makes the line, and the handle that opens it (rank 0).
    pub(crate) fn offer() -> Result<(Self, Handle), Error> {
        let memory = Shared::offer("rdmascope-calibration", 1).map_err(failed)?;
        let handle = memory.handle().map_err(failed)?;
        Ok((Self { memory, first: true, at: 0 }, handle))
    }

    /// Opens the line of another process of this host (rank 1).
    pub(crate) fn open(handle: &Handle) -> Result<Self, Error> {
        let memory = Shared::open(handle, 1).map_err(failed)?;
        Ok(Self { memory, first: false, at: 0 })
    }

    /// Bounces the line; both ranks call it at about the same time. Gives the median one-way time
    /// in ns.
    pub(crate) fn run(&mut self, clock: Clock) -> Result<f64, Error> {
        self.run_within(LIMIT, clock)
    }

    fn run_within(&mut self, limit: Duration, clock: Clock) -> Result<f64, Error> {
        let mut times = Vec::with_capacity(BATCHES + 1);
        let Self { memory, first, at } = self;
        let word = memory.word(0);
        let end = clock.now().0.saturating_add(clock.ticks(limit));
        for _ in 0..=BATCHES {
            let before = clock.now();
            if before.0 > end {
                let reason = "the ranks keep each other, or others keep them, off their CPUs".to_owned();
                return Err(Error::Calibration { reason });
            }
            for _ in 0..ROUND_TRIPS {
                bounce(word, at, *first, clock)?;
            }
            times.push(clock.now().since(before));
        }
        let times = &mut times[1..];
        times.sort_unstable();
        Ok(clock.ns_f64(times[BATCHES / 2]) / (2 * ROUND_TRIPS) as f64)
    }
}

/// One round trip.
#[inline]
fn bounce(word: &AtomicU64, at: &mut u64, is_first: bool, clock: Clock) -> Result<(), Error> {
    let ping = *at + 1;
    let pong = *at + 2;
    *at = pong;
    if is_first {
        word.store(ping, Release);
        await_value(word, pong, clock)
    } else {
        await_value(word, ping, clock)?;
        word.store(pong, Release);
        Ok(())
    }
}

/// Waits for a value.
#[inline]
fn await_value(word: &AtomicU64, value: u64, clock: Clock) -> Result<(), Error> {
    let mut spins = 0;
    let mut end = None;
    while word.load(Acquire) != value {
        std::hint::spin_loop();
        spins += 1;
        if spins == SPINS {
            spins = 0;
            let now = clock.now().0;
            if now >= *end.get_or_insert(now.saturating_add(clock.ticks(PATIENCE))) {
                return Err(Error::Calibration { reason: "the other rank does not answer".to_owned() });
            }
        }
    }
    Ok(())
}

fn failed(reason: String) -> Error {
    Error::Calibration { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CPUs that this process may use, a set for each.
    fn cpus() -> impl Iterator<Item = rustix::thread::CpuSet> {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        (0..rustix::thread::CpuSet::MAX_CPU).filter(move |cpu| allowed.is_set(*cpu)).map(|cpu| {
            let mut only = rustix::thread::CpuSet::new();
            only.set(cpu);
            only
        })
    }

    /// Each on a CPU of its own, as ranks are. A busy machine lets both run at the same time now
    /// and then only, for which ranks do not wait so long.
    #[test]
    fn two_ranks_agree_on_the_time_of_a_line() {
        const BUSY: Duration = Duration::from_secs(100);
        let cpus: Vec<_> = cpus().take(2).collect();
        let &[one, other] = &cpus[..] else {
            return eprintln!("SKIPPED (two CPUs): this process may use one");
        };
        let clock = Clock::calibrate();
        let (mut first, handle) = Line::offer().unwrap();
        let mut second = Line::open(&handle).unwrap();
        for _ in 0..2 {
            let times = std::thread::scope(|scope| {
                let ends = [(&mut first, one), (&mut second, other)].map(|(line, cpu)| {
                    scope.spawn(move || {
                        rustix::thread::sched_setaffinity(None, &cpu).unwrap();
                        line.run_within(BUSY, clock).unwrap()
                    })
                });
                ends.map(|end| end.join().unwrap())
            });
            assert!(times.iter().all(|ns| *ns > 1.0), "{times:?}");
        }
    }

    #[test]
    fn a_rank_that_is_not_there_is_noticed() {
        let (mut line, _) = Line::offer().unwrap();
        let error = line.run(Clock::monotonic()).unwrap_err().to_string();
        assert!(error.contains("does not answer"), "{error}");
    }

    #[test]
    fn ranks_on_one_cpu_are_given_up_in_time() {
        let clock = Clock::calibrate();
        let (mut first, handle) = Line::offer().unwrap();
        let mut second = Line::open(&handle).unwrap();
        let only = cpus().next().unwrap();
        let start = clock.now();
        std::thread::scope(|scope| {
            for line in [&mut first, &mut second] {
                scope.spawn(move || {
                    rustix::thread::sched_setaffinity(None, &only).unwrap();
                    // The other one may only see that this one has given up.
                    let error = line.run(clock).unwrap_err().to_string();
                    assert!(error.contains("off their CPUs") || error.contains("does not answer"), "{error}");
                });
            }
        });
        assert!(clock.now().since(start) < clock.ticks(2 * (LIMIT + PATIENCE)));
    }
}
