//! The receive queue: posting, completing, flushing.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};

use verbs::abi::*;

use crate::memory::arena::{Arena, QUARANTINE};
use crate::memory::layout::{Credit, Posted, Ring, SLOT_PAYLOAD, Slot, SlotState, Slots};
use crate::queue_pair::Qp;
use crate::srq::Srq;
use crate::sys::limits::GRH_BYTES;
use crate::sys::own_lock::OwnLock;
use crate::sys::timer::Instant;
use crate::transport::local::claim::{claimer, is_at_or_after};
use crate::transport::local::host::agree;
use crate::transport::local::lane;
use crate::transport::local::pool::Area;
use crate::work::list_of;
use crate::wqe::{Receive, Wqes};

/// The receiving side of a queue pair.
pub(crate) struct Receiving {
    pub(crate) queue: OwnLock<ReceiveQueue>,
    /// Number of the next receive to complete.
    pub(crate) head: AtomicU32,
    /// Number of the next receive to be posted: what `queue` says, for whoever polls.
    pub(crate) tail: AtomicU32,
    /// The queue pair has failed, and nobody sends to it any more: what is posted is flushed.
    pub(crate) closed: AtomicBool,
    pub(crate) ring: Ring,
    slots: Slots,
    /// What is posted; nothing where the receives are those of a shared queue.
    pub(crate) wqes: Wqes,
    /// The shared queue, which lives at least as long.
    pub(crate) srq: Option<&'static Srq>,
    /// Looks at a receive that a peer is placing.
    pub(crate) doubts: AtomicU32,
    /// A receive was taken back from a peer that had died.
    pub(crate) recovered: AtomicBool,
}

/// What a queue pair's lock protects on the receiving side.
#[derive(Default)]
pub(crate) struct ReceiveQueue {
    /// Number of the next receive to be posted.
    tail: u32,
    /// From this number on, all that is posted has `room`: see [`Credit`].
    plain_from: u32,
    room: u8,
    /// Behind the last receive that has no more room than that.
    tight_until: u32,
}

impl ReceiveQueue {
    /// Takes note of a receive with so much room, `None` where a look at it is needed; `head` is the number of the next one
    /// to complete.
    #[inline]
    fn add(&mut self, room: Option<u8>, head: u32) -> Credit {
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
    pub(crate) fn new(arena: &Arena, cap: &ibv_qp_cap, srq: Option<&'static Srq>) -> Option<Self> {
        let (size, max_sge) = (cap.max_recv_wr.max(1).next_power_of_two(), cap.max_recv_sge.max(1));
        // As many messages as there are receives in the shared queue can wait to be polled.
        let (size, stride) = srq.map_or((size, Ring::stride_for(max_sge)), |srq| (srq.area.size, 0));
        let mut ring = Ring { offset: 0, size, stride };
        ring.offset = arena.allocate(ring.bytes())?;
        Some(Self {
            queue: OwnLock::new(ReceiveQueue::default()),
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            ring,
            slots: ring.slots(&arena.view)?,
            wqes: if srq.is_some() { Wqes::new(1, 0) } else { Wqes::new(size, max_sge) },
            srq,
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
        let area = self.srq.map_or(none, |srq| srq.area);
        posted.pool_offset.store(area.offset, Relaxed);
        posted.pool_size.store(area.size, Relaxed);
        posted.pool_stride.store(area.stride, Relaxed);
    }

    /// Gives the lane back.
    pub(crate) fn free(&self, arena: &Arena) {
        arena.free(self.ring.offset, self.ring.bytes());
    }

    /// Where the payload of message `n` is, if it went by the lane's own memory.
    pub(crate) fn bounce(&self, n: u32) -> Option<NonNull<u8>> {
        self.slots.bounce(n)
    }

    #[inline]
    pub(crate) fn slot(&self, n: u32) -> &Slot {
        // SAFETY: the slots lie in the own arena, which is never unmapped.
        unsafe { self.slots.slot(n) }
    }
}

impl Qp {
    /// # Safety
    /// The request's elements are readable.
    #[inline]
    pub(crate) unsafe fn post_receive(
        &self,
        queue: &mut ReceiveQueue,
        wr: &ibv_recv_wr,
    ) -> Result<(), c_int> {
        let state = self.state();
        if state == IBV_QPS_RESET
            || self.receiving.srq.is_some()
            || !(0..=self.cap.max_recv_sge.cast_signed()).contains(&wr.num_sge)
        {
            return Err(libc::EINVAL);
        }
        let (n, receiving) = (queue.tail, &self.receiving);
        let head = receiving.head.load(Acquire);
        if n.wrapping_sub(head) >= self.cap.max_recv_wr {
            return Err(libc::ENOMEM);
        }
        // SAFETY: the caller vouches for the elements.
        let elements = unsafe { list_of(wr.sg_list, wr.num_sge as usize) };
        let receive = self.write_post(n, wr.wr_id, elements);
        receiving.tail.store(n.wrapping_add(1), Release);
        let header = if self.ibv.qp_type == IBV_QPT_UD { GRH_BYTES as u32 } else { 0 };
        let room = receive.room.checked_sub(header).filter(|_| receive.valid);
        let credit = queue.add(room.map(|room| room.min(SLOT_PAYLOAD as u32) as u8), head);
        // In ERR nobody sends any more, but one may have begun: it must not take what is posted to be flushed.
        if !receiving.closed.load(Relaxed) {
            self.shared().posted.taken.store(head, Release);
            lane::post(&self.shared().posted.credit, credit);
        }
        Ok(())
    }

    /// Writes receive `n` down, for the requesters and for this process.
    #[inline]
    fn write_post(&self, n: u32, wr_id: u64, elements: &[ibv_sge]) -> Receive {
        // SAFETY: the posts lie in the own arena, which is never unmapped.
        let post = unsafe { self.receiving.slots.post(n) };
        let receive = Receive::show(wr_id, elements, post, &self.host.arena.view, self.pd);
        self.receiving.wqes.store(n, receive, elements);
        receive
    }

    /// Flushes what is posted to a queue pair that has failed.
    pub(crate) fn flush_receives(&self) {
        if self.state() != IBV_QPS_ERR {
            return; // It was reset since, and what is posted belongs to its next life.
        }
        if !self.receiving.closed.load(Acquire) {
            self.settle();
            let _queue = self.receiving.queue.lock();
            if self.state() != IBV_QPS_ERR {
                return;
            }
            self.receiving.closed.store(true, Release);
            if self.receiving.srq.is_some() {
                // IBTA vol. 1, section 11.6.2: nothing is taken for this queue pair any more.
                self.raise(IBV_EVENT_QP_LAST_WQE_REACHED);
            }
        }
        self.announce_flush();
    }

    /// Waits until no peer is in the middle of sending to a queue pair, after its state has changed to one that receives
    /// nothing: what is posted is then the program's alone.
    pub(crate) fn settle(&self) {
        agree();
        self.await_messages();
    }

    /// Waits until every message that is under way has been placed. A peer that is stopped there is given up after the
    /// time for which freed memory is kept. Called after `agree`.
    pub(crate) fn await_messages(&self) {
        if self.ibv.qp_type != IBV_QPT_UD {
            return self.await_peer();
        }
        let mut n = self.receiving.head.load(Acquire);
        let tail = match self.receiving.srq {
            Some(_) => n.wrapping_add(self.receiving.ring.size),
            None => self.receiving.tail.load(Acquire),
        };
        let end = Instant::now() + QUARANTINE;
        while n != tail {
            match claimer(&self.receiving.slot(n).state, n) {
                Some(block) if self.host.lives(block) && Instant::now() < end => std::thread::yield_now(),
                _ => n = n.wrapping_add(1),
            }
        }
    }

    /// Forgets what was posted and what is complete (`RESET`). Called under the completion queue's lock.
    pub(crate) fn clear_receives(&self) {
        let receiving = &self.receiving;
        let mut queue = receiving.queue.lock();
        let mut n = receiving.head.load(Acquire);
        let tail = match receiving.srq {
            Some(srq) => self.discard_messages(n, srq),
            None => queue.tail,
        };
        while n != tail {
            self.pass(n, receiving.slot(n));
            n = n.wrapping_add(1);
        }
        *queue = ReceiveQueue { tail, plain_from: tail, ..ReceiveQueue::default() };
        receiving.head.store(tail, SeqCst);
        receiving.closed.store(false, SeqCst);
        self.shared().next.value.store(tail, SeqCst);
        self.shared().posted.taken.store(tail, Relaxed);
        self.shared().posted.credit.store(Credit::new(tail, 0, 0).encode(), SeqCst);
    }

    /// Gives the receives of a shared queue back that messages from number `n` on have taken which nobody will poll; the
    /// number behind the last of them.
    fn discard_messages(&self, n: u32, srq: &Srq) -> u32 {
        let size = self.receiving.ring.size;
        let mut end = n;
        for i in 0..size {
            let slot = self.receiving.slot(n.wrapping_add(i));
            match SlotState::decode(slot.state.load(Acquire)) {
                SlotState::Done(done) if done == n.wrapping_add(i) => {
                    let index = u32::from(slot.index.load(Relaxed));
                    if srq.taken(index).is_some() {
                        srq.give_back(index);
                    }
                    end = done.wrapping_add(1);
                }
                SlotState::Claimed(claimed, _) if claimed == n.wrapping_add(i) => {
                    end = claimed.wrapping_add(1);
                }
                _ => {}
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_room_holds_for_all_that_is_posted() {
        let mut rooms: Vec<Option<u8>> = Vec::new();
        let (mut queue, mut head, mut seed) = (ReceiveQueue::default(), 0_u32, 1_u64);
        let mut known = 0;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let draw = (seed >> 40) as u32;
            if draw.is_multiple_of(2) && head < queue.tail {
                head += 1;
                continue;
            }
            if queue.tail - head == 8 {
                continue;
            }
            // Mostly alike, as programs post them.
            let room = match draw / 2 % 16 {
                0 => None,
                1..4 => Some((draw / 32 % 33) as u8),
                _ => Some(32),
            };
            rooms.push(room);
            let credit = queue.add(room, head);
            assert_eq!(credit.tail() as usize, rooms.len());
            for n in head..credit.tail() {
                for bytes in [0, 1, 8, 31, 32] {
                    if credit.has_room(n, bytes) {
                        let room = rooms[n as usize];
                        assert!(
                            room.is_some_and(|room| bytes <= u64::from(room)),
                            "{n}: {bytes} in {room:?}"
                        );
                        known += 1;
                    }
                }
            }
        }
        assert!(known > 10_000, "next to nothing is known: {known}");
    }

    #[test]
    fn a_small_receive_is_forgotten_once_it_is_complete() {
        let mut queue = ReceiveQueue::default();
        queue.add(Some(4), 0);
        queue.add(Some(32), 0);
        assert!(!queue.add(Some(32), 0).has_room(2, 32));
        assert!(queue.add(Some(32), 1).has_room(3, 32), "the first has gone");
    }
}
