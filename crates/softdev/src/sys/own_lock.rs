//! A biased lock, for queues that one thread of a process uses most of the time.
//!
//! Most queues are used by one thread only, and a locked instruction waits for all earlier stores,
//! even for those that fetch a cache line from another CPU. A lock that one thread takes repeatedly
//! is therefore biased towards that thread (`own`), which then takes it with plain stores. Any
//! other thread must first revoke the bias. That costs a system call (`membarrier`), and doubles
//! the number of times after which the lock is biased again.
//!
//! Critical sections take tens of nanoseconds, so a waiting thread spins; it yields the CPU if the
//! holder seems to be preempted. No lock is shared with another process, so a killed process leaves
//! none behind.
//!
//! # Invariants
//!
//! * A thread that takes memory or a connection away pays for the memory order (`membarrier`) and
//!   waits; a thread that uses memory makes two plain stores.
//! * A biased lock works in the same way: its thread makes two plain stores, and the thread that
//!   revokes the bias pays and waits.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use rustix::thread::MembarrierCommand;

use crate::sys::spin::wait_for;
use crate::sys::sync::{Atomic, Cpu, Machine};

/// The maximum number of times that a lock is biased: two threads that take turns must not pay for
/// it for ever.
const RETURNS_MAX: u32 = 10;

/// The bits of [`OwnLock::own`] that number the biases of a lock.
const TIME: usize = 15;

const _: () = assert!(RETURNS_MAX as usize <= TIME, "each bias of a lock has its flag");

/// Whether a thread can be made to show its stores: otherwise no lock is ever biased.
static CAN_RETURN: AtomicBool = AtomicBool::new(false);

/// Allows biased locks from now on, if the kernel can revoke a bias.
pub(crate) fn allow_own_locks() {
    let registered = rustix::thread::membarrier(MembarrierCommand::RegisterPrivateExpedited);
    CAN_RETURN.store(registered.is_ok(), SeqCst);
}

/// What the lock needs of a machine, in addition.
pub(crate) trait Threads: Machine {
    /// How often in a row a thread takes a new lock before the lock is biased towards it. The
    /// number doubles with each revocation.
    const STREAK: u32;

    /// Returns a number that distinguishes the threads that are alive. A lock can be biased towards
    /// a thread only if the bits of [`TIME`] are clear in its number.
    fn this_thread() -> usize;
    /// Whether a bias can be revoked.
    fn can_return() -> bool;
    /// As [`heavy`](Machine::heavy), towards the threads of this process.
    fn heavy_here();
}

impl Threads for Cpu {
    const STREAK: u32 = 16;

    #[inline]
    fn this_thread() -> usize {
        this_thread()
    }

    fn can_return() -> bool {
        CAN_RETURN.load(Relaxed)
    }

    fn heavy_here() {
        // The registration has shown that the kernel has this call.
        let _ = rustix::thread::membarrier(MembarrierCommand::PrivateExpedited);
    }
}

pub(crate) struct OwnLock<T, Word = AtomicUsize, Flag = AtomicBool, const TIMES: usize = { TIME + 1 }> {
    /// The thread that the lock is biased towards, and in the bits of [`TIME`] the number of the
    /// bias; 0 without a bias. Changed only by the holder of `held`.
    own: Word,
    /// Whether that thread holds the lock: one flag for each bias. A thread may be stopped between
    /// its load of `own` and its store to the flag. It then clears the flag of its own bias, and
    /// not the flag of a later bias of another thread.
    inside: [Flag; TIMES],
    /// Another thread holds the lock, or revokes the bias.
    held: Flag,
    habit: Habit,
    value: UnsafeCell<T>,
}

/// Which thread takes the unbiased lock; protected by `held`.
#[derive(Default)]
struct Habit {
    last: Cell<usize>,
    streak: Cell<u32>,
    returns: Cell<u32>,
}

// SAFETY: only the holder of the lock accesses the value and the habit.
unsafe impl<T: Send, Word: Sync, Flag: Sync, const TIMES: usize> Sync for OwnLock<T, Word, Flag, TIMES> {}

pub(crate) struct Guard<'a, T, Flag: Atomic<Value = bool> = AtomicBool> {
    value: &'a UnsafeCell<T>,
    /// The flag that says that the lock is held.
    flag: &'a Flag,
}

impl<T> OwnLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        let habit = Habit { last: Cell::new(0), streak: Cell::new(0), returns: Cell::new(0) };
        Self {
            own: AtomicUsize::new(0),
            inside: [const { AtomicBool::new(false) }; TIME + 1],
            held: AtomicBool::new(false),
            habit,
            value: UnsafeCell::new(value),
        }
    }
}

impl<T, Word, Flag, const TIMES: usize> OwnLock<T, Word, Flag, TIMES>
where
    Word: Atomic<Value = usize>,
    Word::On: Threads,
    Flag: Atomic<Value = bool>,
{
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T, Flag> {
        let thread = Word::On::this_thread();
        let own = self.own.load(Relaxed);
        if own & !TIME == thread {
            let flag = self.inside(own);
            debug_assert!(!flag.load(Relaxed), "taken twice by one thread");
            flag.store(true, Relaxed);
            // Ordered by the thread that revokes the bias: that thread sees this store, or this one
            // sees that `own` has changed.
            Word::On::light();
            if self.own.load(Acquire) == own {
                return Guard { value: &self.value, flag };
            }
            flag.store(false, Release);
        }
        self.take(thread);
        Guard { value: &self.value, flag: &self.held }
    }

    /// Takes the lock unless another thread seems to hold it at the moment. For a caller whose work
    /// the holder does as well, and that meanwhile holds something that other threads need.
    #[inline]
    pub(crate) fn lock_if_free(&self) -> Option<Guard<'_, T, Flag>> {
        let own = self.own.load(Relaxed);
        let is_mine = own & !TIME == Word::On::this_thread();
        let is_held = || self.held.load(Relaxed) || own != 0 && self.inside(own).load(Relaxed);
        (is_mine || !is_held()).then(|| self.lock())
    }

    /// Returns the flag of a bias: whether its thread holds the lock.
    #[inline]
    fn inside(&self, own: usize) -> &Flag {
        &self.inside[(own & TIME) % TIMES]
    }

    /// Takes a lock that is not biased towards this thread.
    #[inline]
    fn take(&self, thread: usize) {
        while self.held.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            wait_for(&self.held);
        }
        let own = self.own.load(Relaxed);
        if own != 0 {
            self.have_back(own);
        }
        let Habit { last, streak, returns } = &self.habit;
        streak.set(if last.replace(thread) == thread { streak.get() + 1 } else { 0 });
        if streak.get() >= Word::On::STREAK << returns.get() {
            self.give_to(thread);
        }
    }

    /// Biases the lock towards the thread, from the next time on. Called with `held`, which is
    /// released only after this.
    #[cold]
    fn give_to(&self, thread: usize) {
        let Habit { streak, returns, .. } = &self.habit;
        streak.set(0);
        if returns.get() < RETURNS_MAX && thread & TIME == 0 && Word::On::can_return() {
            self.own.store(thread | returns.get() as usize, Relaxed);
        }
    }

    /// Revokes the bias. Called with `held`.
    #[cold]
    fn have_back(&self, own: usize) {
        let returns = &self.habit.returns;
        returns.set(returns.get() + 1);
        self.own.store(0, SeqCst);
        // From here on, the thread sees that the bias is revoked, or its earlier stores are seen
        // here.
        Word::On::heavy_here();
        let inside = self.inside(own);
        while inside.load(Acquire) {
            wait_for(inside);
        }
    }
}

/// Distinguishes the threads that are alive. A new thread may have the number of one that has
/// ended, and with it the locks that are biased towards it: the kernel and the C library order the
/// two threads, which ThreadSanitizer does not know.
#[inline]
fn this_thread() -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(sanitized)))]
    {
        let pointer: usize;
        // SAFETY: the first word of a thread's control block is its own address (System V ABI for
        // x86-64, TLS variant II); reading it changes nothing.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
        }
        pointer
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(sanitized))))]
    {
        static NEXT: AtomicUsize = AtomicUsize::new(TIME + 1);
        thread_local! { static NUMBER: usize = NEXT.fetch_add(TIME + 1, Relaxed) }
        NUMBER.with(|number| *number)
    }
}

impl<T, Flag: Atomic<Value = bool>> Deref for Guard<'_, T, Flag> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only access to the value, and there is one guard at a time.
        unsafe { &*self.value.get() }
    }
}

impl<T, Flag: Atomic<Value = bool>> DerefMut for Guard<'_, T, Flag> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the guard is borrowed mutably.
        unsafe { &mut *self.value.get() }
    }
}

impl<T, Flag: Atomic<Value = bool>> Drop for Guard<'_, T, Flag> {
    #[inline]
    fn drop(&mut self) {
        self.flag.store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::{cell, thread};

    use super::*;
    use crate::sys::sync::model::{self, Loom, Moved, NoHeavy, NoLight, Weaker, Without};

    impl Threads for Loom {
        /// A lock is biased towards each thread that takes it, from the next time on.
        const STREAK: u32 = 0;

        fn this_thread() -> usize {
            loom::thread_local! { static HERE: Box<u128> = Box::new(0) }
            HERE.with(|here| std::ptr::from_ref(&**here).addr())
        }

        fn can_return() -> bool {
            true
        }

        fn heavy_here() {
            Self::heavy();
        }
    }

    impl<On, const NO_LIGHT: bool, const NO_HEAVY: bool, const NO_FULL: bool> Threads
        for Without<On, NO_LIGHT, NO_HEAVY, NO_FULL>
    where
        On: Threads,
    {
        const STREAK: u32 = On::STREAK;

        fn this_thread() -> usize {
            On::this_thread()
        }

        fn can_return() -> bool {
            On::can_return()
        }

        fn heavy_here() {
            Self::heavy();
        }
    }

    /// Adds `times` times, as one thread does.
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
        add(&lock, u64::from(Cpu::STREAK));
        assert_eq!(lock.own.load(Relaxed), 0);
        add(&lock, 2);
        assert_eq!(lock.own.load(Relaxed), if CAN_RETURN.load(Relaxed) { this_thread() } else { 0 });
        std::thread::scope(|scope| scope.spawn(|| add(&lock, 1)).join().unwrap());
        assert_eq!(lock.own.load(Relaxed), 0, "another thread revokes the bias");
        assert_eq!(*lock.lock(), [u64::from(Cpu::STREAK) + 3; 2]);
    }

    #[test]
    fn a_lock_is_free_unless_another_thread_is_in_it() {
        allow_own_locks();
        let lock = OwnLock::new([0, 0]);
        let is_free_elsewhere =
            || std::thread::scope(|scope| scope.spawn(|| lock.lock_if_free().is_some()).join().unwrap());
        for becomes_own in [false, true, false] {
            if becomes_own {
                add(&lock, 4 * u64::from(Cpu::STREAK));
                assert_eq!(lock.own.load(Relaxed) != 0, CAN_RETURN.load(Relaxed));
            }
            let held = lock.lock_if_free().expect("no other thread is there");
            assert!(!is_free_elsewhere());
            assert!(!is_free_elsewhere(), "a failed attempt takes nothing");
            drop(held);
            assert!(is_free_elsewhere());
        }
    }

    /// Threads revoke the bias while the lock's thread takes the lock again and again.
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

    /// A lock of the models, with words of a model.
    type Modelled<Word, Flag, const TIMES: usize> = OwnLock<cell::UnsafeCell<u32>, Word, Flag, TIMES>;

    /// Two threads count in turn; the lock may be biased towards one of them at the start.
    fn count<Word, Flag, const TIMES: usize>(
        turns: [u32; 2],
        word: impl Fn() -> Word + Send + Sync + 'static,
        flag: impl Fn() -> Flag + Send + Sync + 'static,
    ) -> impl Fn() + Send + Sync + 'static
    where
        Word: Atomic<Value = usize> + Send + Sync + 'static,
        Word::On: Threads,
        Flag: Atomic<Value = bool> + Send + Sync + 'static,
    {
        fn add<Word, Flag, const TIMES: usize>(lock: &Modelled<Word, Flag, TIMES>, times: u32)
        where
            Word: Atomic<Value = usize>,
            Word::On: Threads,
            Flag: Atomic<Value = bool>,
        {
            for _ in 0..times {
                // SAFETY: the lock is held; otherwise loom reports it.
                lock.lock().with_mut(|n| unsafe { *n += 1 });
            }
        }
        move || {
            let own = word();
            let held = flag();
            let value = UnsafeCell::new(cell::UnsafeCell::new(0));
            let inside = std::array::from_fn(|_| flag());
            let lock: Modelled<_, _, TIMES> = OwnLock { own, inside, held, habit: Habit::default(), value };
            add(&lock, 1);
            let lock = Arc::new(lock);
            let other = Arc::clone(&lock);
            let other = thread::spawn(move || add(&other, turns[1]));
            add(&lock, turns[0]);
            other.join().unwrap();
            // SAFETY: as above.
            lock.lock().with(|n| assert_eq!(unsafe { *n }, 1 + turns[0] + turns[1]));
        }
    }

    fn word() -> loom::sync::atomic::AtomicUsize {
        loom::sync::atomic::AtomicUsize::new(0)
    }

    fn flag() -> loom::sync::atomic::AtomicBool {
        loom::sync::atomic::AtomicBool::new(false)
    }

    #[test]
    fn model_of_a_lock_that_changes_hands() {
        model::check_within(Some(3), count::<_, _, 4>([1, 2], word, flag));
        model::check_within(Some(2), count::<_, _, 4>([2, 2], word, flag));
    }

    #[test]
    fn the_model_needs_the_fences_the_orders_and_a_flag_for_each_time() {
        let without = |order| move || Weaker { word: flag(), order };
        let faults = [
            model::must_fail(count::<_, _, 4>([1, 1], || Moved::<_, NoLight<Loom>>::of(word()), flag)),
            model::must_fail(count::<_, _, 4>([1, 1], || Moved::<_, NoHeavy<Loom>>::of(word()), flag)),
            model::must_fail(count::<_, _, 4>([1, 1], word, without(Acquire))),
            model::must_fail(count::<_, _, 4>([1, 1], word, without(Release))),
            // With one flag for all biases, a thread that was stopped clears the flag of another
            // thread's bias.
            model::must_fail_within(Some(2), count::<_, _, 1>([2, 2], word, flag)),
        ];
        assert!(faults.iter().all(|why| why.contains("access")), "{faults:?}");
    }
}
