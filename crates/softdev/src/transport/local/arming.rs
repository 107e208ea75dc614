//! How whoever sleeps and whoever completes something agree on one event for each arming of a
//! completion queue.
//!
//! The sleeper arms the queue, then looks once more, then sleeps. Who completes something shows it
//! by a plain store, then looks whether the queue is armed, and takes the one event. Either the
//! sleeper finds the completion or its completer finds the queue armed, because each has a fence
//! between what it says and what it looks at.
//!
//! The event goes into a pipe. Where that is full, nobody sleeps at it, but the event must not be
//! lost: it is left as owed, and whoever reads something from the pipe, and so makes room, pays.
//! Either whoever leaves it finds the pipe empty after all, or somebody reads after that; the
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

/// Takes the one event that was asked for, if this completion is one to announce: what to give back
/// where that fails.
pub(crate) fn take<Word: Atomic<Value = u32>>(armed: &Word, solicited: bool) -> Option<u32> {
    let asked = armed.load(Relaxed);
    if asked == 0 || (asked == ARMED_SOLICITED && !solicited) {
        return None;
    }
    // Where it fails, another completion took the one event, or the sleeper asks for more just now:
    // then he finds this completion, because it was shown before he asked.
    armed.compare_exchange(asked, 0, Relaxed, Relaxed).ok()
}

/// Gives an event back that cannot be announced, for a reason that has nothing to do with the
/// sleeper: the next completion tries again.
pub(crate) fn give_back<Word: Atomic<Value = u32>>(armed: &Word, asked: u32) {
    let _ = armed.compare_exchange(0, asked, Relaxed, Relaxed);
}

/// What events go through.
pub(crate) trait Pipe {
    /// Why an event could not be written, other than that there is no room.
    type Error;

    /// Writes the event; false where there is no room.
    fn write(&self) -> Result<bool, Self::Error>;
    /// Whether there is nothing to read.
    fn is_empty(&self) -> bool;
}

/// Announces an event that was [taken](take), or leaves it as owed.
pub(crate) fn announce<Word, P>(owed: &Word, pipe: &P) -> Result<(), P::Error>
where
    Word: Atomic<Value = u32>,
    P: Pipe,
{
    while !pipe.write()? {
        owed.store(1, Release);
        if !pipe.is_empty() || !is_to_be_paid(owed) {
            break; // Whoever reads what is there pays, or has just done so.
        }
    }
    Ok(())
}

/// Whether an event was owed, which from now on is the caller's to announce.
fn is_to_be_paid<Word: Atomic<Value = u32>>(owed: &Word) -> bool {
    owed.load(Relaxed) != 0 && owed.compare_exchange(1, 0, Acquire, Relaxed).is_ok()
}

/// Announces what is owed. Called after something was read from the pipe.
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

    /// A queue that one thread sleeps on and others complete receives in.
    struct Queue<Armed> {
        armed: Armed,
        owed: AtomicU32,
        slots: [AtomicU64; 2],
        /// As the kernel has it, under its lock.
        pipe: Mutex<Events>,
    }

    /// What is in a pipe, and what was read from it.
    #[derive(Default)]
    struct Events {
        own: usize,
        /// Of other queues.
        others: usize,
        taken: usize,
    }

    /// Events that there is room for.
    const ROOM: usize = 2;

    impl<Armed> Queue<Armed> {
        /// Takes what there is; whether there was anything.
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

        /// Events of the queue that were read or may be.
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

    /// One that takes it for granted that there is something to read in a pipe that was full.
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

        /// As a requester does; of the order of its store no more is asked than that of a plain
        /// one.
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
            let events = queue.events();
            assert!(found > 0 || events > 0, "nobody wakes the sleeper");
            assert!(events <= 1, "{events} events for one arming");
        }
    }

    /// One who asks for more while a completion is announced finds either both events or what he
    /// slept for.
    fn asks_for_more() {
        let queue = Queue::new(armed());
        let other = Arc::clone(&queue);
        let other = thread::spawn(move || other.complete(0, true));
        arm(&queue.armed, true);
        arm(&queue.armed, false);
        let found = queue.poll(1);
        other.join().unwrap();
        assert!(found > 0 || queue.events() > 0, "nobody wakes the sleeper");
    }

    /// How one who has no room for an event goes about it.
    #[derive(Clone, Copy, PartialEq)]
    enum Without {
        Nothing,
        SecondLook,
        /// The reader pays nothing.
        Payment,
        /// The event is not owed but given back.
        Debt,
    }

    /// Completions whose event finds the pipe full of others', which the sleeper reads meanwhile.
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
            // If there is nothing to read now, it sleeps for ever.
            read_all();
            let events = queue.events();
            assert!(found == completers || events > 0, "nobody wakes the sleeper");
            assert!(events <= 1, "{events} events for one arming");
        }
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
            assert_eq!(model::must_fail(finds_no_room(1, without)), "nobody wakes the sleeper");
        }
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
