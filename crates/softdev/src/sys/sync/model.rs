//! The machine of the models: loom.
//!
//! What a passing model shows, for every interleaving of the threads and every value that the C11
//! memory model lets a load return: no assertion fails, no two threads access a
//! [`loom::cell::UnsafeCell`] at a time or without an order between them, and never do all threads
//! wait for ever. The only bounds are those of the model: its threads and their iterations.
//!
//! What it does not show:
//! * Load buffering is not tried: a store never becomes visible before an earlier load of its
//!   thread.
//! * Two sequentially consistent fences order the accesses around them slightly more than C11
//!   requires.
//! * Sequentially consistent accesses (not fences) count as acquire and release: protocols use
//!   fences.
//! * The kernel is trusted: `membarrier(2)` is taken for the heavy fence of C++'s P1202, and the
//!   compiler fence for the light one.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

use super::{Atomic, Machine, atomics};

/// The machine of the models.
pub(crate) struct Loom;

loom::lazy_static! {
    /// The numbers of light and of heavy fences so far. A fence increments the count of its kind
    /// and then reads the other count. Of a light and a heavy fence, at least one therefore knows
    /// of the other; of two light fences neither does. A full fence in their place would promise
    /// more than a compiler fence.
    static ref LIGHT: AtomicUsize = AtomicUsize::new(0);
    static ref HEAVY: AtomicUsize = AtomicUsize::new(0);
}

impl Machine for Loom {
    const SPINS: u32 = 1;

    fn light() {
        LIGHT.fetch_add(1, Release);
        HEAVY.fetch_add(0, Acquire);
    }

    fn heavy() {
        fence(SeqCst);
        HEAVY.fetch_add(1, Release);
        LIGHT.fetch_add(0, Acquire);
    }

    fn full() {
        fence(SeqCst);
    }

    fn pause() {
        loom::thread::yield_now();
    }

    fn yield_cpu() {
        loom::thread::yield_now();
    }
}

atomics!(Loom: AtomicBool => bool, AtomicU32 => u32, AtomicU64 => u64, AtomicUsize => usize);

/// A fault that a model must find: a machine on which some fences do nothing.
pub(crate) struct Without<On, const NO_LIGHT: bool, const NO_HEAVY: bool, const NO_FULL: bool>(On);

/// A machine whose light fence does nothing.
pub(crate) type NoLight<On> = Without<On, true, false, false>;
/// A machine whose heavy fence does nothing.
pub(crate) type NoHeavy<On> = Without<On, false, true, false>;
/// A machine whose full fence does nothing.
pub(crate) type NoFull<On> = Without<On, false, false, true>;

impl<On: Machine, const NO_LIGHT: bool, const NO_HEAVY: bool, const NO_FULL: bool> Machine
    for Without<On, NO_LIGHT, NO_HEAVY, NO_FULL>
{
    const SPINS: u32 = On::SPINS;

    fn light() {
        if !NO_LIGHT {
            On::light();
        }
    }

    fn heavy() {
        if !NO_HEAVY {
            On::heavy();
        }
    }

    fn full() {
        if !NO_FULL {
            On::full();
        }
    }

    fn pause() {
        On::pause();
    }

    fn yield_cpu() {
        On::yield_cpu();
    }
}

/// A word moved to another machine.
pub(crate) struct Moved<Word, On>(Word, PhantomData<fn() -> On>);

impl<Word, On> Moved<Word, On> {
    pub(crate) fn of(word: Word) -> Self {
        Self(word, PhantomData)
    }
}

impl<Word: Atomic, On: Machine> Atomic for Moved<Word, On> {
    type Value = Word::Value;
    type On = On;

    fn load(&self, order: Ordering) -> Word::Value {
        self.0.load(order)
    }

    fn store(&self, value: Word::Value, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        expected: Word::Value,
        new: Word::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Word::Value, Word::Value> {
        self.0.compare_exchange(expected, new, success, failure)
    }
}

/// A fault that a model must find: a word whose accesses of one order are weaker, so that the
/// device's code runs as if it had been written with the weaker order. Sequentially consistent
/// becomes acquire and release; acquire and release become relaxed.
pub(crate) struct Weaker<Word> {
    pub(crate) word: Word,
    pub(crate) order: Ordering,
}

impl<Word> Weaker<Word> {
    /// Returns the order to use in place of `order`.
    fn weaken(&self, order: Ordering, weaker: Ordering) -> Ordering {
        match order {
            _ if order != self.order => order,
            SeqCst => weaker,
            _ => Relaxed,
        }
    }
}

impl<Word: Atomic> Atomic for Weaker<Word> {
    type Value = Word::Value;
    type On = Word::On;

    fn load(&self, order: Ordering) -> Word::Value {
        self.word.load(self.weaken(order, Acquire))
    }

    fn store(&self, value: Word::Value, order: Ordering) {
        self.word.store(value, self.weaken(order, Release));
    }

    fn compare_exchange(
        &self,
        expected: Word::Value,
        new: Word::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Word::Value, Word::Value> {
        let success = self.weaken(success, AcqRel);
        self.word.compare_exchange(expected, new, success, self.weaken(failure, Acquire))
    }
}

/// A fault that a model must find: a word whose exchange is a load and a store.
pub(crate) struct TwoSteps<Word>(pub(crate) Word);

impl<Word: Atomic> Atomic for TwoSteps<Word> {
    type Value = Word::Value;
    type On = Word::On;

    fn load(&self, order: Ordering) -> Word::Value {
        self.0.load(order)
    }

    fn store(&self, value: Word::Value, order: Ordering) {
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        expected: Word::Value,
        new: Word::Value,
        _: Ordering,
        _: Ordering,
    ) -> Result<Word::Value, Word::Value> {
        let found = self.0.load(Acquire);
        if found != expected {
            return Err(found);
        }
        self.0.store(new, Release);
        Ok(found)
    }
}

/// Runs a model in every interleaving.
pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
    check_within(None, model);
}

/// Runs a model in every interleaving with at most this number of preemptions; `None` for any
/// number. Most faults need one or two (Musuvathi and Qadeer, PLDI 2007).
pub(crate) fn check_within(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        // The first thread that uses the counts makes them, and later threads are ordered after it,
        // so it must not be a thread of the model.
        let _made = LIGHT.load(Relaxed) + HEAVY.load(Relaxed);
        model();
    });
}

/// Runs a model that must fail; returns its message.
///
/// # Panics
/// If the model passes: then it shows nothing when it passes without the fault.
#[track_caller]
pub(crate) fn must_fail(model: impl Fn() + Send + Sync + 'static) -> String {
    must_fail_within(None, model)
}

/// As [`must_fail`], within the bound of [`check_within`].
#[track_caller]
pub(crate) fn must_fail_within(
    preemptions: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) -> String {
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_within(preemptions, model)));
    let why = found.expect_err("the model finds no fault where there is one");
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Each of two threads stores a word, executes a fence and loads the other thread's word.
    /// Returns whether both may miss the other's store.
    fn both_may_miss(fences: [fn(); 2]) -> bool {
        let model = move || {
            let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let other = Arc::clone(&words);
            let side = |words: &[AtomicU32; 2], own: usize, fence: fn()| {
                words[own].store(1, Relaxed);
                fence();
                words[1 - own].load(Relaxed)
            };
            let far = thread::spawn(move || side(&other, 1, fences[1]));
            let near = side(&words, 0, fences[0]);
            assert!(near + far.join().unwrap() > 0, "both missed");
        };
        std::panic::catch_unwind(|| check(model)).is_err()
    }

    #[test]
    fn a_heavy_fence_orders_both_sides_and_a_light_one_none() {
        let nothing: fn() = || ();
        let light: fn() = Loom::light;
        let heavy: fn() = Loom::heavy;
        assert!(!both_may_miss([light, heavy]) && !both_may_miss([heavy, light]));
        assert!(!both_may_miss([heavy, heavy]));
        assert!(both_may_miss([light, light]), "two light fences order nothing");
        assert!(both_may_miss([nothing, heavy]), "nor does a heavy one alone");
    }
}
