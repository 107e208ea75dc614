//! What protocols between threads and processes are made of, so that one body of them runs on the
//! CPU and under a model checker.
//!
//! A protocol that is written over [`Atomic`] is compiled twice: with the standard library's
//! atomics for the device, and in its tests with those of loom, which tries every interleaving and
//! every value that the memory model lets a load return. What a model can tell and what not stands
//! in `sync/model.rs`.
//!
//! # Invariants
//!
//! * A protocol between threads or processes is written over `sync::Atomic`: its loom model runs
//!   the device's own code, and has a fault that it must find.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};

use rustix::thread::MembarrierCommand;

#[cfg(test)]
pub(crate) mod model;

/// What a protocol needs besides its words.
pub(crate) trait Machine {
    /// Turns of a loop that waits for another thread before the CPU is given away.
    const SPINS: u32;

    /// The fence of whoever pays nothing for the order of his stores and loads: it orders nothing
    /// but with the [`heavy`](Self::heavy) fence of somebody else, and towards that one it is as
    /// sequentially consistent.
    fn light();
    /// The fence of whoever pays for both.
    fn heavy();
    /// A sequentially consistent fence.
    fn full();
    /// A turn of a loop that waits for another CPU.
    fn pause();
    /// Gives the CPU away.
    fn yield_cpu();
}

/// A word that several threads or processes reach.
pub(crate) trait Atomic {
    type Value: Copy + Debug + Eq;
    type On: Machine;

    fn load(&self, order: Ordering) -> Self::Value;
    fn store(&self, value: Self::Value, order: Ordering);
    /// May fail where the word is as expected.
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

/// Lets words of a machine be used in protocols.
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
