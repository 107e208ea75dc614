//! What stands in an arena, and who may write it.
//!
//! ```text
//! arena: Header | SharedQp x QPS | SharedCq x CQS | SharedMr x MRS | receive rings and buffers
//! ring:  slots; one for each receive that can be posted
//! ```
//!
//! A receive ring is how messages arrive. Its owner posts a receive by filling slot `n mod size` and setting the slot's
//! state to `posted(n)`; the peer that has a message for receive `n` places the payload and sets the state to `done(n)`;
//! the owner, polling, sees that. There is no other index, and no lock: the one word says whose turn it is, and each
//! step is one atomic store or exchange, so that a process that dies leaves nothing half-done that others wait for.
//!
//! ```text
//!   empty ──► posted(n) ──► done(n) ──► posted(n + size) ...
//!                 │  ▲         ▲
//!                 ▼  │ (claimer died)
//!              claimed(n, block) ──► done(n)        a payload that does not fit in the slot
//!                 │
//!   posted(n) ──► flushed(n)                        by the owner, when the queue pair fails
//! ```

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64};

use verbs::abi::*;

use crate::arena::{Shared, View};
use crate::limits::{CQS, MAX_SGE, MAX_WR, MRS, QPS};

/// "softdev1" in ASCII.
pub(crate) const MAGIC: u64 = 0x3176_6564_7466_6f73;
/// Version of this layout: processes of different versions do not see each other.
pub(crate) const LAYOUT: u32 = 2;

/// Start of an arena.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) layout: AtomicU32,
    pub(crate) block: AtomicU32,
    /// Drawn by lot, so that a later process with the same block is not taken for this one.
    pub(crate) life: AtomicU32,
    /// Locks for atomics on memory of this process that its peers have not mapped.
    pub(crate) locks: [Lock; LOCKS],
}

/// Locks of a process: few atomics on different words meet in one.
pub(crate) const LOCKS: usize = 32;

/// A lock that a process may die with: whoever waits takes it from the dead. See `foreign`.
#[repr(C, align(64))]
pub(crate) struct Lock {
    /// Block and life of the process that holds it; 0 for nobody.
    pub(crate) holder: AtomicU64,
}

/// A queue pair, as its peers see it.
#[repr(C, align(64))]
pub(crate) struct SharedQp {
    /// `ibv_qp_state`. Written by the owner; a requester that finds a responder error sets it to ERR.
    pub(crate) state: AtomicU32,
    /// Whole queue-pair number, 0 while the entry is unused.
    pub(crate) qp_num: AtomicU32,
    pub(crate) service: AtomicU32,
    pub(crate) dest_qp_num: AtomicU32,
    pub(crate) qkey: AtomicU32,
    pub(crate) rq_psn: AtomicU32,
    pub(crate) min_rnr_timer: AtomicU32,
    pub(crate) pd: AtomicU32,
    /// Counts the uses of the entry, and the lives (from RESET to RESET) of the queue pair that uses it.
    pub(crate) generation: AtomicU32,
    pub(crate) recv_cq: AtomicU32,
    pub(crate) ring_offset: AtomicU64,
    /// Slots of the ring, a power of two.
    pub(crate) ring_size: AtomicU32,
    /// Bytes of a slot.
    pub(crate) ring_stride: AtomicU32,
    /// `IBV_ACCESS_REMOTE_*`: what its peer may do to the memory of its domain.
    pub(crate) access: AtomicU32,
    /// Reads and atomics that it answers at a time (`max_dest_rd_atomic`).
    pub(crate) responder_resources: AtomicU32,
    /// On a line of its own, for the requesters: the next receive to be filled.
    pub(crate) next: Line,
    /// On a line of its own, for its own requests: the queue pair in whose domain's memory it is at work, or 0. Who takes
    /// memory away waits for it: see `one_sided`.
    pub(crate) touching: Line,
}

impl SharedQp {
    /// Enters ERR from a state in which messages arrive; any other state is the owner's own doing and stays.
    #[cold]
    pub(crate) fn fail(&self) {
        let failed = |state| (IBV_QPS_RTR..=IBV_QPS_SQE).contains(&state).then_some(IBV_QPS_ERR);
        let _ = self.state.fetch_update(SeqCst, SeqCst, failed);
    }
}

/// A word on a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct Line {
    pub(crate) value: AtomicU32,
}

/// A completion queue, as those see it who complete receives in it.
#[repr(C, align(64))]
pub(crate) struct SharedCq {
    /// 0, or [`ARMED_ANY`] or [`ARMED_SOLICITED`].
    pub(crate) armed: AtomicU32,
    /// The owner's descriptor of the writing end of the channel's pipe; -1 for none.
    pub(crate) channel_fd: AtomicI32,
    /// Inode of that pipe, so that a descriptor that was closed and used again is not taken for it.
    pub(crate) channel_inode: AtomicU64,
    /// What is written to the pipe: which queue has the event.
    pub(crate) handle: AtomicU64,
}

/// Armed for the next completion.
pub(crate) const ARMED_ANY: u32 = 1;
/// Armed for the next solicited completion or error.
pub(crate) const ARMED_SOLICITED: u32 = 2;

/// A memory region. Its key changes whenever it is deregistered.
#[repr(C, align(64))]
pub(crate) struct SharedMr {
    /// lkey and rkey; 0 while the entry is unused.
    pub(crate) key: AtomicU32,
    pub(crate) pd: AtomicU32,
    pub(crate) access: AtomicU32,
    /// 1 where the bytes lie in the arena at `offset`, 0 where only the owner has them mapped.
    pub(crate) in_arena: AtomicU32,
    /// Address in the owner.
    pub(crate) addr: AtomicU64,
    pub(crate) length: AtomicU64,
    pub(crate) offset: AtomicU64,
}

impl SharedMr {
    /// An entry that is not used.
    pub(crate) const fn new() -> Self {
        Self {
            key: AtomicU32::new(0),
            pd: AtomicU32::new(0),
            access: AtomicU32::new(0),
            in_arena: AtomicU32::new(0),
            addr: AtomicU64::new(0),
            length: AtomicU64::new(0),
            offset: AtomicU64::new(0),
        }
    }
}

/// The first line of a slot of a receive ring; the receive's scatter list follows in further lines.
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// Whose turn it is: see [`SlotState`].
    pub(crate) state: AtomicU64,
    /// Owner: bytes that the posted receive has room for.
    pub(crate) room: AtomicU32,
    /// Owner: elements of the posted receive, with [`UNCHECKED`] where one of them was not valid when it was posted.
    pub(crate) num_sge: AtomicU32,
    /// Requester: payload bytes, for UD with the GRH.
    pub(crate) byte_len: AtomicU32,
    /// Requester: immediate data, network byte order.
    pub(crate) imm: AtomicU32,
    /// Requester: its queue-pair number.
    pub(crate) src_qp: AtomicU32,
    /// Requester: `ibv_wc_status`.
    pub(crate) status: AtomicU8,
    /// Requester: `FLAG_*`.
    pub(crate) flags: AtomicU8,
    pub(crate) service_level: AtomicU8,
    pub(crate) traffic_class: AtomicU8,
    /// Requester: a payload of at most [`SLOT_PAYLOAD`] bytes.
    pub(crate) payload: [AtomicU64; 4],
}

/// Payload bytes that travel in a slot's own line: a small message costs one cache-line transfer.
pub(crate) const SLOT_PAYLOAD: usize = 32;
/// In `num_sge`: the requester must check the scatter list itself.
pub(crate) const UNCHECKED: u32 = 1 << 31;
/// The payload is in the slot.
pub(crate) const FLAG_IN_SLOT: u8 = 1;
/// There is immediate data.
pub(crate) const FLAG_IMM: u8 = 2;
/// The sender asked for a solicited event.
pub(crate) const FLAG_SOLICITED: u8 = 4;
/// It was an RDMA write with immediate data: the payload is elsewhere.
pub(crate) const FLAG_WRITE: u8 = 8;

/// An element of a posted receive's scatter list.
#[repr(C)]
pub(crate) struct SlotSge {
    pub(crate) addr: AtomicU64,
    pub(crate) length: AtomicU32,
    pub(crate) lkey: AtomicU32,
}

impl SlotSge {
    /// The element as the verbs have it.
    #[inline]
    pub(crate) fn load(&self) -> ibv_sge {
        let (addr, length) = (self.addr.load(Relaxed), self.length.load(Relaxed));
        ibv_sge { addr, length, lkey: self.lkey.load(Relaxed) }
    }
}

// SAFETY: all of these consist of atomics only.
unsafe impl Shared for Header {}
// SAFETY: as above.
unsafe impl Shared for SharedQp {}
// SAFETY: as above.
unsafe impl Shared for SharedCq {}
// SAFETY: as above.
unsafe impl Shared for SharedMr {}
// SAFETY: as above.
unsafe impl Shared for Slot {}
// SAFETY: as above.
unsafe impl Shared for SlotSge {}

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<SlotSge>() == 16 && size_of::<SharedMr>() == 64);
const _: () = assert!(size_of::<SharedQp>() == 192 && size_of::<SharedCq>() == 64);

const QPS_AT: u64 = 4096;
const _: () = assert!(size_of::<Header>() as u64 <= QPS_AT);
const CQS_AT: u64 = QPS_AT + (QPS * size_of::<SharedQp>()) as u64;
const MRS_AT: u64 = CQS_AT + (CQS * size_of::<SharedCq>()) as u64;
/// Bytes at the start of an arena that the tables take.
pub(crate) const TABLES: u64 = MRS_AT + (MRS * size_of::<SharedMr>()) as u64;

/// The tables of an arena.
impl View {
    pub(crate) fn header(&self) -> &Header {
        self.shared(0).expect("an arena is larger than its tables")
    }

    #[inline]
    pub(crate) fn qp(&self, index: u32) -> &SharedQp {
        let index = u64::from(index) % QPS as u64;
        self.shared(QPS_AT + index * size_of::<SharedQp>() as u64)
            .expect("an arena is larger than its tables")
    }

    #[inline]
    pub(crate) fn cq(&self, index: u32) -> &SharedCq {
        let index = u64::from(index) % CQS as u64;
        self.shared(CQS_AT + index * size_of::<SharedCq>() as u64)
            .expect("an arena is larger than its tables")
    }

    #[inline]
    pub(crate) fn mr(&self, key: u32) -> &SharedMr {
        let index = u64::from(mr_index(key));
        self.shared(MRS_AT + index * size_of::<SharedMr>() as u64)
            .expect("an arena is larger than its tables")
    }
}

/// The table entry that a key names.
#[inline]
pub(crate) fn mr_index(key: u32) -> u32 {
    (key >> 8) % MRS as u32
}

/// The word that says whose turn a slot is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SlotState {
    /// No receive is posted.
    Empty,
    /// Receive `n` is posted.
    Posted(u32),
    /// The process of a block is placing the payload of receive `n`.
    Claimed(u32, u32),
    /// Receive `n` is complete.
    Done(u32),
    /// Receive `n` was flushed.
    Flushed(u32),
}

impl SlotState {
    #[inline]
    pub(crate) const fn encode(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Posted(n) => 1 | (n as u64) << 32,
            Self::Claimed(n, block) => 2 | ((block & 0xff_ffff) as u64) << 8 | (n as u64) << 32,
            Self::Done(n) => 3 | (n as u64) << 32,
            Self::Flushed(n) => 4 | (n as u64) << 32,
        }
    }

    /// Whether a word says that receive `n` is complete, flushed or being placed.
    #[inline]
    pub(crate) const fn is_over(word: u64, n: u32) -> bool {
        (word >> 32) as u32 == n && word & 0xff > 1
    }

    /// Any word has a meaning: what no one of ours wrote counts as empty.
    #[inline]
    pub(crate) const fn decode(word: u64) -> Self {
        let n = (word >> 32) as u32;
        match word & 0xff {
            1 => Self::Posted(n),
            2 => Self::Claimed(n, (word >> 8) as u32 & 0xff_ffff),
            3 => Self::Done(n),
            4 => Self::Flushed(n),
            _ => Self::Empty,
        }
    }
}

/// A receive ring in somebody's arena.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ring {
    pub(crate) offset: u64,
    pub(crate) size: u32,
    pub(crate) stride: u32,
}

/// The slots of a ring whose place was checked: reached without a further check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    base: NonNull<u8>,
    mask: u32,
    stride: u32,
}

impl Slots {
    /// The slot of receive `n`.
    ///
    /// # Safety
    /// The view that the ring was checked against is still mapped.
    #[inline]
    pub(crate) unsafe fn slot<'a>(self, n: u32) -> &'a Slot {
        let at = (n & self.mask) as usize * self.stride as usize;
        // SAFETY: `Ring::slots` has checked that all slots lie in the view, aligned, and the caller vouches that it is
        // mapped; any bytes are a valid slot.
        unsafe { self.base.add(at).cast().as_ref() }
    }
}

impl Ring {
    /// Bytes of a slot with room for `max_sge` elements.
    pub(crate) fn stride_for(max_sge: u32) -> u32 {
        64 + (max_sge * size_of::<SlotSge>() as u32).next_multiple_of(64)
    }

    /// Bytes of the whole ring.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.size) * u64::from(self.stride)
    }

    /// Whether this can be a ring of `view`: what a peer's table says is checked once, when it is first used.
    pub(crate) fn is_sane(self, view: &View) -> bool {
        self.size.is_power_of_two()
            && self.size <= MAX_WR.next_power_of_two()
            && self.stride >= 128
            && self.stride <= Self::stride_for(MAX_SGE as u32)
            && self.stride.is_multiple_of(64)
            && self.offset.is_multiple_of(64)
            && view.at(self.offset, self.bytes()).is_some()
    }

    /// Its slots, if it can be a ring of `view`.
    pub(crate) fn slots(self, view: &View) -> Option<Slots> {
        let base = view.at(self.offset, self.bytes()).filter(|_| self.is_sane(view))?;
        Some(Slots { base, mask: self.size - 1, stride: self.stride })
    }

    fn slot_at(self, n: u32) -> u64 {
        self.offset + u64::from(n & (self.size.wrapping_sub(1))) * u64::from(self.stride)
    }

    /// Element `i` of the scatter list of receive `n`; `None` beyond the slot.
    #[inline]
    pub(crate) fn sge(self, view: &View, n: u32, i: u32) -> Option<&SlotSge> {
        let within = 64 + u64::from(i) * size_of::<SlotSge>() as u64;
        if within + size_of::<SlotSge>() as u64 > u64::from(self.stride) {
            return None;
        }
        view.shared(self.slot_at(n) + within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_word() {
        for state in [
            SlotState::Empty,
            SlotState::Posted(0),
            SlotState::Posted(u32::MAX),
            SlotState::Claimed(7, 0xff_ffff),
            SlotState::Done(1 << 31),
            SlotState::Flushed(3),
        ] {
            assert_eq!(SlotState::decode(state.encode()), state);
        }
        assert_eq!(SlotState::decode(0xffff_ffff_ffff_ffff), SlotState::Empty);
    }
}
