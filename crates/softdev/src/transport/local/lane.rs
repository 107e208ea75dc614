//! A requester's view of a lane: where the next message goes, and what is known of the peer's
//! receives.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::memory::layout::{Credit, SharedQp};
use crate::memory::slots::{Post, Slot, SlotSge, SlotState, Slots, UNCHECKED};
use crate::sys::limits::BOUNCES;
use crate::sys::sync::Atomic;
use crate::transport::local::claim;

/// The lane of a peer's queue pair. The holder of the lane also holds its mapping.
pub(crate) struct Lane {
    slots: Slots,
    /// For a connection: the number of the next message.
    next: Cell<u32>,
    /// The last value read of what is posted.
    credit: Cell<Credit>,
    /// The last value read of what has been taken. It is on the same cache line, which the owner
    /// writes with every post.
    taken: Cell<u32>,
}

/// A receive as its owner shows it to requesters.
#[derive(Clone, Copy)]
pub(crate) struct PostedReceive<'a> {
    pub(crate) room: u32,
    pub(crate) valid: bool,
    pub(crate) elements: &'a [SlotSge],
    /// The protection domain of the memory that it names.
    pub(crate) pd: u32,
}

impl<'a> PostedReceive<'a> {
    pub(crate) fn read(post: &Post, elements: &'a [SlotSge], pd: u32) -> Self {
        let num_sge = post.num_sge.load(Relaxed);
        let elements = elements.get(..(num_sge & !UNCHECKED) as usize).unwrap_or_default();
        Self { room: post.room.load(Relaxed), valid: num_sge & UNCHECKED == 0, elements, pd }
    }

    /// Whether the receive is not known to be too small for `bytes` bytes.
    pub(crate) fn may_hold(&self, bytes: u64) -> bool {
        !self.valid || bytes <= u64::from(self.room)
    }
}

impl Lane {
    /// Makes the lane of the queue pair that `shared` shows.
    ///
    /// # Safety
    /// The view that the slots were checked against stays mapped as long as the lane is used.
    pub(crate) unsafe fn new(slots: Slots, shared: &SharedQp) -> Self {
        let credit = Cell::new(posted(&shared.posted.credit));
        // SAFETY: the caller guarantees the mapping.
        let next = next_to_show(&shared.next.value, |n| unsafe { &slots.slot(n).state });
        Self { slots, next: Cell::new(next), credit, taken: Cell::new(shared.posted.taken.load(Acquire)) }
    }

    /// Returns the number of slots.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.slots.size()
    }

    /// Returns the slot of message `n`.
    #[inline]
    pub(crate) fn slot(&self, n: u32) -> &Slot {
        // SAFETY: the maker of the lane guarantees the mapping.
        unsafe { self.slots.slot(n) }
    }

    /// Returns the post of receive `n`.
    pub(crate) fn post(&self, shared: &SharedQp, n: u32) -> PostedReceive<'_> {
        // SAFETY: as in `slot`.
        let (post, elements) = unsafe { self.slots.post(n) };
        PostedReceive::read(post, elements, shared.pd.load(Relaxed))
    }

    /// Returns where the payload of message `n` may go in the lane's own memory, if the earlier
    /// content has been taken.
    pub(crate) fn bounce(&self, shared: &SharedQp, n: u32) -> Option<NonNull<u8>> {
        let is_free = || n.wrapping_sub(self.taken.get()) < BOUNCES;
        // Without posts, nothing else renews the known value: it may be of any age.
        if !is_free() || !self.slots.has_posts() {
            self.taken.set(shared.posted.taken.load(Acquire));
        }
        is_free().then(|| self.slots.bounce(n))
    }

    /// Returns the number of the next message of a connection.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next.get()
    }

    /// Returns what is posted, if that includes receive `n`.
    #[inline]
    pub(crate) fn credit_for(&self, shared: &SharedQp, n: u32) -> Option<Credit> {
        let known = self.credit.get();
        if self.covers(known, n) {
            return Some(known);
        }
        self.credit_anew(shared, n)
    }

    /// Returns where to look for receive `n`: see [`claim::posted_from`].
    #[inline]
    pub(crate) fn posted_from(&self, shared: &SharedQp, n: u32) -> Option<u32> {
        match self.credit_for(shared, n) {
            Some(_) => Some(n),
            None => claim::posted_from(n, self.credit.get().tail(), self.size()),
        }
    }

    #[inline(never)]
    fn credit_anew(&self, shared: &SharedQp, n: u32) -> Option<Credit> {
        let now = posted(&shared.posted.credit);
        self.credit.set(now);
        // Renewed here too, so that it is never so old that a later number could be taken for it.
        self.taken.set(shared.posted.taken.load(Acquire));
        self.covers(now, n).then_some(now)
    }

    #[inline]
    fn covers(&self, credit: Credit, n: u32) -> bool {
        credit.tail().wrapping_sub(n).wrapping_sub(1) < self.size()
    }

    /// Shows message `n` of a connection, which is in its slot, to the owner.
    #[inline]
    pub(crate) fn publish(&self, shared: &SharedQp, n: u32) {
        let next = show(&self.slot(n).state, &shared.next.value, n);
        self.next.set(next);
        prefetch_to_write(self.slot(next));
    }
}

/// Shows message `n` to the owner, and the next number to a later requester. Returns that number.
#[inline]
fn show<State, Next>(state: &State, next: &Next, n: u32) -> u32
where
    State: Atomic<Value = u64>,
    Next: Atomic<Value = u32>,
{
    state.store(SlotState::Done(n).encode(), Release);
    let number = n.wrapping_add(1);
    next.store(number, Relaxed);
    number
}

/// Returns the number of the next message, for a requester that is not the first one.
fn next_to_show<'a, State, Next>(next: &Next, state: impl Fn(u32) -> &'a State) -> u32
where
    State: Atomic<Value = u64> + 'a,
    Next: Atomic<Value = u32>,
{
    let n = next.load(Acquire);
    // The requester that showed the last message may have died before it stored the number.
    if is_shown(state(n), n) { n.wrapping_add(1) } else { n }
}

/// Whether message `n` has arrived, and with it its whole content.
#[inline]
pub(crate) fn is_shown<State: Atomic<Value = u64>>(state: &State, n: u32) -> bool {
    state.load(Acquire) == SlotState::Done(n).encode()
}

/// Posts receives, after the earlier messages in their slots were taken.
#[inline]
pub(crate) fn post<Word: Atomic<Value = u64>>(word: &Word, credit: Credit) {
    word.store(credit.encode(), Release);
}

/// Returns what is posted.
#[inline]
fn posted<Word: Atomic<Value = u64>>(word: &Word) -> Credit {
    Credit::decode(word.load(Acquire))
}

/// Prefetches the cache line of a slot that will be written.
#[inline]
pub(crate) fn prefetch_to_write(slot: &Slot) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect that a program can see, whatever the address; where the CPU
    // does not know this instruction, it does nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) &raw const *slot, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

#[cfg(test)]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, AtomicU64};
    use loom::thread;

    use super::*;
    use crate::sys::sync::model::{self, Weaker};

    const SIZE: u32 = 2;

    /// The lane of a queue pair.
    struct Shared<Word> {
        credit: Word,
        next: AtomicU32,
        slots: [(Word, UnsafeCell<u32>); SIZE as usize],
        /// Where the owner wants the payload.
        posts: [UnsafeCell<u32>; SIZE as usize],
    }

    /// The content of the post of receive `n`, and of the payload of message `n`, less `n`.
    const POST: u32 = 100;
    const PAYLOAD: u32 = 200;

    impl<Word: Atomic<Value = u64>> Shared<Word> {
        fn state(&self, n: u32) -> &Word {
            &self.slots[(n % SIZE) as usize].0
        }

        fn covers(&self, n: u32) -> bool {
            posted(&self.credit).tail().wrapping_sub(n).wrapping_sub(1) < SIZE
        }

        /// Fills message `n`, if there is a receive for it.
        fn fill(&self, n: u32) -> bool {
            if !self.covers(n) {
                return false;
            }
            let at = (n % SIZE) as usize;
            // SAFETY: the receive is posted, and there is one requester; otherwise loom reports it.
            self.posts[at].with(|post| assert_eq!(unsafe { *post }, POST + n));
            // SAFETY: as above.
            self.slots[at].1.with_mut(|payload| unsafe { *payload = PAYLOAD + n });
            true
        }

        /// Sends messages up to number `end`; gives up if it would have to wait.
        fn send(&self, mut n: u32, end: u32) {
            while n < end && self.fill(n) {
                n = show(self.state(n), &self.next, n);
            }
        }

        /// Posts receive `n`, whose slot is free.
        fn post(&self, n: u32) {
            let at = (n % SIZE) as usize;
            // SAFETY: the earlier content was taken; otherwise loom reports it.
            self.posts[at].with_mut(|post| unsafe { *post = POST + n });
            post(&self.credit, Credit::new(n + 1, 0, 0));
        }

        /// Takes message `n` if it has arrived, and posts a receive in its place.
        fn take(&self, n: u32) -> bool {
            let at = (n % SIZE) as usize;
            if !is_shown(self.state(n), n) {
                return false;
            }
            // SAFETY: the message has arrived, and its slot is the owner's until the owner posts
            // again; otherwise loom reports it.
            self.slots[at].1.with(|payload| assert_eq!(unsafe { *payload }, PAYLOAD + n));
            self.post(n + SIZE);
            true
        }
    }

    /// Where a requester begins.
    type Begin = fn(&Shared<AtomicU64>) -> u32;

    fn lane<Word: Atomic<Value = u64>>(word: impl Fn() -> Word) -> Arc<Shared<Word>> {
        let lane = Shared {
            credit: word(),
            next: AtomicU32::new(0),
            slots: std::array::from_fn(|_| (word(), UnsafeCell::new(0))),
            posts: std::array::from_fn(|_| UnsafeCell::new(0)),
        };
        (0..SIZE).for_each(|n| lane.post(n));
        Arc::new(lane)
    }

    /// A requester sends three messages through two slots while their owner takes them.
    fn exchanges<Word>(word: impl Fn() -> Word + Send + Sync + 'static) -> impl Fn() + Send + Sync + 'static
    where
        Word: Atomic<Value = u64> + Send + Sync + 'static,
    {
        move || {
            let lane = lane(&word);
            let requester = Arc::clone(&lane);
            let requester = thread::spawn(move || requester.send(0, 3));
            let mut n = 0;
            for _ in 0..3 {
                n += u32::from(lane.take(n));
            }
            requester.join().unwrap();
            while lane.take(n) {
                n += 1;
            }
            assert!((2..=3).contains(&n), "{n} messages were taken");
        }
    }

    /// A requester dies after it has shown its message and before it could store the next number;
    /// another one continues.
    fn goes_on(begin: Begin) -> impl Fn() + Send + Sync + 'static {
        move || {
            let lane = lane(word);
            let [first, second] = [(); 2].map(|()| Arc::clone(&lane));
            let first = thread::spawn(move || {
                assert!(first.fill(0));
                let unsaid = AtomicU32::new(0);
                show(first.state(0), &unsaid, 0);
            });
            let second = thread::spawn(move || {
                first.join().unwrap(); // The kernel reports that a process has ended.
                second.send(begin(&second), 2);
            });
            let n = u32::from(lane.take(0));
            second.join().unwrap();
            assert_eq!((n..2).filter(|n| lane.take(*n)).count() as u32, 2 - n);
        }
    }

    fn word() -> AtomicU64 {
        AtomicU64::new(0)
    }

    #[test]
    fn model_of_a_lane() {
        model::check_within(Some(4), exchanges(word));
        model::check_within(Some(4), goes_on(|lane| next_to_show(&lane.next, |n| lane.state(n))));
    }

    #[test]
    fn the_model_needs_the_orders_and_a_look_at_the_last_message() {
        let without = |order| move || Weaker { word: word(), order };
        let faults = [
            model::must_fail(exchanges(without(Acquire))),
            model::must_fail(exchanges(without(Release))),
            model::must_fail(goes_on(|lane| lane.next.load(Acquire))),
        ];
        assert!(faults.iter().all(|why| why.contains("access")), "{faults:?}");
    }
}
