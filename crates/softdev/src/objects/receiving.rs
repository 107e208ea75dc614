//! The receive queue of a queue pair, and the lane in which messages for it arrive.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use verbs::abi::*;

use crate::memory::arena::Arena;
use crate::memory::layout::{Credit, Posted};
use crate::memory::slots::{Ring, Slot, Slots};
use crate::objects::wqe::Wqes;
use crate::sys::own_lock::OwnLock;
use crate::transport::local::claim::is_at_or_after;
use crate::transport::local::pool::Area;

/// The receiving side of a queue pair.
pub(crate) struct Receiving {
    pub(crate) queue: OwnLock<ReceiveQueue>,
    /// The number of the next receive to complete.
    pub(crate) head: AtomicU32,
    /// The number of the next receive to be posted: a copy of the one in `queue`, for pollers.
    pub(crate) tail: AtomicU32,
    /// Whether the queue pair has failed, and no peer sends to it any more: everything that is
    /// posted is flushed.
    pub(crate) closed: AtomicBool,
    pub(crate) ring: Ring,
    pub(crate) slots: Slots,
    /// The posted receives; empty with a shared queue.
    pub(crate) wqes: Wqes,
    /// The place of the shared queue's receives, if there is one.
    shared_area: Option<Area>,
    /// How often a receive was looked at that a peer is placing.
    pub(crate) doubts: AtomicU32,
    /// Whether a receive was reclaimed from a peer that had died.
    pub(crate) recovered: AtomicBool,
}

/// What a queue pair's lock protects on the receiving side.
#[derive(Default)]
pub(crate) struct ReceiveQueue {
    /// The number of the next receive to be posted.
    pub(crate) tail: u32,
    /// From this number on, all posted receives have `room`: see [`Credit`].
    pub(crate) plain_from: u32,
    pub(crate) room: u8,
    /// The number after the last receive that has no more room than that.
    pub(crate) tight_until: u32,
}

impl ReceiveQueue {
    /// Adds a receive with this much room, `None` if it needs a look. `head` is the number of the
    /// next receive to complete.
    #[inline]
    pub(crate) fn add(&mut self, room: Option<u8>, head: u32) -> Credit {
        let n = self.tail;
        self.tail = n.wrapping_add(1);
        let is_first = head == n;
        match room {
            None => self.plain_from = self.tail,
            Some(room) if is_first || (room > self.room && is_at_or_after(head, self.tight_until)) => {
                (self.plain_from, self.room, self.tight_until) = (n, room, self.tail);
            }
            Some(room) if room <= self.room => (self.room, self.tight_until) = (room, self.tail),
            Some(_) => {}
        }
        Credit::new(self.tail, self.tail.wrapping_sub(self.plain_from), self.room)
    }
}

impl Receiving {
    /// Allocates a lane for as many receives as can be posted.
    pub(crate) fn new(arena: &Arena, cap: &ibv_qp_cap, shared_area: Option<Area>) -> Option<Self> {
        let size = cap.max_recv_wr.max(1).next_power_of_two();
        let max_sge = cap.max_recv_sge.max(1);
        // As many messages can wait to be polled as the shared queue has receives.
        let (size, stride) = shared_area.map_or((size, Ring::stride_for(max_sge)), |area| (area.size, 0));
        let mut ring = Ring { offset: 0, size, stride };
        ring.offset = arena.allocate(ring.bytes())?;
        Some(Self {
            queue: OwnLock::new(ReceiveQueue::default()),
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            ring,
            slots: ring.slots(&arena.view)?,
            wqes: if shared_area.is_some() { Wqes::new(1, 0) } else { Wqes::new(size, max_sge) },
            shared_area,
            doubts: AtomicU32::new(1),
            recovered: AtomicBool::new(false),
        })
    }

    /// Tells peers where the lane is.
    pub(crate) fn show(&self, posted: &Posted) {
        posted.credit.store(Credit::new(0, 0, 0).encode(), Relaxed);
        posted.taken.store(0, Relaxed);
        posted.ring_offset.store(self.ring.offset, Relaxed);
        posted.ring_size.store(self.ring.size, Relaxed);
        posted.ring_stride.store(self.ring.stride, Relaxed);
        let none = Area { offset: 0, size: 0, stride: 0 };
        let area = self.shared_area.unwrap_or(none);
        posted.pool_offset.store(area.offset, Relaxed);
        posted.pool_size.store(area.size, Relaxed);
        posted.pool_stride.store(area.stride, Relaxed);
    }

    /// Frees the lane.
    pub(crate) fn free(&self, arena: &Arena) {
        arena.free(self.ring.offset, self.ring.bytes());
    }

    /// Returns where the payload of message `n` is, if it went through the lane's own memory.
    pub(crate) fn bounce(&self, n: u32) -> NonNull<u8> {
        self.slots.bounce(n)
    }

    #[inline]
    pub(crate) fn slot(&self, n: u32) -> &Slot {
        // SAFETY: the slots lie in this process's arena, which is never unmapped.
        unsafe { self.slots.slot(n) }
    }
}
