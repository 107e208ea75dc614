//! The lock of queues that one thread of a process uses most of the time.
//!
//! Most queues are used by one thread only, and a locked instruction waits for every store before it, also for those that
//! fetch a line from another CPU. So a lock that one thread takes again and again becomes that thread's own: it then takes
//! it with plain stores. Any other thread that comes has it back first, which costs a system call (`membarrier`), and makes
//! the lock hesitate longer before it becomes somebody's own again.
//!
//! Critical sections are tens of nanoseconds, so waiting spins; it yields when the holder seems to be off its CPU. No
//! lock is ever shared with another process: a process that is killed can leave none behind.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize, compiler_fence};

use rustix::thread::MembarrierCommand;

use crate::spin::wait_for;

/// Times in a row that a thread takes a fresh lock before it becomes its own; twice as many after each time that another
/// thread has had it back.
const STREAK: u32 = 16;
/// So often at most: two threads that take turns shall not pay for it for ever.
const RETURNS_MAX: u32 = 10;

/// Whether a thread can be made to show its stores: otherwise no lock becomes anybody's own.
static CAN_RETURN: AtomicBool = AtomicBool::new(false);

/// Lets locks become threads' own from now on, where the kernel can have them back.
pub(crate) fn allow_own_locks() {
    let registered = rustix::thread::membarrier(MembarrierCommand::RegisterPrivateExpedited);
    CAN_RETURN.store(registered.is_ok(), SeqCst);
}

pub(crate) struct OwnLock<T> {
    /// The thread whose own it is, 0 for nobody's. Changed by whoever holds `held`.
    own: AtomicUsize,
    /// That thread holds it.
    inside: AtomicBool,
    /// Somebody else holds it, or has it back.
    held: AtomicBool,
    habit: Habit,
    value: UnsafeCell<T>,
}

/// Who takes a lock that is nobody's own; under `held`.
struct Habit {
    last: Cell<usize>,
    streak: Cell<u32>,
    returns: Cell<u32>,
}

// SAFETY: the value and the habit are reached only by whoever holds the lock.
unsafe impl<T: Send> Sync for OwnLock<T> {}

pub(crate) struct Guard<'a, T> {
    lock: &'a OwnLock<T>,
    /// Taken as the thread's own.
    is_own: bool,
}

impl<T> OwnLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            own: AtomicUsize::new(0),
            inside: AtomicBool::new(false),
            held: AtomicBool::new(false),
            habit: Habit { last: Cell::new(0), streak: Cell::new(0), returns: Cell::new(0) },
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let thread = this_thread();
        if self.own.load(Relaxed) == thread {
            debug_assert!(!self.inside.load(Relaxed), "taken twice by one thread");
            self.inside.store(true, Relaxed);
            // Ordered by who has it back: that thread sees this store, or this one sees whose it is now.
            compiler_fence(SeqCst);
            if self.own.load(Acquire) == thread {
                return Guard { lock: self, is_own: true };
            }
            self.inside.store(false, Release);
        }
        self.take(thread);
        Guard { lock: self, is_own: false }
    }

    /// Takes a lock that is not this thread's own.
    #[inline]
    fn take(&self, thread: usize) {
        while self.held.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            wait_for(&self.held);
        }
        if self.own.load(Relaxed) != 0 {
            self.have_back();
        }
        let Habit { last, streak, returns } = &self.habit;
        streak.set(if last.replace(thread) == thread { streak.get() + 1 } else { 0 });
        if streak.get() >= STREAK << returns.get() {
            self.give_to(thread);
        }
    }

    /// From the next time on it is the thread's own. Called with `held`, which is only released after this.
    #[cold]
    fn give_to(&self, thread: usize) {
        let Habit { streak, returns, .. } = &self.habit;
        streak.set(0);
        if returns.get() < RETURNS_MAX && CAN_RETURN.load(Relaxed) {
            self.own.store(thread, Relaxed);
        }
    }

    /// Makes it nobody's own. Called with `held`.
    #[cold]
    fn have_back(&self) {
        let returns = &self.habit.returns;
        returns.set(returns.get() + 1);
        self.own.store(0, SeqCst);
        // From here on its thread sees that, or what it has stored before is seen here. That the call succeeds was seen when
        // the process registered for it.
        let _ = rustix::thread::membarrier(MembarrierCommand::PrivateExpedited);
        while self.inside.load(Acquire) {
            wait_for(&self.inside);
        }
    }
}

/// Distinguishes the threads that are alive.
#[inline]
fn this_thread() -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        let pointer: usize;
        // SAFETY: the first word of a thread's control block is its own address (System V ABI for x86-64, TLS variant II);
        // reading it changes nothing.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
        }
        pointer
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        thread_local! { static HERE: u8 = const { 0 } }
        HERE.with(|here| std::ptr::from_ref(here).addr())
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only way to the value and there is one guard at a time.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let word = if self.is_own { &self.lock.inside } else { &self.lock.held };
        word.store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds so often, as one thread does.
    fn add(lock: &OwnLock<[u64; 2]>, times: u64) {
        for _ in 0..times {
            let mut both = lock.lock();
            assert_eq!(both[0], both[1]);
            both[0] += 1;
            both[1] += 1;
        }
    }

    #[test]
    fn one_thread_at_a_time() {
        allow_own_locks();
        let lock = OwnLock::new([0, 0]);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| add(&lock, 100));
            }
        });
        assert_eq!(*lock.lock(), [300, 300]);
    }

    #[test]
    fn a_lock_becomes_the_own_of_the_one_thread_that_takes_it() {
        allow_own_locks();
        let lock = OwnLock::new([0, 0]);
        add(&lock, u64::from(STREAK));
        assert_eq!(lock.own.load(Relaxed), 0);
        add(&lock, 2);
        assert_eq!(lock.own.load(Relaxed), if CAN_RETURN.load(Relaxed) { this_thread() } else { 0 });
        std::thread::scope(|scope| scope.spawn(|| add(&lock, 1)).join().unwrap());
        assert_eq!(lock.own.load(Relaxed), 0, "another thread has it back");
        assert_eq!(*lock.lock(), [u64::from(STREAK) + 3; 2]);
    }

    /// Threads that have the lock back while its own thread is at it all the time.
    #[test]
    fn nothing_is_lost_while_a_lock_changes_hands() {
        allow_own_locks();
        for round in 0..200 {
            let lock = OwnLock::new([0, 0]);
            std::thread::scope(|scope| {
                for i in 0..3 {
                    let lock = &lock;
                    scope.spawn(move || {
                        std::thread::sleep(std::time::Duration::from_micros(i * round));
                        add(lock, 3000);
                    });
                }
            });
            assert_eq!(*lock.lock(), [9000, 9000]);
        }
    }
}
