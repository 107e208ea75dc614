//! How a sleeper and a completer agree on one event for each arming of a completion queue.
//!
//! The sleeper arms the queue, looks once more, and then sleeps. The completer shows a completion
//! by a plain store, then looks whether the queue is armed, and takes the one event. Each has a
//! fence between its store and its look, so either the sleeper finds the completion, or the
//! completer finds the queue armed.
//!
//! The event goes into a pipe. If the pipe is full, no thread sleeps on it, but the event must not
//! be lost. It is marked as owed, and the next thread that reads from the pipe, and so makes room,
//! pays it. Either the completer then finds the pipe empty, or a thread reads from it later; the
//! kernel's lock on the pipe orders the two.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::memory::layout::{ARMED_ANY, ARMED_SOLICITED};
use crate::sys::sync::{Atomic, Machine};

/// Asks for an event with the next completion, or with the next solicited one or error. A poll must
/// follow.
pub(crate) fn arm<Word: Atomic<Value = u32>>(armed: &Word, solicited_only: bool) {
    if !solicited_only {
        armed.store(ARMED_ANY, Relaxed);
    } else {
        // An earlier request for every completion remains (IBTA vol. 1, section 11.4.2.2).
        let _ = armed.compare_exchange(0, ARMED_SOLICITED, Relaxed, Relaxed);
    }
    Word::On::full();
}

/// The fence between the store that shows a completion and the look for a sleeper.
#[inline]
pub(crate) fn shown<On: Machine>() {
    On::full();
}

/// Whether an event is asked for, after a completion was [`shown`].
#[inline]
pub(crate) fn is_armed<Word: Atomic<Value = u32>>(armed: &Word) -> bool {
    armed.load(Relaxed) != 0
}

/// Takes the one event that was asked for, if this completion announces it. Returns the value to
/// give back if the announcement fails.
pub(crate) fn take<Word: Atomic<Value = u32>>(armed: &Word, solicited: bool) -> Option<u32> {
    let asked = armed.load(Relaxed);
    if asked == 0 || (asked == ARMED_SOLICITED && !solicited) {
        return None;
    }
    // If the exchange fails, another completion took the one event, or the sleeper is asking for
    // more: it then finds this completion, which was shown before it asked.
    armed.compare_exchange(asked, 0, Relaxed, Relaxed).ok()
}

/// Gives back an event that cannot be announced for a reason that does not concern the sleeper: the
/// next completion tries again.
pub(crate) fn give_back<Word: Atomic<Value = u32>>(armed: &Word, asked: u32) {
    let _ = armed.compare_exchange(0, asked, Relaxed, Relaxed);
}

/// The pipe for events.
pub(crate) trait Pipe {
    /// The reason why an event could not be written, other than a full pipe.
    type Error;

    /// Writes the event; false if there is no room.
    fn write(&self) -> Result<bool, Self::Error>;
    /// Whether there is nothing to read.
    fn is_empty(&self) -> bool;
}

/// Announces an event that was [taken](take), or marks it as owed.
pub(crate) fn announce<Word, P>(owed: &Word, pipe: &P) -> Result<(), P::Error>
where
    Word: Atomic<Value = u32>,
    P: Pipe,
{
    while !pipe.write()? {
        owed.store(1, Release);
        if !pipe.is_empty() || !is_to_be_paid(owed) {
            break; // The next reader pays, or has just done so.
        }
    }
    Ok(())
}

/// Whether an event was owed; if so, the caller must announce it.
fn is_to_be_paid<Word: Atomic<Value = u32>>(owed: &Word) -> bool {
    owed.load(Relaxed) != 0 && owed.compare_exchange(1, 0, Acquire, Relaxed).is_ok()
}

/// Announces an event that is owed. Called after something was read from the pipe.
pub(crate) fn pay<Word, P>(owed: &Word, pipe: &P) -> Result<(), P::Error>
where
    Word: Atomic<Value = u32>,
    P: Pipe,
{
    if is_to_be_paid(owed) { announce(owed, pipe) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use loom::sync::atomic::{AtomicU32, AtomicU64};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    use super::*;
    use crate::memory::slots::SlotState;
    use crate::sys::sync::model::{self, Loom, Moved, NoFull};

    /// A queue that one thread sleeps on while others complete receives in it.
    struct Queue<Armed> {
        armed: Armed,
        owed: AtomicU32,
        slots: [AtomicU64; 2],
        /// The kernel's pipe, under its lock.
        pipe: Mutex<Events>,
    }

    /// The events in a pipe, and those that were read from it.
    #[derive(Default)]
    struct Events {
        own: usize,
        /// Events of other queues.
        others: usize,
        taken: usize,
    }

    /// The number of events that fit.
    const ROOM: usize = 2;

    impl<Armed> Queue<Armed> {
        /// Reads an event; returns whether there was one.
        fn read(&self) -> bool {
            let mut pipe = self.pipe.lock().unwrap();
            if pipe.others > 0 {
                pipe.others -= 1;
            } else if pipe.own > 0 {
                pipe.own -= 1;
                pipe.taken += 1;
            } else {
                return false;
            }
            true
        }

        /// Returns the events of the queue that were read or can be read.
        fn events(&self) -> usize {
            let pipe = self.pipe.lock().unwrap();
            pipe.own + pipe.taken
        }
    }

    impl<Armed> Pipe for Queue<Armed> {
        type Error = Infallible;

        fn write(&self) -> Result<bool, Infallible> {
            let mut pipe = self.pipe.lock().unwrap();
            let has_room = pipe.own + pipe.others < ROOM;
            pipe.own += usize::from(has_room);
            Ok(has_room)
        }

        fn is_empty(&self) -> bool {
            let pipe = self.pipe.lock().unwrap();
            pipe.own + pipe.others == 0
        }
    }

    /// A pipe that is taken for not empty because it was full.
    struct NoSecondLook<'a, Armed>(&'a Queue<Armed>);

    impl<Armed> Pipe for NoSecondLook<'_, Armed> {
        type Error = Infallible;

        fn write(&self) -> Result<bool, Infallible> {
            self.0.write()
        }

        fn is_empty(&self) -> bool {
            false
        }
    }

    impl<Armed: Atomic<Value = u32>> Queue<Armed> {
        fn new(armed: Armed) -> Arc<Self> {
            let slots = [AtomicU64::new(0), AtomicU64::new(0)];
            Arc::new(Self { armed, owed: AtomicU32::new(0), slots, pipe: Mutex::default() })
        }

        /// Completes a receive like a requester; the order of a plain store is enough.
        fn complete(&self, n: usize, solicited: bool) {
            self.complete_by(n, solicited, |_| announce(&self.owed, self).unwrap());
        }

        fn complete_by(&self, n: usize, solicited: bool, announce: impl FnOnce(u32)) {
            self.slots[n].store(SlotState::Done(n as u32).encode(), Relaxed);
            shown::<Armed::On>();
            if is_armed(&self.armed)
                && let Some(asked) = take(&self.armed, solicited)
            {
                announce(asked);
            }
        }

        /// Returns the number of completions that a poll finds, by plain loads.
        fn poll(&self, receives: usize) -> usize {
            let is_done = |n: &usize| SlotState::is_over(self.slots[*n].load(Relaxed), *n as u32);
            (0..receives).filter(is_done).count()
        }
    }

    /// The behaviour of a sleeper.
    #[derive(Clone, Copy)]
    struct Sleeper {
        solicited_only: bool,
        polls_again: bool,
    }

    /// A thread arms and polls while others complete: a sleeper is woken, and only once.
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
            let events = queue.events();
            assert!(found > 0 || events > 0, "the sleeper is not woken");
            assert!(events <= 1, "{events} events for one arming");
        }
    }

    /// A thread that asks for more while a completion is announced gets an event or finds the
    /// completion.
    fn asks_for_more() {
        let queue = Queue::new(armed());
        let other = Arc::clone(&queue);
        let other = thread::spawn(move || other.complete(0, true));
        arm(&queue.armed, true);
        arm(&queue.armed, false);
        let found = queue.poll(1);
        other.join().unwrap();
        assert!(found > 0 || queue.events() > 0, "the sleeper is not woken");
    }

    /// The step that is left out when there is no room for an event.
    #[derive(Clone, Copy, PartialEq)]
    enum Without {
        Nothing,
        SecondLook,
        /// The reader pays nothing.
        Payment,
        /// The event is given back instead of being owed.
        Debt,
    }

    /// Completions whose event finds the pipe full of other queues' events, which the sleeper reads
    /// meanwhile.
    fn finds_no_room(completers: usize, without: Without) -> impl Fn() + Send + Sync + 'static {
        move || {
            let queue = Queue::new(armed());
            queue.pipe.lock().unwrap().others = ROOM;
            let announce = move |queue: &Queue<AtomicU32>, asked| match without {
                Without::Debt if !queue.write().unwrap() => give_back(&queue.armed, asked),
                Without::Debt => {}
                Without::SecondLook => announce(&queue.owed, &NoSecondLook(queue)).unwrap(),
                _ => announce(&queue.owed, queue).unwrap(),
            };
            let others: Vec<_> = (0..completers)
                .map(|n| (n, Arc::clone(&queue)))
                .map(|(n, queue)| {
                    thread::spawn(move || queue.complete_by(n, false, |asked| announce(&queue, asked)))
                })
                .collect();
            arm(&queue.armed, false);
            let found = queue.poll(completers);
            let read_all = || {
                while queue.read() {
                    if without != Without::Payment {
                        pay(&queue.owed, &*queue).unwrap();
                    }
                }
            };
            read_all();
            others.into_iter().for_each(|other| other.join().unwrap());
            // If there is nothing to read now, the sleeper sleeps for ever.
            read_all();
            let events = queue.events();
            assert!(found == completers || events > 0, "the sleeper is not woken");
            assert!(events <= 1, "{events} events for one arming");
        }
    }

    /// An event that is given back is available to the next completion.
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
        assert_eq!(queue.events(), 1);
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
        model::check(finds_no_room(1, Without::Nothing));
        model::check_within(Some(2), finds_no_room(2, Without::Nothing));
    }

    #[test]
    fn the_model_needs_what_is_owed_its_payment_and_a_second_look() {
        for without in [Without::Debt, Without::Payment, Without::SecondLook] {
            assert_eq!(model::must_fail(finds_no_room(1, without)), "the sleeper is not woken");
        }
    }

    #[test]
    fn the_model_needs_the_fences_and_the_second_look() {
        let faults = [
            model::must_fail(sleeps(1, GOOD, || Moved::<_, NoFull<Loom>>::of(armed()))),
            model::must_fail(sleeps(1, Sleeper { polls_again: false, ..GOOD }, armed)),
        ];
        assert_eq!(faults, ["the sleeper is not woken"; 2]);
    }
}
