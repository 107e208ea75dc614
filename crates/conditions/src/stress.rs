//! Other work on the host: threads of the guard, which is pinned to no CPU and ends with the agent.
//! A shield moves them like everybody else's, and they end with the guard, however it ends.

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
    /// Starts so many.
    ///
    /// # Errors
    ///
    /// If the system has no more threads; then none is left running.
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
        // It says nothing of any memory but itself.
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // What they do cannot fail.
            let _ = thread.join();
        }
    }
}

/// Numbers in a row, each from the one before: what a CPU does without memory, and without the
/// kernel.
fn compute(is_over: &AtomicBool) {
    let mut number = 1_u64;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..ROUND {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

/// Computed between two looks at whether it is over: well below a millisecond.
const ROUND: u32 = 10_000;
