//! Load on the host's CPUs: threads of the guard. They are pinned to no CPU, a shield moves them
//! like all other threads, and they end with the guard, however it ends.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// Threads that compute without a pause until this is dropped.
#[derive(Debug)]
pub(crate) struct Stress {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Stress {
    /// Starts this number of threads.
    ///
    /// # Errors
    ///
    /// If the system has no more threads. Then none is left running.
    pub(crate) fn start(threads: usize) -> io::Result<Self> {
        let mut stress = Self { is_over: Arc::default(), threads: Vec::new() };
        for _ in 0..threads {
            let is_over = Arc::clone(&stress.is_over);
            stress.threads.push(Builder::new().name("stress".to_owned()).spawn(move || compute(&is_over))?);
        }
        Ok(stress)
    }
}

impl Drop for Stress {
    fn drop(&mut self) {
        // The flag guards no other memory.
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The threads cannot fail.
            let _ = thread.join();
        }
    }
}

/// Computes a sequence of dependent numbers: CPU work without memory accesses or system calls.
fn compute(is_over: &AtomicBool) {
    let mut number = 1_u64;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..ROUND {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

/// Iterations between two checks of the flag: well below a millisecond.
const ROUND: u32 = 10_000;
