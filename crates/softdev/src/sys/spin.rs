//! A lock between the threads of one process.
//!
//! Critical sections take tens of nanoseconds, so a waiting thread spins; it yields the CPU if the
//! holder seems to be preempted. No lock is shared with another process, so a killed process leaves
//! none behind.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::sync::{Atomic, Machine};

pub(crate) struct SpinLock<T, Flag = AtomicBool> {
    held: Flag,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock accesses the value.
unsafe impl<T: Send, Flag: Sync> Sync for SpinLock<T, Flag> {}

pub(crate) struct Guard<'a, T, Flag: Atomic<Value = bool> = AtomicBool>(&'a SpinLock<T, Flag>);

impl<T> SpinLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }
}

impl<T, Flag: Atomic<Value = bool>> SpinLock<T, Flag> {
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T, Flag> {
        while self.held.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            wait_for(&self.held);
        }
        Guard(self)
    }

    /// Takes the lock and keeps it until a guard of [`held`](Self::held) is dropped.
    #[inline]
    pub(crate) fn hold(&self) {
        std::mem::forget(self.lock());
    }

    /// As [`hold`](Self::hold), if the program promises that only one thread takes the lock: one
    /// plain store.
    #[inline]
    pub(crate) fn hold_alone(&self) {
        self.held.store(true, Ordering::Relaxed);
    }

    /// Whether a thread holds the lock.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the guard of a lock that is held across calls. It releases the lock unless it is
    /// forgotten.
    ///
    /// # Safety
    /// The caller holds the lock, by [`hold`](Self::hold) or [`hold_alone`](Self::hold_alone), and
    /// has no other guard.
    #[inline]
    pub(crate) unsafe fn held(&self) -> Guard<'_, T, Flag> {
        Guard(self)
    }
}

/// Waits a while for a flag to be cleared.
#[cold]
pub(crate) fn wait_for<Flag: Atomic<Value = bool>>(flag: &Flag) {
    for _ in 0..Flag::On::SPINS {
        if !flag.load(Ordering::Relaxed) {
            return;
        }
        Flag::On::pause();
    }
    Flag::On::yield_cpu();
}

impl<T, Flag: Atomic<Value = bool>> Deref for Guard<'_, T, Flag> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only access to the value, and there is one guard at a time.
        unsafe { &*self.0.value.get() }
    }
}

impl<T, Flag: Atomic<Value = bool>> DerefMut for Guard<'_, T, Flag> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the guard is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T, Flag: Atomic<Value = bool>> Drop for Guard<'_, T, Flag> {
    #[inline]
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use loom::cell;
    use loom::sync::Arc;

    use super::*;
    use crate::sys::sync::model::{self, Weaker};

    #[test]
    fn one_thread_at_a_time() {
        let lock = SpinLock::new([0, 0]);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let mut both = lock.lock();
                        assert_eq!(both[0], both[1]);
                        both[0] += 1;
                        both[1] += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), [300, 300]);
    }

    /// Two threads count under a lock with this flag, each `turns` times. (With three threads, two
    /// that wait may alternate for ever: loom knows no fairness.)
    fn count<Flag>(
        turns: u32,
        flag: impl Fn() -> Flag + Send + Sync + 'static,
    ) -> impl Fn() + Send + Sync + 'static
    where
        Flag: Atomic<Value = bool> + Send + Sync + 'static,
    {
        move || {
            let value = UnsafeCell::new(cell::UnsafeCell::new(0));
            let lock = Arc::new(SpinLock { held: flag(), value });
            let work = move |lock: &SpinLock<cell::UnsafeCell<u32>, Flag>| {
                for _ in 0..turns {
                    // SAFETY: the lock is held; otherwise loom reports it.
                    lock.lock().with_mut(|n| unsafe { *n += 1 });
                }
            };
            let other = Arc::clone(&lock);
            let other = loom::thread::spawn(move || work(&other));
            work(&lock);
            other.join().unwrap();
            // SAFETY: as above.
            lock.lock().with(|n| assert_eq!(unsafe { *n }, 2 * turns));
        }
    }

    #[test]
    fn model_of_the_lock() {
        let flag = || loom::sync::atomic::AtomicBool::new(false);
        model::check(count(2, flag));
    }

    #[test]
    fn the_model_needs_the_order_of_lock_and_unlock() {
        let without = |order| move || Weaker { word: loom::sync::atomic::AtomicBool::new(false), order };
        for order in [Ordering::Acquire, Ordering::Release] {
            let why = model::must_fail(count(1, without(order)));
            assert!(why.contains("access"), "{why}");
        }
    }

    #[test]
    fn a_lock_outlives_the_call_that_takes_it() {
        let lock = SpinLock::new(0);
        lock.hold();
        assert!(lock.is_held());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| *lock.lock());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!other.is_finished());
            // SAFETY: this thread holds it.
            *unsafe { lock.held() } += 1;
            assert_eq!(other.join().unwrap(), 1);
        });
        lock.hold_alone();
        // SAFETY: as above.
        drop(unsafe { lock.held() });
        assert!(!lock.is_held());
    }
}
