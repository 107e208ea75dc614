//! The primitives of protocols between threads and processes. The same code of a protocol runs on
//! the CPU and under a model checker.
//!
//! A protocol that is written over [`Atomic`] is compiled twice: for the device with the standard
//! library's atomics, and in its tests with the atomics of loom, which tries every interleaving and
//! every value that the memory model lets a load return. `sync/model.rs` says what a model can show
//! and what it cannot.
//!
//! # Invariants
//!
//! * A protocol between threads or processes is written over `sync::Atomic`. Its loom model runs
//!   the device's own code, and must find at least one planted fault.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};

use rustix::thread::MembarrierCommand;

#[cfg(test)]
pub(crate) mod model;

/// What a protocol needs in addition to its words.
pub(crate) trait Machine {
    /// Iterations of a loop that waits for another thread before it yields the CPU.
    const SPINS: u32;

    /// The fence of the side that pays nothing for the order of its stores and loads. Alone it
    /// orders nothing; towards a [`heavy`](Self::heavy) fence of another thread it is sequentially
    /// consistent.
    fn light();
    /// The fence of the side that pays for both.
    fn heavy();
    /// A sequentially consistent fence.
    fn full();
    /// An iteration of a loop that waits for another CPU.
    fn pause();
    /// Yields the CPU.
    fn yield_cpu();
}

/// A word that several threads or processes access.
pub(crate) trait Atomic {
    type Value: Copy + Debug + Eq;
    type On: Machine;

    fn load(&self, order: Ordering) -> Self::Value;
    fn store(&self, value: Self::Value, order: Ordering);
    /// May fail even if the word has the expected value.
    fn compare_exchange_weak(
        &self,
        expected: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value> {
        self.compare_exchange(expected, new, success, failure)
    }
    fn compare_exchange(
        &self,
        expected: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
}

/// The machine that the device runs on.
pub(crate) struct Cpu;

impl Machine for Cpu {
    const SPINS: u32 = 1000;

    #[inline]
    fn light() {
        compiler_fence(Ordering::SeqCst);
    }

    fn heavy() {
        fence(Ordering::SeqCst);
        let _ = rustix::thread::membarrier(MembarrierCommand::GlobalExpedited);
    }

    #[inline]
    fn full() {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn pause() {
        std::hint::spin_loop();
    }

    fn yield_cpu() {
        std::thread::yield_now();
    }
}

/// Implements [`Atomic`] for words of a machine.
macro_rules! atomics {
    ($machine:ty: $($atomic:ty => $value:ty),*) => {$(
        impl $crate::sys::sync::Atomic for $atomic {
            type Value = $value;
            type On = $machine;

            #[inline]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline]
            fn compare_exchange_weak(
                &self,
                expected: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange_weak(expected, new, success, failure)
            }

            #[inline]
            fn compare_exchange(
                &self,
                expected: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(expected, new, success, failure)
            }
        }
    )*};
}
pub(crate) use atomics;

atomics!(Cpu: AtomicBool => bool, AtomicU32 => u32, AtomicU64 => u64, AtomicUsize => usize);
