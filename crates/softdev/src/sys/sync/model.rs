//! The machine of the models: loom's.
//!
//! What a passing model tells: in no interleaving of the threads, with no value that the C11 memory
//! model lets a load return, an assertion fails, a [`loom::cell::UnsafeCell`] is reached by two at
//! a time or without an order between them, or all wait for ever. It bounds nothing but what the
//! model does: its threads and its turns.
//!
//! What it does not tell:
//! * Loads that are satisfied by later stores of their own thread (load buffering) are not tried.
//! * Two sequentially consistent fences order whatever stands around them a little more than C11
//!   says.
//! * Sequentially consistent accesses (not fences) count as acquiring and releasing ones: protocols
//!   use fences.
//! * The kernel is taken at its word: `membarrier(2)` is the heavy fence of C++'s P1202, the
//!   compiler's fence the light one.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

use super::{Atomic, Machine, atomics};

/// The machine of the models.
pub(crate) struct Loom;

loom::lazy_static! {
    /// Light fences so far, and heavy ones. A fence counts itself in the one and then looks at the
    /// other, so that of a light and a heavy one at least one knows of the other, while of two
    /// light ones neither does: a full fence in their place would promise more than a compiler's.
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

/// A fault that a model must find: a machine some of whose fences do nothing.
pub(crate) struct Without<On, const NO_LIGHT: bool, const NO_HEAVY: bool, const NO_FULL: bool>(On);

/// One whose light fence does nothing.
pub(crate) type NoLight<On> = Without<On, true, false, false>;
/// One whose heavy fence does nothing.
pub(crate) type NoHeavy<On> = Without<On, false, true, false>;
/// One whose full fence does nothing.
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

/// A word on another machine.
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

/// A fault that a model must find: a word whose accesses of this order are taken for weaker ones,
/// so that the very code runs as if it had been written with them. What was sequentially consistent
/// acquires and releases, what did that is relaxed.
pub(crate) struct Weaker<Word> {
    pub(crate) word: Word,
    pub(crate) order: Ordering,
}

impl<Word> Weaker<Word> {
    /// An order, or what is made of it.
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

/// A fault that a model must find: a word whose exchanges are a look and a store.
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

/// Runs a model in every way.
pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
    check_within(None, model);
}

/// Runs a model in every way in which threads that could go on are stopped so many times at most:
/// `None` for any number. Most faults need one or two (Musuvathi and Qadeer, PLDI 2007).
pub(crate) fn check_within(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        // Whoever comes first makes them, and whoever comes later is ordered after him: so not one
        // of the model's threads.
        let _made = LIGHT.load(Relaxed) + HEAVY.load(Relaxed);
        model();
    });
}

/// A model that must fail: what it says when it does.
///
/// # Panics
/// When it passes: then it shows nothing where it passes without the fault either.
#[track_caller]
pub(crate) fn must_fail(model: impl Fn() + Send + Sync + 'static) -> String {
    must_fail_within(None, model)
}

/// As [`must_fail`], of a model that [`check_within`] runs.
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

    /// Each of two threads says something and then looks at what the other says, with a fence
    /// between: whether both may find nothing.
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
