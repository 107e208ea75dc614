//! The receive queue: posting, completing, flushing.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use verbs::abi::*;

use crate::memory::arena::QUARANTINE;
use crate::memory::layout::Credit;
use crate::memory::slots::{SLOT_PAYLOAD, SlotState};
use crate::objects::queue_pair::Qp;
use crate::objects::receiving::ReceiveQueue;
use crate::objects::srq::Srq;
use crate::objects::work::list_of;
use crate::objects::wqe::Receive;
use crate::sys::limits::GRH_BYTES;
use crate::sys::timer::Instant;
use crate::transport::local::claim::claimer;
use crate::transport::local::host::agree;
use crate::transport::local::lane;

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
            || self.srq.is_some()
            || !(0..=self.cap.max_recv_sge.cast_signed()).contains(&wr.num_sge)
        {
            return Err(libc::EINVAL);
        }
        let n = queue.tail;
        let receiving = &self.receiving;
        let head = receiving.head.load(Acquire);
        if n.wrapping_sub(head) >= self.cap.max_recv_wr {
            return Err(libc::ENOMEM);
        }
        // SAFETY: the caller guarantees the elements.
        let elements = unsafe { list_of(wr.sg_list, wr.num_sge as usize) };
        let receive = self.write_post(n, wr.wr_id, elements);
        receiving.tail.store(n.wrapping_add(1), Release);
        let header = if self.ibv.qp_type == IBV_QPT_UD { GRH_BYTES as u32 } else { 0 };
        let room = receive.room.checked_sub(header).filter(|_| receive.valid);
        let credit = queue.add(room.map(|room| room.min(SLOT_PAYLOAD as u32) as u8), head);
        // In ERR no peer sends any more, but one may have begun: it must not take a receive that is
        // posted to be flushed.
        if !receiving.closed.load(Relaxed) {
            self.shared().posted.taken.store(head, Release);
            lane::post(&self.shared().posted.credit, credit);
        }
        Ok(())
    }

    /// Writes receive `n`, for the requesters and for this process.
    #[inline]
    fn write_post(&self, n: u32, wr_id: u64, elements: &[ibv_sge]) -> Receive {
        // SAFETY: the posts lie in this process's arena, which is never unmapped.
        let (post, list) = unsafe { self.receiving.slots.post(n) };
        let receive = Receive::show(wr_id, elements, post, list, &self.host.arena.view, self.pd);
        self.receiving.wqes.store(n, receive, elements);
        receive
    }

    /// Flushes the receives of a queue pair that has failed.
    pub(crate) fn flush_receives(&self) {
        if self.state() != IBV_QPS_ERR {
            return; // The queue pair was reset since, and the receives belong to its next life.
        }
        if !self.receiving.closed.load(Acquire) {
            self.settle();
            let _queue = self.receiving.queue.lock();
            if self.state() != IBV_QPS_ERR {
                return;
            }
            self.receiving.closed.store(true, Release);
            if self.srq.is_some() {
                // IBTA vol. 1, section 11.6.2: this queue pair takes no receive any more.
                self.raise(IBV_EVENT_QP_LAST_WQE_REACHED);
            }
        }
        self.announce_flush();
    }

    /// Waits until no peer is sending to a queue pair whose new state receives nothing: the posted
    /// receives are then the program's alone.
    pub(crate) fn settle(&self) {
        agree();
        self.await_messages();
    }

    /// Waits until every message under way has been placed. A peer that is stopped during its work
    /// is given up after the time for which freed memory is kept. Called after `agree`.
    pub(crate) fn await_messages(&self) {
        if self.ibv.qp_type != IBV_QPT_UD {
            return self.await_peer();
        }
        let mut n = self.receiving.head.load(Acquire);
        let tail = match self.srq {
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

    /// Discards posted and completed receives (`RESET`). Called under the completion queue's lock.
    pub(crate) fn clear_receives(&self) {
        let receiving = &self.receiving;
        let mut queue = receiving.queue.lock();
        let mut n = receiving.head.load(Acquire);
        let tail = match self.srq {
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

    /// Gives back the receives of a shared queue that messages from number `n` on have taken and
    /// that will not be polled. Returns the number after the last of these messages.
    fn discard_messages(&self, n: u32, srq: &Srq) -> u32 {
        let size = self.receiving.ring.size;
        let mut end = n;
        for i in 0..size {
            let slot = self.receiving.slot(n.wrapping_add(i));
            match SlotState::decode(slot.state.load(Acquire)) {
                SlotState::Done(done) if done == n.wrapping_add(i) => {
                    srq.give_back(u32::from(slot.index.load(Relaxed)));
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
        let mut queue = ReceiveQueue::default();
        let mut head = 0_u32;
        let mut seed = 1_u64;
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
            // Mostly the same, as programs post them.
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
