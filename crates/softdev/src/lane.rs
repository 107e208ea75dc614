//! A requester's end of a lane: where the next message goes, and what is known of the receives at the other end.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::limits::BOUNCES;
use crate::shared::{Credit, Post, SharedQp, Slot, SlotSge, SlotState, Slots, UNCHECKED};

/// The lane of a queue pair of a peer. Its mapping is held by whoever holds the lane.
pub(crate) struct Lane {
    slots: Slots,
    /// Of a connection: number of the next message.
    next: Cell<u32>,
    /// What was last read of what is posted.
    credit: Cell<Credit>,
}

/// A receive as its owner shows it to requesters.
#[derive(Clone, Copy)]
pub(crate) struct PostedReceive<'a> {
    pub(crate) room: u32,
    pub(crate) valid: bool,
    pub(crate) elements: &'a [SlotSge],
    /// Protection domain of the memory that it names.
    pub(crate) pd: u32,
}

impl<'a> PostedReceive<'a> {
    pub(crate) fn read(post: &Post, elements: &'a [SlotSge], pd: u32) -> Self {
        let num_sge = post.num_sge.load(Relaxed);
        let elements = elements.get(..(num_sge & !UNCHECKED) as usize).unwrap_or_default();
        Self { room: post.room.load(Relaxed), valid: num_sge & UNCHECKED == 0, elements, pd }
    }
}

impl Lane {
    /// The lane of the queue pair that `shared` shows.
    ///
    /// # Safety
    /// The view that the slots were checked against stays mapped as long as the lane is used.
    pub(crate) unsafe fn new(slots: Slots, shared: &SharedQp) -> Self {
        let credit = Credit::decode(shared.posted.credit.load(Acquire));
        let lane =
            Self { slots, next: Cell::new(shared.next.value.load(Acquire)), credit: Cell::new(credit) };
        // Who published the last message may have died before it could say so.
        let n = lane.next.get();
        if SlotState::decode(lane.slot(n).state.load(Acquire)) == SlotState::Done(n) {
            lane.next.set(n.wrapping_add(1));
        }
        lane
    }

    /// Slots that there are.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.slots.size()
    }

    /// The slot of message `n`.
    #[inline]
    pub(crate) fn slot(&self, n: u32) -> &Slot {
        // SAFETY: whoever made the lane vouches for the mapping.
        unsafe { self.slots.slot(n) }
    }

    /// What is posted as receive `n`.
    pub(crate) fn post(&self, shared: &SharedQp, n: u32) -> PostedReceive<'_> {
        // SAFETY: as in `slot`.
        let (post, elements) = unsafe { self.slots.post(n) };
        PostedReceive::read(post, elements, shared.pd.load(Relaxed))
    }

    /// Where the payload of message `n` may go in the lane's own memory, if whatever was there has been taken.
    pub(crate) fn bounce(&self, shared: &SharedQp, n: u32) -> Option<NonNull<u8>> {
        let is_free = n.wrapping_sub(shared.posted.taken.load(Acquire)) < BOUNCES;
        self.slots.bounce(n).filter(|_| is_free)
    }

    /// Number of the next message of a connection.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next.get()
    }

    /// What is posted, if receive `n` is among it.
    #[inline]
    pub(crate) fn credit_for(&self, shared: &SharedQp, n: u32) -> Option<Credit> {
        let known = self.credit.get();
        if self.covers(known, n) {
            return Some(known);
        }
        self.credit_anew(shared, n)
    }

    #[inline(never)]
    fn credit_anew(&self, shared: &SharedQp, n: u32) -> Option<Credit> {
        let now = Credit::decode(shared.posted.credit.load(Acquire));
        self.credit.set(now);
        self.covers(now, n).then_some(now)
    }

    #[inline]
    fn covers(&self, credit: Credit, n: u32) -> bool {
        credit.tail().wrapping_sub(n).wrapping_sub(1) < self.size()
    }

    /// Shows message `n` of a connection, which stands in its slot, to the owner.
    #[inline]
    pub(crate) fn publish(&self, shared: &SharedQp, n: u32) {
        self.slot(n).state.store(SlotState::Done(n).encode(), Release);
        let next = n.wrapping_add(1);
        self.next.set(next);
        shared.next.value.store(next, Relaxed);
        prefetch_to_write(self.slot(next));
    }
}

/// Asks for a cache line before it is written to.
#[inline]
pub(crate) fn prefetch_to_write(slot: &Slot) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect that a program can see, whatever the address; where the CPU does not know this
    // instruction, it does nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) &raw const *slot, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}
