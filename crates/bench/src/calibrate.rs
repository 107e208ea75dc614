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
use rustix::thread::{CpuSet, sched_setaffinity};

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

/// Measures the core-to-core latency of two CPUs, in ns, with a thread on each. Fails if this
/// process may not use both, or if the CPUs are busy.
pub fn core_to_core(cpus: [u32; 2]) -> Result<f64, Error> {
    let clock = Clock::calibrate();
    let [first, second] = two_threads(cpus, &|line| line.run(clock))?;
    Ok(first?.max(second?))
}

/// Runs each end of a line in a thread on its CPU.
fn two_threads<T: Send>(cpus: [u32; 2], run: &(dyn Fn(&mut Line) -> T + Sync)) -> Result<[T; 2], Error> {
    let (first, handle) = Line::offer()?;
    let second = Line::open(&handle)?;
    let on_its_cpu = |mut line: Line, cpu: u32| -> Result<T, Error> {
        let mut only = CpuSet::new();
        only.set(cpu as usize);
        let pinned = sched_setaffinity(None, &only);
        pinned.map_err(|errno| failed(format!("a thread may not run on CPU {cpu}: {errno}")))?;
        Ok(run(&mut line))
    };
    let [one, other] = cpus;
    std::thread::scope(|scope| {
        let second = scope.spawn(move || on_its_cpu(second, other));
        let first = scope.spawn(move || on_its_cpu(first, one)).join();
        // A panic of a thread is a defect, as it would be in this one.
        Ok([first.expect("the thread measured")?, second.join().expect("the thread measured")?])
    })
}

fn failed(reason: String) -> Error {
    Error::Calibration { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first CPUs that this process may use.
    fn cpus() -> Vec<u32> {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(2).map(|cpu| cpu as u32).collect()
    }

    /// Each thread has its own CPU, as ranks have. A busy machine rarely runs both at the same
    /// time, so the limit is longer than the limit of ranks.
    #[test]
    fn two_ranks_agree_on_the_time_of_a_line() {
        const BUSY: Duration = Duration::from_secs(100);
        let &[one, other] = &cpus()[..] else {
            return eprintln!("SKIPPED (two CPUs): this process may use one");
        };
        let clock = Clock::calibrate();
        let twice = |line: &mut Line| [(); 2].map(|()| line.run_within(BUSY, clock).unwrap());
        let times = two_threads([one, other], &twice).unwrap();
        assert!(times.as_flattened().iter().all(|ns| *ns > 1.0), "{times:?}");
    }

    #[test]
    fn a_cpu_that_may_not_be_used_is_named() {
        let error = core_to_core([0, CpuSet::MAX_CPU as u32 - 1]).unwrap_err().to_string();
        assert!(error.contains("may not run on CPU 1023"), "{error}");
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
        let only = cpus()[0];
        let start = clock.now();
        for error in two_threads([only; 2], &|line| line.run(clock).unwrap_err().to_string()).unwrap() {
            // The other thread may only see that this one has given up.
            assert!(error.contains("preempted") || error.contains("does not answer"), "{error}");
        }
        assert!(clock.now().since(start) < clock.ticks(2 * (LIMIT + PATIENCE)));
    }
}
