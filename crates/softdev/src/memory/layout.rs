//! The layout of an arena, and which process may write each part.
//!
//! ```text
//! arena: Header | SharedQp x QPS | SharedCq x CQS | SharedMr x MRS | SharedContext x CONTEXTS
//!        | SharedMember x MEMBERS | SharedEnds x ENDS | lanes, posts and buffers
//! lane:  slots of one cache line, one for each receive that can be posted; then as many posts
//! ```
//!
//! Messages arrive in a lane. The requester writes message `n` into slot `n mod size`, with its
//! payload if that is small, and sets the slot's state to `done(n)`. The owner sees the state when
//! it polls. The owner writes no slot, except to skip or reclaim one for datagrams: a line of the
//! owner's says how far a requester may go ([`Credit`]), and the posts say where a larger payload
//! goes. There is no lock, and each step is one store, so a process that dies leaves nothing
//! half-done that others wait for.
//!
//! The lane of a connected queue pair has one requester, which publishes with a plain store. The
//! requester also names the queue pair in its own table while it uses it (`SharedQp::touching`):
//! the owner needs this to end the connection. Several requesters may send datagrams to one queue
//! pair: each first claims a slot by an atomic exchange.
//!
//! ```text
//!   connected: done(n - size) ──► done(n)
//!   datagrams: done(n - size) ──► claimed(n, block) ──► done(n)
//!                              ◄──     (claimer died)
//! ```

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use verbs::abi::*;

use crate::memory::arena::{PAGE, Shared, View};
use crate::memory::slots::{Post, Slot, SlotSge};
use crate::sys::limits::{CONTEXTS, CQS, MEMBERS, MRS, QPS};
use crate::sys::settings::MAX_DEVICES;

/// "softdev1" in ASCII.
pub(crate) const MAGIC: u64 = 0x3176_6564_7466_6f73;
/// The version of this layout: processes of different versions do not see each other.
pub(crate) const LAYOUT: u32 = 11;

/// The start of an arena.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) layout: AtomicU32,
    pub(crate) block: AtomicU32,
    /// A random number that distinguishes this process from later ones with the same block.
    pub(crate) life: AtomicU32,
    /// Incremented whenever a queue pair of any process joins a multicast group: see `multicast`.
    pub(crate) epoch: AtomicU32,
    /// The number of entries of the table of members that were ever used.
    pub(crate) members: AtomicU32,
    /// What this process has measured about stores that bypass the cache: see `copy::streaming`.
    pub(crate) streaming: [AtomicU32; 2],
    /// Whether any of the completion queues was ever owed an event.
    pub(crate) owes: AtomicU32,
    /// Locks for atomics on memory of this process that its peers have not mapped.
    pub(crate) locks: [Lock; LOCKS],
    /// The devices' ports, for link models.
    ports: [SharedPort; MAX_DEVICES as usize],
}

/// The number of locks of a process: enough that atomics on different words rarely share one.
pub(crate) const LOCKS: usize = 32;

/// A lock whose holder may die: a process that waits takes it from a dead holder. See `foreign`.
#[repr(C, align(64))]
pub(crate) struct Lock {
    /// The block and the life of the process that holds it; 0 if it is free.
    pub(crate) holder: AtomicU64,
}

/// A queue pair, as its peers see it. Each cache line has one writer while messages are exchanged.
#[repr(C, align(256))]
pub(crate) struct SharedQp {
    /// `ibv_qp_state`. The owner writes it; a requester that finds a responder error sets it to
    /// ERR.
    pub(crate) state: AtomicU32,
    /// The whole queue-pair number; 0 while the entry is unused.
    pub(crate) qp_num: AtomicU32,
    pub(crate) service: AtomicU32,
    pub(crate) dest_qp_num: AtomicU32,
    pub(crate) qkey: AtomicU32,
    pub(crate) pd: AtomicU32,
    /// Counts the uses of the entry, and the lives (from RESET to RESET) of the queue pair that
    /// uses it.
    pub(crate) generation: AtomicU32,
    pub(crate) recv_cq: AtomicU32,
    /// `IBV_ACCESS_REMOTE_*`: what its peer may do to the memory of its protection domain.
    pub(crate) access: AtomicU32,
    /// The number of Reads and atomics that it answers at a time (`max_dest_rd_atomic`).
    pub(crate) responder_resources: AtomicU32,
    /// 1 if its receives get a time stamp.
    pub(crate) stamped: AtomicU32,
    /// Its port: see `address::port_word`.
    pub(crate) port: AtomicU32,
    /// The entry of its context.
    pub(crate) context: AtomicU32,
    /// For requesters: the number of the next receive to fill.
    pub(crate) next: Line,
    /// For its own requests: the queue pair that it sends to or whose memory it accesses; 0 if
    /// none. A process that ends a connection or deregisters memory waits for this: see `reach`.
    pub(crate) touching: Line,
    pub(crate) posted: Posted,
}

/// What a requester reads of a queue pair at the start, and when it has used all receives that it
/// knew to be posted. It is on a cache line of its own, because the owner writes it with every
/// receive that it posts.
#[repr(C, align(64))]
pub(crate) struct Posted {
    /// See [`Credit`].
    pub(crate) credit: AtomicU64,
    pub(crate) ring_offset: AtomicU64,
    /// The number of slots of the lane, a power of two.
    pub(crate) ring_size: AtomicU32,
    /// The size of a post in bytes.
    pub(crate) ring_stride: AtomicU32,
    pub(crate) rq_psn: AtomicU32,
    pub(crate) min_rnr_timer: AtomicU32,
    /// The pool of its shared receive queue; 0 if it has receives of its own.
    pub(crate) pool_offset: AtomicU64,
    pub(crate) pool_size: AtomicU32,
    pub(crate) pool_stride: AtomicU32,
    /// The messages before this one have been taken; the value may lag behind.
    pub(crate) taken: AtomicU32,
}

/// How far requesters may go: the receives before `tail` are posted. The last `plain` of them have
/// valid elements and room for at least `room` bytes, so a message of at most that length needs no
/// look at its receive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Credit(u64);

impl Credit {
    const PLAIN_MAX: u32 = (1 << 24) - 1;

    pub(crate) fn new(tail: u32, plain: u32, room: u8) -> Self {
        Self(u64::from(tail) | u64::from(room) << 32 | u64::from(plain.min(Self::PLAIN_MAX)) << 40)
    }

    /// Decodes a word; every value is valid.
    #[inline]
    pub(crate) const fn decode(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(crate) const fn encode(self) -> u64 {
        self.0
    }

    /// The number of the next receive to be posted.
    #[inline]
    pub(crate) const fn tail(self) -> u32 {
        self.0 as u32
    }

    /// Whether the posted receive `n` is known to have room for `bytes` bytes.
    #[inline]
    pub(crate) const fn has_room(self, n: u32, bytes: u64) -> bool {
        (self.tail().wrapping_sub(n) as u64) <= self.0 >> 40 && bytes <= self.0 >> 32 & 0xff
    }
}

impl SharedQp {
    /// Enters ERR from a state in which messages arrive. Any other state was set by the owner and
    /// stays.
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

/// A completion queue, as seen by processes that complete receives in it.
#[repr(C, align(64))]
pub(crate) struct SharedCq {
    /// 0, or [`ARMED_ANY`] or [`ARMED_SOLICITED`].
    pub(crate) armed: AtomicU32,
    /// The owner's descriptor of the write end of the channel's pipe; -1 if there is none.
    pub(crate) channel_fd: AtomicI32,
    /// The inode of that pipe. It detects a descriptor that was closed and reused.
    pub(crate) channel_inode: AtomicU64,
    /// The value that is written to the pipe: it names the queue.
    pub(crate) handle: AtomicU64,
    /// 1 if the queue is owed an event, because the pipe had no room.
    pub(crate) owed: AtomicU32,
}

/// Armed for the next completion.
pub(crate) const ARMED_ANY: u32 = 1;
/// Armed for the next solicited completion or error.
pub(crate) const ARMED_SOLICITED: u32 = 2;

// SAFETY: all of these consist of atomics only.
unsafe impl Shared for Header {}
// SAFETY: as above.
unsafe impl Shared for SharedQp {}
// SAFETY: as above.
unsafe impl Shared for SharedCq {}

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<SlotSge>() == 16 && size_of::<SharedMr>() == 64);
const _: () = assert!(size_of::<SharedQp>() == 256 && size_of::<SharedCq>() == 64 && size_of::<Post>() == 16);

const QPS_AT: u64 = 2 * 4096;
const _: () = assert!(size_of::<Header>() as u64 <= QPS_AT);
const CQS_AT: u64 = QPS_AT + (QPS * size_of::<SharedQp>()) as u64;
const MRS_AT: u64 = CQS_AT + (CQS * size_of::<SharedCq>()) as u64;
pub(crate) const CONTEXTS_AT: u64 = MRS_AT + (MRS * size_of::<SharedMr>()) as u64;
pub(crate) const MEMBERS_AT: u64 = CONTEXTS_AT + (CONTEXTS * size_of::<SharedContext>()) as u64;
const ENDS_AT: u64 = (MEMBERS_AT + (MEMBERS * size_of::<SharedMember>()) as u64).next_multiple_of(64);
/// The size in bytes of the tables at the start of an arena: whole pages, so that the memory behind
/// them can be freed by pages.
pub(crate) const TABLES: u64 =
    (ENDS_AT + (ENDS * size_of::<SharedEnds>()) as u64).next_multiple_of(PAGE as u64);

/// The tables of an arena.
impl View {
    /// The port of one of the process's devices, for a link model.
    pub(crate) fn port(&self, device: u8) -> &SharedPort {
        &self.header().ports[usize::from(device % MAX_DEVICES)]
    }

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

/// The table entry of a key.
#[inline]
pub(crate) fn mr_index(key: u32) -> u32 {
    (key >> 8) % MRS as u32
}

/// A memory region. Its key changes whenever it is deregistered.
#[repr(C, align(64))]
pub(crate) struct SharedMr {
    /// lkey and rkey; 0 while the entry is unused.
    pub(crate) key: AtomicU32,
    pub(crate) pd: AtomicU32,
    pub(crate) access: AtomicU32,
    /// 1 if the bytes lie in the arena at `offset`; 0 if only the owner has them mapped.
    pub(crate) in_arena: AtomicU32,
    /// The address in the owner.
    pub(crate) addr: AtomicU64,
    pub(crate) length: AtomicU64,
    pub(crate) offset: AtomicU64,
}

impl SharedMr {
    /// Makes an unused entry.
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

// SAFETY: it consists of atomics only.
unsafe impl Shared for SharedMr {}

/// A context, as seen by processes that raise asynchronous events.
#[repr(C)]
pub(crate) struct SharedContext {
    /// The inode of the pipe for its events. It detects a descriptor that was closed and reused.
    pub(crate) inode: AtomicU64,
    /// The owner's descriptor of the write end; -1 if there is none.
    pub(crate) fd: AtomicI32,
    /// The number of events that did not fit in the pipe.
    pub(crate) lost: AtomicU32,
}

// SAFETY: it consists of atomics only.
unsafe impl Shared for SharedContext {}

impl View {
    pub(crate) fn context(&self, index: u32) -> &SharedContext {
        let index = u64::from(index) % CONTEXTS as u64;
        self.shared(CONTEXTS_AT + index * size_of::<SharedContext>() as u64)
            .expect("an arena is larger than its tables")
    }
}

/// A port of a link model, in shared memory. Peers that read from this process's memory make it
/// send; peers that send to this process make it receive.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SharedPort {
    /// When the port will have sent everything that it was given.
    pub(crate) sends_until: Until,
    /// When the port will have received everything that is under way to it.
    pub(crate) receives_until: Until,
}

/// A point in time on a cache line of its own, because different processes write the two
/// directions.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Until(pub(crate) AtomicU64);

// SAFETY: it consists of atomics only.
unsafe impl Shared for SharedPort {}

impl SharedPort {
    /// Makes an idle port.
    pub(crate) const fn new() -> Self {
        Self { sends_until: Until(AtomicU64::new(0)), receives_until: Until(AtomicU64::new(0)) }
    }
}

/// A queue pair that has joined a multicast group.
#[repr(C)]
pub(crate) struct SharedMember {
    pub(crate) group: [AtomicU64; 2],
    /// 0 while the entry is unused.
    pub(crate) qp_num: AtomicU32,
}

// SAFETY: it consists of atomics only.
unsafe impl Shared for SharedMember {}

impl View {
    pub(crate) fn member(&self, index: u32) -> &SharedMember {
        let index = u64::from(index) % MEMBERS as u64;
        self.shared(MEMBERS_AT + index * size_of::<SharedMember>() as u64)
            .expect("an arena is larger than its tables")
    }
}

/// The GIDs of the sender and the receiver of datagrams that came to the process: see `ends`.
#[repr(C, align(64))]
pub(crate) struct SharedEnds {
    /// 0 until a sender begins to make the entry.
    pub(crate) state: AtomicU32,
    /// The sender's and the receiver's GID, in halves.
    pub(crate) gids: [AtomicU64; 4],
}

/// The number of entries of the table of ends; they are numbered from 1.
pub(crate) const ENDS: usize = 254;

// SAFETY: it consists of atomics only.
unsafe impl Shared for SharedEnds {}

impl View {
    pub(crate) fn ends(&self, number: u8) -> &SharedEnds {
        let index = u64::from(number.wrapping_sub(1)) % ENDS as u64;
        self.shared(ENDS_AT + index * size_of::<SharedEnds>() as u64)
            .expect("an arena is larger than its tables")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credit_knows_the_room_of_the_last_receives_only() {
        for tail in [20_u32, 1, u32::MAX] {
            let credit = Credit::decode(Credit::new(tail, 4, 16).encode());
            assert_eq!(credit.tail(), tail);
            assert!(credit.has_room(tail.wrapping_sub(1), 16) && credit.has_room(tail.wrapping_sub(4), 0));
            assert!(!credit.has_room(tail.wrapping_sub(1), 17) && !credit.has_room(tail.wrapping_sub(5), 0));
        }
        assert!(!Credit::new(0, u32::MAX, 32).has_room(1 << 30, 32));
    }
}
