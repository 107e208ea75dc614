//! How whoever sleeps and whoever completes something agree on one event for each arming of a completion queue.
//!
//! The sleeper arms the queue, then looks once more, then sleeps. Who completes something shows it by a plain store, then looks
//! whether the queue is armed, and takes the one event. Either the sleeper finds the completion or its completer finds the
//! queue armed, because each has a fence between what it says and what it looks at.

use std::sync::atomic::Ordering::Relaxed;

use crate::shared::{ARMED_ANY, ARMED_SOLICITED};
use crate::sync::{Atomic, Machine};

/// Asks for an event with the next completion, or with the next solicited one or error. A poll must follow.
pub(crate) fn arm<Word: Atomic<Value = u32>>(armed: &Word, solicited_only: bool) {
    if !solicited_only {
        armed.store(ARMED_ANY, Relaxed);
    } else {
        // A request for every completion stands (IBTA vol. 1, section 11.4.2.2).
        let _ = armed.compare_exchange(0, ARMED_SOLICITED, Relaxed, Relaxed);
    }
    Word::On::full();
}

/// Stands between the store that shows a completion and the look whether anybody sleeps.
#[inline]
pub(crate) fn shown<On: Machine>() {
    On::full();
}

/// Whether anybody asks for an event, after a completion was [`shown`].
#[inline]
pub(crate) fn is_armed<Word: Atomic<Value = u32>>(armed: &Word) -> bool {
    armed.load(Relaxed) != 0
}

/// Takes the one event that was asked for, if this completion is one to announce: what to give back where that fails.
pub(crate) fn take<Word: Atomic<Value = u32>>(armed: &Word, solicited: bool) -> Option<u32> {
    let asked = armed.load(Relaxed);
    if asked == 0 || (asked == ARMED_SOLICITED && !solicited) {
        return None;
    }
    // Where it fails, another completion took the one event, or the sleeper asks for more just now: then he finds this
    // completion, because it was shown before he asked.
    armed.compare_exchange(asked, 0, Relaxed, Relaxed).ok()
}

/// Gives an event back that could not be announced: the next completion tries again.
pub(crate) fn give_back<Word: Atomic<Value = u32>>(armed: &Word, asked: u32) {
    let _ = armed.compare_exchange(0, asked, Relaxed, Relaxed);
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
    use loom::thread;

    use super::*;
    use crate::shared::SlotState;
    use crate::sync::model::{self, Loom, Moved, NoFull};

    /// A queue that one thread sleeps on and others complete receives in.
    struct Queue<Armed> {
        armed: Armed,
        slots: [AtomicU64; 2],
        /// Bytes in the pipe.
        events: AtomicUsize,
    }

    impl<Armed: Atomic<Value = u32>> Queue<Armed> {
        fn new(armed: Armed) -> Arc<Self> {
            let slots = [AtomicU64::new(0), AtomicU64::new(0)];
            Arc::new(Self { armed, slots, events: AtomicUsize::new(0) })
        }

        /// As a requester does; of the order of its store no more is asked than that of a plain one.
        fn complete(&self, n: usize, solicited: bool) {
            self.slots[n].store(SlotState::Done(n as u32).encode(), Relaxed);
            shown::<Armed::On>();
            if is_armed(&self.armed) && take(&self.armed, solicited).is_some() {
                self.events.fetch_add(1, Relaxed);
            }
        }

        /// The completions that a poll finds, by plain loads.
        fn poll(&self, receives: usize) -> usize {
            let is_done = |n: &usize| SlotState::is_over(self.slots[*n].load(Relaxed), *n as u32);
            (0..receives).filter(is_done).count()
        }
    }

    /// What a sleeper does.
    #[derive(Clone, Copy)]
    struct Sleeper {
        solicited_only: bool,
        polls_again: bool,
    }

    /// A thread arms and polls, others complete: whoever sleeps is woken, and once.
    fn sleeps<Armed>(
        completers: usize,
        sleeper: Sleeper,
        armed: impl Fn() -> Armed + Send + Sync + 'static,
    ) -> impl Fn() + Send + Sync + 'static
    where
        Armed: Atomic<Value = u32> + Send + Sync + 'static,
    {
        move || {
            let queue = Queue::new(armed());
            let others: Vec<_> = (0..completers)
                .map(|n| (n, Arc::clone(&queue)))
                .map(|(n, queue)| thread::spawn(move || queue.complete(n, sleeper.solicited_only)))
                .collect();
            arm(&queue.armed, sleeper.solicited_only);
            let found = if sleeper.polls_again { queue.poll(completers) } else { 0 };
            others.into_iter().for_each(|other| other.join().unwrap());
            let events = queue.events.load(Relaxed);
            assert!(found > 0 || events > 0, "nobody wakes the sleeper");
            assert!(events <= 1, "{events} events for one arming");
        }
    }

    /// One who asks for more while a completion is announced finds either both events or what he slept for.
    fn asks_for_more() {
        let queue = Queue::new(armed());
        let other = Arc::clone(&queue);
        let other = thread::spawn(move || other.complete(0, true));
        arm(&queue.armed, true);
        arm(&queue.armed, false);
        let found = queue.poll(1);
        other.join().unwrap();
        assert!(found > 0 || queue.events.load(Relaxed) > 0, "nobody wakes the sleeper");
    }

    /// An event that is given back is there for the next completion.
    fn given_back() {
        let queue = Queue::new(armed());
        arm(&queue.armed, false);
        let other = Arc::clone(&queue);
        let other = thread::spawn(move || {
            if let Some(asked) = take(&other.armed, false) {
                give_back(&other.armed, asked);
            }
        });
        arm(&queue.armed, false);
        other.join().unwrap();
        queue.complete(0, false);
        assert_eq!(queue.events.load(Relaxed), 1);
    }

    fn armed() -> AtomicU32 {
        AtomicU32::new(0)
    }

    const GOOD: Sleeper = Sleeper { solicited_only: false, polls_again: true };

    #[test]
    fn model_of_a_sleeper() {
        model::check(sleeps(1, GOOD, armed));
        model::check(sleeps(1, Sleeper { solicited_only: true, ..GOOD }, armed));
        model::check_within(Some(3), sleeps(2, GOOD, armed));
        model::check(asks_for_more);
        model::check(given_back);
    }

    #[test]
    fn the_model_needs_the_fences_and_the_second_look() {
        let faults = [
            model::must_fail(sleeps(1, GOOD, || Moved::<_, NoFull<Loom>>::of(armed()))),
            model::must_fail(sleeps(1, Sleeper { polls_again: false, ..GOOD }, armed)),
        ];
        assert_eq!(faults, ["nobody wakes the sleeper"; 2]);
    }
}
