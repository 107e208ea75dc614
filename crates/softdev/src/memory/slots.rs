//! The slots of a lane, and the receives that are posted behind them: what a requester writes about
//! a message, and where the payload goes.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use verbs::abi::*;

use crate::memory::arena::{Shared, View};
use crate::sys::limits::{BOUNCE_BYTES, BOUNCES, MAX_SGE, MAX_WR};
use crate::sys::sync::{Cpu, atomics};

/// A message in a lane. The owner of the lane trusts only what it has posted itself.
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// The state of the slot: see [`SlotState`].
    pub(crate) state: AtomicU64,
    /// The payload in bytes, for UD with the GRH.
    pub(crate) byte_len: AtomicU32,
    /// Immediate data, in network byte order.
    pub(crate) imm: AtomicU32,
    /// The requester's queue-pair number. For a datagram, the upper eight bits are the number of
    /// its GIDs: see `ends`.
    pub(crate) sender: AtomicU32,
    /// `ibv_wc_status`.
    pub(crate) status: AtomicU8,
    /// `FLAG_*`.
    pub(crate) flags: AtomicU8,
    /// The requester's service level in the low half, and the number of its device in the high
    /// half.
    pub(crate) service_level: AtomicU8,
    pub(crate) traffic_class: AtomicU8,
    /// The index of the receive that was taken from a shared receive queue, which has at most
    /// `MAX_WR`.
    pub(crate) index: AtomicU16,
    pub(crate) stamp_high: AtomicU16,
    pub(crate) stamp_low: AtomicU32,
    /// A payload of at most [`SLOT_PAYLOAD`] bytes.
    pub(crate) payload: [AtomicU64; 4],
}

const _: () = assert!(MAX_WR as usize <= 1 << u16::BITS, "an index of a shared receive queue fits in a slot");

/// Payload bytes that fit in a slot's own cache line: a small message costs one cache-line
/// transfer.
pub(crate) const SLOT_PAYLOAD: usize = 32;

/// A posted receive, as requesters see it; its scatter list follows.
#[repr(C)]
pub(crate) struct Post {
    /// The bytes that fit.
    pub(crate) room: AtomicU32,
    /// The number of elements, with [`UNCHECKED`] if one of them was invalid when it was posted.
    pub(crate) num_sge: AtomicU32,
    reserved: AtomicU64,
}

/// In `num_sge`: the requester must check the scatter list itself.
pub(crate) const UNCHECKED: u32 = 1 << 31;

/// The payload is in the slot.
pub(crate) const FLAG_IN_SLOT: u8 = 1;

/// There is immediate data.
pub(crate) const FLAG_IMM: u8 = 2;

/// The sender asked for a solicited event.
pub(crate) const FLAG_SOLICITED: u8 = 4;

/// The payload is in the lane's own memory: see [`Slots::bounce`].
pub(crate) const FLAG_BOUNCED: u8 = 32;

/// The message is an RDMA Write with immediate data: the payload is elsewhere.
pub(crate) const FLAG_WRITE: u8 = 8;

/// A datagram with a global route header.
pub(crate) const FLAG_GLOBAL: u8 = 16;

/// An element of a posted receive's scatter list.
#[repr(C)]
pub(crate) struct SlotSge {
    pub(crate) addr: AtomicU64,
    pub(crate) length: AtomicU32,
    pub(crate) lkey: AtomicU32,
}

impl SlotSge {
    /// Returns the element as a structure of verbs.
    #[inline]
    pub(crate) fn load(&self) -> ibv_sge {
        let addr = self.addr.load(Relaxed);
        let length = self.length.load(Relaxed);
        ibv_sge { addr, length, lkey: self.lkey.load(Relaxed) }
    }

    #[inline]
    pub(crate) fn store(&self, sge: &ibv_sge) {
        self.addr.store(sge.addr, Relaxed);
        self.length.store(sge.length, Relaxed);
        self.lkey.store(sge.lkey, Relaxed);
    }
}

// SAFETY: it consists of atomics only.
unsafe impl Shared for Slot {}

// SAFETY: as above.
unsafe impl Shared for Post {}

// SAFETY: as above.
unsafe impl Shared for SlotSge {}

/// The state of a slot, one word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SlotState {
    /// The slot was never used.
    Empty,
    /// The process of a block is placing the payload of datagram `n`.
    Claimed(u32, u32),
    /// Message `n` has arrived.
    Done(u32),
}

impl SlotState {
    #[inline]
    pub(crate) const fn encode(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Claimed(n, block) => 2 | ((block & 0xff_ffff) as u64) << 8 | (n as u64) << 32,
            Self::Done(n) => 3 | (n as u64) << 32,
        }
    }

    /// Whether a word says that message `n` or a later one has arrived or is being placed. A thread
    /// may hold an old number, because another thread has just polled. It must not overlook the
    /// later message and go to sleep.
    #[inline]
    pub(crate) const fn is_over(word: u64, n: u32) -> bool {
        word & 0xff > 1 && ((word >> 32) as u32).wrapping_sub(n).cast_signed() >= 0
    }

    /// Decodes a word; every value is valid. A value that softdev does not write counts as empty.
    #[inline]
    pub(crate) const fn decode(word: u64) -> Self {
        let n = (word >> 32) as u32;
        match word & 0xff {
            2 => Self::Claimed(n, (word >> 8) as u32 & 0xff_ffff),
            3 => Self::Done(n),
            _ => Self::Empty,
        }
    }

    /// Whether message `n` of a lane of `size` slots may take the slot: the message before it has
    /// been taken.
    pub(crate) const fn is_free_for(self, n: u32, size: u32) -> bool {
        match self {
            Self::Empty => true,
            Self::Claimed(..) => false,
            Self::Done(before) => n.wrapping_sub(before).cast_signed() >= size.cast_signed(),
        }
    }
}

/// A lane and its posts in the arena of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ring {
    pub(crate) offset: u64,
    pub(crate) size: u32,
    pub(crate) stride: u32,
}

/// The slots and the posts of a lane. Their place was checked, so an access needs no further check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    base: NonNull<u8>,
    posts: NonNull<u8>,
    bounces: NonNull<u8>,
    mask: u32,
    stride: u32,
}

impl Slots {
    /// Where the payload of message `n` goes, up to [`BOUNCE_BYTES`], if it goes through the lane's
    /// own memory.
    #[inline]
    pub(crate) fn bounce(self, n: u32) -> NonNull<u8> {
        let at = (n % BOUNCES) as usize * BOUNCE_BYTES;
        // SAFETY: `Ring::slots` has checked that these bytes lie in the view.
        unsafe { self.bounces.add(at) }
    }

    /// Whether the posts are in the lane, and not in a shared receive queue.
    #[inline]
    pub(crate) fn has_posts(self) -> bool {
        self.stride != 0
    }

    /// The number of slots, a power of two.
    #[inline]
    pub(crate) fn size(self) -> u32 {
        self.mask + 1
    }

    /// The slot of message `n`.
    ///
    /// # Safety
    /// The view that the ring was checked against is still mapped.
    #[inline]
    pub(crate) unsafe fn slot<'a>(self, n: u32) -> &'a Slot {
        let at = (n & self.mask) as usize * size_of::<Slot>();
        // SAFETY: `Ring::slots` has checked that all slots lie in the view, aligned, and the caller
        // guarantees that it is mapped; any bytes are a valid slot.
        unsafe { self.base.add(at).cast().as_ref() }
    }

    /// Returns the post of receive `n`, and its elements: there may be fewer than the post says.
    ///
    /// # Safety
    /// As [`slot`](Self::slot).
    #[inline]
    pub(crate) unsafe fn post<'a>(self, n: u32) -> (&'a Post, &'a [SlotSge]) {
        let at = (n & self.mask) as usize * self.stride as usize;
        let elements = (self.stride as usize).saturating_sub(size_of::<Post>()) / size_of::<SlotSge>();
        // SAFETY: `Ring::slots` has checked that all posts lie in the view, aligned, each with room
        // for these elements, and the caller guarantees that it is mapped; any bytes are a valid
        // post and valid elements.
        unsafe {
            let post = self.posts.add(at).cast::<Post>();
            (post.as_ref(), std::slice::from_raw_parts(post.add(1).cast().as_ptr(), elements))
        }
    }
}

impl Ring {
    /// The size in bytes of a post with `max_sge` elements: whole cache lines, so that a write to
    /// one post disturbs no other. A lane with a shared receive queue has no posts.
    pub(crate) fn stride_for(max_sge: u32) -> u32 {
        ((size_of::<Post>() + max_sge as usize * size_of::<SlotSge>()) as u32).next_multiple_of(64)
    }

    /// The size in bytes, with the lane's own memory.
    pub(crate) fn bytes(self) -> u64 {
        self.lane_bytes() + u64::from(BOUNCES) * BOUNCE_BYTES as u64
    }

    /// The size in bytes of the slots and the posts.
    pub(crate) fn lane_bytes(self) -> u64 {
        u64::from(self.size) * (size_of::<Slot>() as u64 + u64::from(self.stride))
    }

    /// Whether this can be a ring of `view`. The values in a peer's table are checked once, when
    /// they are first used.
    pub(crate) fn is_sane(self, view: &View) -> bool {
        self.size.is_power_of_two()
            && self.size <= MAX_WR.next_power_of_two()
            && (self.stride == 0 || (64..=Self::stride_for(MAX_SGE as u32)).contains(&self.stride))
            && self.stride.is_multiple_of(64)
            && self.offset.is_multiple_of(64)
            && view.at(self.offset, self.bytes()).is_some()
    }

    /// Returns the slots if this can be a ring of `view`.
    pub(crate) fn slots(self, view: &View) -> Option<Slots> {
        if !self.is_sane(view) {
            return None;
        }
        let lane = u64::from(self.size) * size_of::<Slot>() as u64;
        let base = view.at(self.offset, lane)?;
        // Without posts, the pointer is unused; it points to some valid bytes.
        let has_posts = self.stride != 0;
        let posts = if has_posts { view.at(self.offset + lane, self.bytes() - lane)? } else { base };
        let bounces = view.at(self.offset + self.lane_bytes(), self.bytes() - self.lane_bytes())?;
        Some(Slots { base, posts, bounces, mask: self.size - 1, stride: self.stride })
    }
}

atomics!(Cpu: AtomicPtr<Slot> => *mut Slot);

impl Slot {
    /// Notes when the requester completed the message: the low 48 bits of the clock. Only used if
    /// the receiver's queue has stamps.
    #[inline]
    pub(crate) fn set_stamp(&self, ticks: u64) {
        self.stamp_low.store(ticks as u32, Relaxed);
        self.stamp_high.store((ticks >> 32) as u16, Relaxed);
    }

    /// Returns these bits.
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        u64::from(self.stamp_low.load(Relaxed)) | u64::from(self.stamp_high.load(Relaxed)) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_word() {
        for state in [
            SlotState::Empty,
            SlotState::Claimed(7, 0xff_ffff),
            SlotState::Done(0),
            SlotState::Done(u32::MAX),
            SlotState::Done(1 << 31),
        ] {
            assert_eq!(SlotState::decode(state.encode()), state);
        }
        assert_eq!(SlotState::decode(0xffff_ffff_ffff_ffff), SlotState::Empty);
    }

    #[test]
    fn a_slot_is_free_once_its_message_was_taken() {
        for n in [0_u32, 8, 1 << 31, u32::MAX] {
            assert!(SlotState::Empty.is_free_for(n, 8));
            assert!(SlotState::Done(n.wrapping_sub(8)).is_free_for(n, 8));
            assert!(SlotState::Done(n.wrapping_sub(24)).is_free_for(n, 8), "skipped by a reset");
            assert!(!SlotState::Done(n).is_free_for(n, 8));
            assert!(!SlotState::Done(n.wrapping_add(8)).is_free_for(n, 8));
            assert!(!SlotState::Claimed(n.wrapping_sub(8), 1).is_free_for(n, 8));
        }
    }

    #[test]
    fn an_old_number_hides_no_later_message() {
        for n in [0_u32, 8, 1 << 31, u32::MAX] {
            let is_over = |state: SlotState| SlotState::is_over(state.encode(), n);
            assert!(is_over(SlotState::Done(n)) && is_over(SlotState::Claimed(n, 1)));
            assert!(is_over(SlotState::Done(n.wrapping_add(8))), "the slot was used again since");
            assert!(!is_over(SlotState::Done(n.wrapping_sub(8))) && !is_over(SlotState::Empty));
        }
    }
}
