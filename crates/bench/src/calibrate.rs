//! The raw one-way time of a cache line between the CPUs of two ranks of one host.
//!
//! It is the floor under every latency through shared memory, and it changes when a hypervisor moves virtual CPUs: by
//! up to forty times within seconds. So it is measured before and after each point, and a point is flagged when it
//! changed in between.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use measure::clock::Clock;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Batches whose median is taken, after one that warms up. A time stamp may resolve no better than the line takes (10 ns
/// have been seen), so single round trips cannot be timed.
const BATCHES: usize = 41;
/// Round trips in a batch.
const ROUND_TRIPS: usize = 100;
/// How long one answer may take before the other rank has gone: a busy machine may keep it off its CPU for long.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a calibration may take in all: milliseconds where both ranks run, seconds where one is kept off its CPU at every
/// turn, which is then no time of a cache line.
const LIMIT: Duration = Duration::from_secs(4);
/// Fruitless looks between glances at the clock.
const SPINS: u32 = 256;
const PAGE: usize = 4096;

/// How rank 1 opens the line that rank 0 has made.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handle {
    pid: u32,
    fd: i32,
    inode: u64,
    /// The CPU of rank 0, where it may use only one.
    cpu: Option<usize>,
}

/// A cache line that two ranks share.
pub(crate) struct Line {
    word: *const AtomicU64,
    /// Held open for the other rank to find.
    file: OwnedFd,
    first: bool,
    /// Value that the last run ended with: the next goes on from it.
    at: u64,
}

// SAFETY: the pointer is to a mapping that the value owns, and what is there is atomic.
unsafe impl Send for Line {}

impl Line {
    /// Makes the line (rank 0).
    pub(crate) fn offer() -> Result<(Self, Handle), Error> {
        let file = rustix::fs::memfd_create("rdmascope-calibration", MemfdFlags::CLOEXEC).map_err(failed)?;
        rustix::fs::ftruncate(&file, PAGE as u64).map_err(failed)?;
        let inode = rustix::fs::fstat(&file).map_err(failed)?.st_ino;
        let handle = Handle { pid: std::process::id(), fd: file.as_raw_fd(), inode, cpu: only_cpu() };
        Ok((Self::map(file, true)?, handle))
    }

    /// Opens the line of another process of this host (rank 1).
    pub(crate) fn open(handle: &Handle) -> Result<Self, Error> {
        let path = format!("/proc/{}/fd/{}", handle.pid, handle.fd);
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        if rustix::fs::fstat(&file).map_err(failed)?.st_ino != handle.inode {
            return Err(Error::Calibration { reason: "the ranks are not on one host".to_owned() });
        }
        if handle.cpu.is_some() && handle.cpu == only_cpu() {
            return Err(Error::Calibration { reason: "the ranks share one CPU".to_owned() });
        }
        Self::map(file, false)
    }

    fn map(file: OwnedFd, first: bool) -> Result<Self, Error> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), PAGE, protection, flags, &file, 0) };
        Ok(Self { word: base.map_err(failed)?.cast(), file, first, at: 0 })
    }

    /// Bounces the line; both ranks call it at about the same time. Gives the median one-way time in ns.
    pub(crate) fn run(&mut self, clock: Clock) -> Result<f64, Error> {
        self.run_within(LIMIT, clock)
    }

    fn run_within(&mut self, limit: Duration, clock: Clock) -> Result<f64, Error> {
        let mut times = Vec::with_capacity(BATCHES + 1);
        // SAFETY: the mapping is of a page, aligned, and lives as long as the value.
        let word = unsafe { &*self.word };
        let end = clock.now().0.saturating_add(clock.ticks(limit));
        for _ in 0..=BATCHES {
            let before = clock.now();
            if before.0 > end {
                let reason = "the ranks keep each other, or others keep them, off their CPUs".to_owned();
                return Err(Error::Calibration { reason });
            }
            for _ in 0..ROUND_TRIPS {
                self.bounce(word, clock)?;
            }
            times.push(clock.now().since(before));
        }
        let times = &mut times[1..];
        times.sort_unstable();
        Ok(clock.ns_f64(times[BATCHES / 2]) / (2 * ROUND_TRIPS) as f64)
    }

    /// One round trip.
    #[inline]
    fn bounce(&mut self, word: &AtomicU64, clock: Clock) -> Result<(), Error> {
        let (ping, pong) = (self.at + 1, self.at + 2);
        self.at = pong;
        if self.first {
            word.store(ping, Release);
            await_value(word, pong, clock)
        } else {
            await_value(word, ping, clock)?;
            word.store(pong, Release);
            Ok(())
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference to it outlives the value.
        let _ = unsafe { rustix::mm::munmap(self.word.cast_mut().cast(), PAGE) };
        let _ = &self.file;
    }
}

/// The CPU of this process, where it may use only one.
pub(crate) fn only_cpu() -> Option<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    cpus.next().filter(|_| cpus.next().is_none())
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

fn failed(errno: rustix::io::Errno) -> Error {
    Error::Calibration { reason: std::io::Error::from(errno).to_string() }
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

    /// Each on a CPU of its own, as ranks are. A busy machine lets both run at the same time now and then only, for which ranks
    /// do not wait so long.
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

    #[test]
    fn another_file_is_not_taken_for_the_line() {
        let (_line, handle) = Line::offer().unwrap();
        assert!(Line::open(&Handle { inode: handle.inode + 1, ..handle }).is_err());
        assert!(Line::open(&Handle { fd: 9999, ..handle }).is_err());
    }
}
