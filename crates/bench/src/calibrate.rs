//! The core-to-core latency: how long a cache line takes from the CPU of one rank to the CPU of
//! another rank of the same host.
//!
//! It is the lower limit of every latency through shared memory. It changes by a factor of up to 40
//! within seconds when a hypervisor moves virtual CPUs. So it is measured before and after each
//! point, and a point is marked as unstable if it changed in between.
//!
//! # Invariants
//!
//! * The placement of virtual CPUs can change during a measurement. So the core-to-core latency is
//!   measured before and after each point, and the series of samples is searched for steps.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use measure::clock::Clock;

use crate::Error;
use crate::shared::{Handle, Shared};

/// The number of batches whose median is taken, after one that warms up. A step of the clock may be
/// as long as one transfer (10 ns have been seen), so single round trips cannot be timed.
const BATCHES: usize = 41;
/// The number of round trips in a batch.
const ROUND_TRIPS: usize = 100;
/// How long to wait for one answer: on a busy machine the other rank may be preempted for long.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a calibration may take. It takes milliseconds if both ranks run. If a rank is preempted
/// in every round trip, it would take longer, and not give the core-to-core latency.
const LIMIT: Duration = Duration::from_secs(1);
/// The number of polls between readings of the clock.
const SPINS: u32 = 256;

/// A cache line that two ranks share.
pub(crate) struct Line {
    memory: Shared,
    first: bool,
    /// The last value of the previous run, from which the next run continues.
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

    /// Bounces the line and returns the median one-way time in ns. Both ranks call it at about the
    /// same time.
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
                let reason = "the ranks were preempted, by each other or by other processes".to_owned();
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

    /// The CPUs that this process may use, each as a set.
    fn cpus() -> impl Iterator<Item = rustix::thread::CpuSet> {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        (0..rustix::thread::CpuSet::MAX_CPU).filter(move |cpu| allowed.is_set(*cpu)).map(|cpu| {
            let mut only = rustix::thread::CpuSet::new();
            only.set(cpu);
            only
        })
    }

    /// Each thread has its own CPU, as ranks have. A busy machine rarely runs both at the same
    /// time, so the limit is longer than the limit of ranks.
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
                    // The other thread may only see that this one has given up.
                    let error = line.run(clock).unwrap_err().to_string();
                    assert!(error.contains("preempted") || error.contains("does not answer"), "{error}");
                });
            }
        });
        assert!(clock.now().since(start) < clock.ticks(2 * (LIMIT + PATIENCE)));
    }
}
