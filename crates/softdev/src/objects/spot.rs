//! Where the next receive will complete, for a look at a completion queue without its lock.

use std::sync::atomic::Ordering::{Acquire, Release};

use crate::sys::sync::Atomic;

/// A slot, and the number of the receive that is to complete there. Only the holder of the queue's
/// lock writes it; every thread may read it.
#[derive(Default)]
pub(crate) struct Spot<Slot, Number> {
    slot: Slot,
    number: Number,
}

impl<Slot: Atomic, Number: Atomic<Value = u32>> Spot<Slot, Number> {
    /// Notes where the next receive will complete.
    #[inline]
    pub(crate) fn set(&self, slot: Slot::Value, number: u32) {
        self.slot.store(slot, Release);
        self.number.store(number, Release);
    }

    /// Notes that there is no single place.
    #[inline]
    pub(crate) fn set_nowhere(&self, nowhere: Slot::Value) {
        self.slot.store(nowhere, Release);
    }

    /// Loads the number before the slot: an old number shows what is in a later slot, but a later
    /// number would hide what is in an old slot.
    #[inline]
    pub(crate) fn get(&self) -> (u32, Slot::Value) {
        let number = self.number.load(Acquire);
        (number, self.slot.load(Acquire))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    use super::*;
    use crate::memory::slots::SlotState;
    use crate::sys::sync::model::{self, Loom, Weaker};
    use crate::transport::local::arming::{arm, is_armed, shown, take};
    use crate::transport::local::lane::is_shown;

    /// How a thread reads a spot.
    type Get<Word> = fn(&Spot<Word, Word>) -> (u32, u32);

    /// A queue in which the receives of a lane of two slots complete.
    struct Queue<Word> {
        slots: [AtomicU64; 2],
        armed: AtomicU32,
        events: AtomicUsize,
        /// Where they complete; a slot is given by its index.
        spot: Spot<Word, Word>,
        get: Get<Word>,
        /// The number of the next receive to be taken: what the lock protects.
        head: Mutex<u32>,
    }

    impl<Word: Atomic<Value = u32>> Queue<Word> {
        /// Completes a receive like a requester.
        fn complete(&self, n: u32) {
            self.slots[n as usize % 2].store(SlotState::Done(n).encode(), Release);
            shown::<Loom>();
            if is_armed(&self.armed) && take(&self.armed, false).is_some() {
                self.events.fetch_add(1, Relaxed);
            }
        }

        /// Polls for one completion; returns whether there was one.
        fn poll(&self) -> bool {
            let (number, slot) = (self.get)(&self.spot);
            if !SlotState::is_over(self.slots[slot as usize].load(Acquire), number) {
                return false;
            }
            let mut head = self.head.lock().unwrap();
            let is_there = is_shown(&self.slots[*head as usize % 2], *head);
            *head += u32::from(is_there);
            self.spot.set(*head % 2, *head);
            is_there
        }
    }

    /// Two receives complete while one thread polls `polls` times, and another arms the queue,
    /// polls and sleeps.
    fn sleeps<Word>(
        polls: usize,
        word: impl Fn() -> Word + Send + Sync + 'static,
        get: Get<Word>,
    ) -> impl Fn() + Send + Sync + 'static
    where
        Word: Atomic<Value = u32> + Send + Sync + 'static,
    {
        move || {
            let queue = Arc::new(Queue {
                slots: [AtomicU64::new(0), AtomicU64::new(0)],
                armed: AtomicU32::new(0),
                events: AtomicUsize::new(0),
                spot: Spot { slot: word(), number: word() },
                get,
                head: Mutex::new(0),
            });
            let [completer, poller] = [(); 2].map(|()| Arc::clone(&queue));
            let others = [
                thread::spawn(move || (0..2).for_each(|n| completer.complete(n))),
                thread::spawn(move || (0..polls).for_each(|_| _ = poller.poll())),
            ];
            arm(&queue.armed, false);
            let found = queue.poll();
            others.into_iter().for_each(|other| other.join().unwrap());
            let are_all_taken = *queue.head.lock().unwrap() == 2;
            let is_woken = queue.events.load(Relaxed) > 0;
            assert!(found || are_all_taken || is_woken, "the sleeper is not woken");
        }
    }

    fn word() -> AtomicU32 {
        AtomicU32::new(0)
    }

    #[test]
    fn model_of_a_glance() {
        model::check_within(Some(4), sleeps(1, word, Spot::get));
        model::check_within(Some(3), sleeps(2, word, Spot::get));
    }

    #[test]
    fn the_model_needs_the_number_before_the_slot_and_their_orders() {
        let slot_first: Get<AtomicU32> = |spot| {
            let slot = spot.slot.load(Acquire);
            (spot.number.load(Acquire), slot)
        };
        let without = |order| move || Weaker { word: word(), order };
        let faults = [
            model::must_fail_within(Some(2), sleeps(1, word, slot_first)),
            model::must_fail_within(Some(2), sleeps(1, without(Acquire), Spot::get)),
            model::must_fail_within(Some(2), sleeps(1, without(Release), Spot::get)),
        ];
        assert_eq!(faults, ["the sleeper is not woken"; 3]);
    }
}
