//! Stores that bypass the cache, and whether they are faster on this machine.
//!
//! On some machines a receiver fetches dirty lines from the sender's cache so slowly that a copy
//! through memory is ten times faster; on others the caches are faster than memory. A process
//! therefore measures this before it has long messages: one thread passes messages to a thread on
//! another CPU, which reads them, through the caches and past them in turn.

use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A range of message lengths, and whether streaming pays for it.
struct Grade {
    /// The shortest length.
    from: usize,
    /// The length that is measured: long enough that its start and its end do not matter.
    tried: usize,
    pays: AtomicBool,
    once: Once,
}

/// On every machine that was measured, the caches are faster for shorter messages. A few messages
/// of the first grade fit in any cache, a few of the second in one that two CPUs share. Until the
/// result is known, and if there is none, all of them are streamed: that loses less if it is wrong.
static GRADES: [Grade; 2] = [Grade::new(8 << 10, 64 << 10), Grade::new(512 << 10, 1 << 20)];

impl Grade {
    const fn new(from: usize, tried: usize) -> Self {
        Self { from, tried, pays: AtomicBool::new(true), once: Once::new() }
    }
}

/// Whether a copy of `bytes` bytes should bypass the cache.
#[inline]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only x86-64 has copies that bypass the cache")
)]
pub(super) fn pays(bytes: usize) -> bool {
    let [shorter, longer] = &GRADES;
    bytes >= shorter.from && if bytes < longer.from { shorter } else { longer }.pays.load(Relaxed)
}

/// Decides, once per process, which way is faster, before there are `bytes` bytes at one place to
/// send. `decide` gets the index of a grade and a function that measures it.
pub(crate) fn calibrate(bytes: usize, decide: impl Fn(usize, &dyn Fn() -> Option<bool>) -> Option<bool>) {
    for (i, grade) in GRADES.iter().enumerate() {
        if bytes < grade.from {
            return;
        }
        grade.once.call_once(|| {
            if let Some(pays) = decide(i, &|| calibration::streaming_pays(grade.tried)) {
                grade.pays.store(pays, Relaxed);
            }
        });
    }
}

/// Copies bytes past the cache.
///
/// # Safety
/// `n` bytes are readable at `from` and writable at `to`, and the ranges do not overlap.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
pub(super) unsafe fn stream(from: *const u8, to: *mut u8, n: usize) {
    use std::arch::x86_64::{_mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    let head = to.align_offset(64).min(n);
    let body = (n - head) / 128 * 128;
    // SAFETY: head, body and the rest add up to n; streaming stores go to 32-byte aligned
    // addresses.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        let mut at = head;
        while at < head + body {
            let source = from.add(at);
            let target = to.add(at);
            let lines = [0, 32, 64, 96].map(|i| _mm256_loadu_si256(source.add(i).cast()));
            for (i, line) in lines.into_iter().enumerate() {
                _mm256_stream_si256(target.add(i * 32).cast(), line);
            }
            at += 128;
        }
        std::ptr::copy_nonoverlapping(from.add(at), to.add(at), n - at);
        // Streaming stores are not ordered with later ones: the completion must not overtake the
        // payload.
        _mm_sfence();
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod calibration {
    /// No store bypasses the cache on this architecture.
    pub(super) fn streaming_pays(_: usize) -> Option<bool> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod calibration {
    use std::hint::black_box;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use std::sync::atomic::{AtomicU32, AtomicU64};
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    use super::stream;
    use crate::sys::timer::Instant;

    /// Messages that may be under way.
    const WINDOW: u32 = 4;
    /// Messages that are timed together, and how often each way is measured. The fastest batch
    /// counts, because every disturbance makes a batch slower. On an idle machine all of it takes
    /// some milliseconds.
    const BATCH: u32 = 4;
    const TURNS: u32 = 4;
    /// The first turn of each way only warms up.
    const MESSAGES: u32 = 2 * (TURNS + 1) * BATCH;
    /// The time limit.
    const PATIENCE: Duration = Duration::from_millis(30);

    /// The state that the two threads share.
    struct Race {
        /// The size of a message in bytes.
        bytes: usize,
        /// The words of the messages that are under way.
        words: Vec<AtomicU64>,
        /// The numbers of messages that were sent, and that were read.
        sent: AtomicU32,
        read: AtomicU32,
        end: Instant,
    }

    /// Whether messages of this size are faster by streaming than through the caches; `None` if
    /// that cannot be measured: there is only one CPU, or the others are busy.
    pub(super) fn streaming_pays(bytes: usize) -> Option<bool> {
        if cfg!(sanitized) || cfg!(miri) || !is_x86_feature_detected!("avx") {
            return None;
        }
        let race = Arc::new(Race {
            bytes,
            words: (0..WINDOW as usize * bytes / 8).map(|_| AtomicU64::new(0)).collect(),
            sent: AtomicU32::new(0),
            read: AtomicU32::new(0),
            end: Instant::now() + PATIENCE,
        });
        let (ready, is_ready) = channel();
        let reader = Arc::clone(&race);
        let here = sched_getcpu();
        // The thread is never joined: it ends soon after this one has given up, or when its CPU is
        // free again.
        std::thread::Builder::new().spawn(move || reader.read_all(here, &ready)).ok()?;
        // The new thread may have to start on this CPU, which this thread leaves to it meanwhile.
        is_ready.recv_timeout(PATIENCE).ok()?;
        let [cached, streamed] = race.send_all()?;
        Some(streamed < cached)
    }

    impl Race {
        /// Waits until the other thread has reached `until`, or until the time limit.
        fn wait(&self, count: &AtomicU32, until: u32) -> Option<()> {
            while count.load(Acquire) < until {
                if Instant::now() > self.end {
                    return None;
                }
                std::hint::spin_loop();
            }
            Some(())
        }

        /// The words of message `n`.
        fn message(&self, n: u32) -> &[AtomicU64] {
            let words = self.bytes / 8;
            &self.words[(n % WINDOW) as usize * words..][..words]
        }

        /// Returns the shortest time of a batch through the caches, and past them.
        fn send_all(&self) -> Option<[Duration; 2]> {
            let source = vec![1_u8; self.bytes];
            let mut fastest = [Duration::MAX; 2];
            let mut start = Instant::now();
            for n in 0..MESSAGES {
                self.wait(&self.read, (n + 1).saturating_sub(WINDOW))?;
                let way = (n / BATCH % 2) as usize;
                let to = self.message(n).as_ptr().cast_mut().cast::<u8>();
                // SAFETY: both have room for a message, the reader waits until this one counts as
                // sent, and AVX is available.
                unsafe {
                    if way == 0 {
                        std::ptr::copy_nonoverlapping(source.as_ptr(), to, self.bytes);
                    } else {
                        stream(source.as_ptr(), to, self.bytes);
                    }
                }
                self.sent.store(n + 1, Release);
                if (n + 1).is_multiple_of(BATCH) {
                    self.wait(&self.read, n + 1)?;
                    if n >= 2 * BATCH {
                        fastest[way] = fastest[way].min(start.elapsed());
                    }
                    start = Instant::now();
                }
            }
            Some(fastest)
        }

        /// Reads all messages on another CPU than `other_than`.
        fn read_all(&self, other_than: usize, ready: &Sender<()>) -> Option<()> {
            go_elsewhere(other_than)?;
            ready.send(()).ok()?;
            for n in 0..MESSAGES {
                self.wait(&self.sent, n + 1)?;
                let sum =
                    self.message(n).iter().fold(0, |sum: u64, word| sum.wrapping_add(word.load(Relaxed)));
                black_box(sum);
                self.read.store(n + 1, Release);
            }
            Some(())
        }
    }

    /// Moves this thread to another CPU; if necessary, to one outside of the process's affinity for
    /// this short time.
    fn go_elsewhere(than: usize) -> Option<()> {
        let mut allowed = sched_getaffinity(None).ok()?;
        allowed.unset(than);
        if allowed.count() == 0 {
            allowed = CpuSet::new();
            (0..CpuSet::MAX_CPU).filter(|cpu| *cpu != than).for_each(|cpu| allowed.set(cpu));
        }
        sched_setaffinity(None, &allowed).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use std::time::Duration;

    use super::*;

    #[test]
    fn each_length_has_its_grade() {
        let [shorter, longer] = &GRADES;
        let before = [shorter, longer].map(|grade| grade.pays.load(Relaxed));
        for (short, long) in [(false, false), (false, true), (true, false), (true, true)] {
            shorter.pays.store(short, Relaxed);
            longer.pays.store(long, Relaxed);
            let found =
                [0, shorter.from - 1, shorter.from, longer.from - 1, longer.from, usize::MAX].map(pays);
            assert_eq!(found, [false, false, short, short, long, long]);
        }
        shorter.pays.store(before[0], Relaxed);
        longer.pays.store(before[1], Relaxed);
    }

    /// On a busy machine there may be no result, but the calibration ends soon.
    #[test]
    fn nobody_waits_long_for_a_calibration() {
        for grade in &GRADES {
            let start = Instant::now();
            let found = calibration::streaming_pays(grade.tried);
            assert!(start.elapsed() < Duration::from_secs(2), "{found:?} after {:?}", start.elapsed());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "instructions that an interpreter does not know")]
    fn streaming_copies_every_byte_and_no_more() {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx") {
            let source: Vec<u8> = (0..3000_u32).map(|i| (i % 251) as u8 + 1).collect();
            for (at, n) in [(0, 0), (0, 1), (3, 63), (64, 128), (1, 129), (63, 1000), (5, 2900)] {
                let mut target = vec![0_u8; source.len() + 200];
                // SAFETY: AVX is available, and both have room for these bytes.
                unsafe { stream(source.as_ptr(), target.as_mut_ptr().add(at), n) };
                assert!(target[at..at + n] == source[..n], "{n} at {at}");
                assert!(target[..at].iter().chain(&target[at + n..]).all(|byte| *byte == 0), "{n} at {at}");
            }
        }
    }
}
