//! Taking messages from a lane: the part of polling that finds receives.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use verbs::abi::*;

use crate::memory::copy::{Piece, copy_small};
use crate::memory::slots::{
    FLAG_BOUNCED, FLAG_GLOBAL, FLAG_IMM, FLAG_IN_SLOT, FLAG_WRITE, SLOT_PAYLOAD, Slot, SlotState,
};
use crate::objects::blank::blank_completion;
use crate::objects::completion::Taken;
use crate::objects::queue_pair::Qp;
use crate::objects::receiving::Receiving;
use crate::objects::srq::Srq;
use crate::objects::wqe::Wqes;
use crate::sys::limits::{BOUNCE_BYTES, BOUNCES, GRH_BYTES};
use crate::transport::local::address::lid;
use crate::transport::local::claim::{claimer, offer, take_back};
use crate::transport::local::ends::{ends_of, sender_of};
use crate::transport::local::header::grh;
use crate::transport::local::lane::is_shown;
use crate::transport::local::place::{Place, scatter};
use crate::transport::local::region::{Access, locate};

/// How often a receive that a peer is placing is looked at before the peer's health is checked. The
/// check is a system call, next to which this many looks cost nothing.
pub(crate) const PATIENCE: u32 = 1 << 8;

impl Receiving {
    /// Whether a message that took receive `index` of the shared queue waits to be polled.
    pub(crate) fn has_message_for(&self, index: u32) -> bool {
        let head = self.head.load(Acquire);
        (0..self.ring.size).map(|i| head.wrapping_add(i)).any(|n| {
            let slot = self.slot(n);
            is_shown(&slot.state, n) && u32::from(slot.index.load(Relaxed)) == index
        })
    }
}

impl Qp {
    /// Returns the number and the slot of the next receive to complete.
    #[inline]
    pub(crate) fn next_slot(&self) -> (u32, &Slot) {
        let n = self.receiving.head.load(Relaxed);
        (n, self.receiving.slot(n))
    }

    /// Whether the next receive has not completed and need not be flushed; a quick check.
    #[inline]
    pub(crate) fn awaits_next(&self) -> bool {
        let (n, slot) = self.next_slot();
        !SlotState::is_over(slot.state.load(Acquire), n) && self.state() != IBV_QPS_ERR
    }

    /// Takes the next completed receive, with the time stamp in its slot (0 if it is flushed).
    /// Called under the lock of the receives' completion queue.
    #[inline]
    pub(crate) fn receive_completion(&self, wc: &mut ibv_wc, stamp: &mut u64) -> Taken {
        let receiving = &self.receiving;
        let n = receiving.head.load(Relaxed);
        let slot = receiving.slot(n);
        if !is_shown(&slot.state, n) {
            let taken = self.look_closer(n, slot);
            if taken != Taken::Receive {
                return taken;
            }
        }
        *stamp = slot.stamp();
        if let Some(srq) = self.srq {
            return self.take_shared(n, srq, wc);
        }
        if n == receiving.tail.load(Acquire) {
            return Taken::Nothing; // A peer claims a receive that was not posted.
        }
        if is_shown(&slot.state, n) {
            self.take(&receiving.wqes, self.pd, n, n, wc);
        } else {
            *stamp = 0;
            let wr_id = receiving.wqes.load(n).wr_id;
            *wc = blank_completion(wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, self.ibv.qp_num);
            self.pass(n, slot);
        }
        receiving.head.store(n.wrapping_add(1), Release);
        Taken::Receive
    }

    /// Takes a message that has arrived and uses a receive of a shared queue.
    fn take_shared(&self, n: u32, srq: &Srq, wc: &mut ibv_wc) -> Taken {
        let index = u32::from(self.receiving.slot(n).index.load(Relaxed));
        let is_taken = srq.has(index);
        if is_taken {
            self.take(&srq.wqes, srq.pd, index, n, wc);
            srq.give_back(index);
        }
        self.receiving.head.store(n.wrapping_add(1), Release);
        self.announce_taken(n.wrapping_add(1));
        if is_taken { Taken::Receive } else { Taken::Nothing } // Otherwise the peer's claim is false.
    }

    /// Whether it takes its receives from a shared queue.
    pub(crate) fn shares_receives(&self) -> bool {
        self.srq.is_some()
    }

    /// Returns what becomes of a receive without a message: nothing yet, a flush, or the failure of
    /// the queue pair.
    #[inline]
    fn look_closer(&self, n: u32, slot: &Slot) -> Taken {
        let receiving = &self.receiving;
        if let Some(srq) = self.srq {
            return self.look_closer_shared(n, slot, srq);
        }
        if self.state() == IBV_QPS_ERR && n != receiving.tail.load(Acquire) {
            // Once the queue is closed, every message that will ever arrive has arrived.
            return if receiving.closed.load(Acquire) { Taken::Receive } else { Taken::Failure };
        }
        if self.ibv.qp_type == IBV_QPT_UD {
            self.look_after_claim(n, slot);
        }
        Taken::Nothing
    }

    /// As [`look_closer`](Self::look_closer), for the receives of a shared queue. None of them is
    /// flushed (IBTA vol. 1, section 10.3.1.5).
    fn look_closer_shared(&self, n: u32, slot: &Slot, srq: &Srq) -> Taken {
        if self.state() == IBV_QPS_ERR && !self.receiving.closed.load(Acquire) {
            return Taken::Failure;
        }
        if self.ibv.qp_type == IBV_QPT_UD {
            self.look_after_claim(n, slot);
        }
        srq.doubt();
        // A message from before the queue pair was closed may have arrived since the first look.
        if is_shown(&slot.state, n) { Taken::Receive } else { Taken::Nothing }
    }

    /// Keeps datagrams out of a slot that is skipped.
    pub(crate) fn pass(&self, n: u32, slot: &Slot) {
        if self.ibv.qp_type == IBV_QPT_UD {
            slot.state.store(SlotState::Done(n).encode(), SeqCst);
        }
    }

    /// Takes message `n`, which completes the receive `which` of `wqes`.
    #[inline]
    fn take(&self, wqes: &Wqes, pd: u32, which: u32, n: u32, wc: &mut ibv_wc) {
        let slot = self.receiving.slot(n);
        let receive = wqes.load(which);
        let flags = slot.flags.load(Relaxed);
        let mut status = ibv_wc_status::from(slot.status.load(Relaxed));
        if status == IBV_WC_SUCCESS && flags & (FLAG_IN_SLOT | FLAG_BOUNCED) != 0 {
            let elements = wqes.elements(which, receive.num_sge);
            let is_there = if flags & FLAG_BOUNCED != 0 {
                let is_there = self.scatter_bounced(elements, pd, n);
                self.announce_taken(n.wrapping_add(1));
                is_there
            } else {
                self.scatter_slot(elements, receive.num_sge, pd, slot)
            };
            if !is_there {
                status = IBV_WC_LOC_PROT_ERR;
                self.shared().fail();
            }
        }
        *wc = blank_completion(receive.wr_id, status, IBV_WC_RECV, self.ibv.qp_num);
        if status != IBV_WC_SUCCESS {
            return;
        }
        wc.byte_len = slot.byte_len.load(Relaxed);
        if flags & FLAG_WRITE != 0 {
            wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
        } else {
            // A message cannot be longer than its receive, whatever a peer says.
            wc.byte_len = wc.byte_len.min(receive.room);
        }
        if flags & FLAG_IMM != 0 {
            wc.imm_data = slot.imm.load(Relaxed);
            wc.wc_flags |= IBV_WC_WITH_IMM;
        }
        if self.ibv.qp_type == IBV_QPT_UD {
            wc.src_qp = sender_of(slot.sender.load(Relaxed))[0];
            let level = slot.service_level.load(Relaxed);
            (wc.sl, wc.slid) = (level & 15, lid(level >> 4));
            wc.wc_flags |= if flags & FLAG_GLOBAL != 0 { IBV_WC_GRH } else { 0 };
        }
    }

    /// Returns the bytes before the payload in the receive's memory: the header of a datagram.
    #[inline]
    fn header_bytes(&self) -> usize {
        if self.ibv.qp_type == IBV_QPT_UD { GRH_BYTES as usize } else { 0 }
    }

    /// Returns the bytes of a payload, as the requester states them.
    #[inline]
    fn payload_bytes(&self, slot: &Slot) -> usize {
        (slot.byte_len.load(Relaxed) as usize).saturating_sub(self.header_bytes())
    }

    /// Copies a payload from its slot to the receive's memory; false if that is no longer allowed.
    #[inline]
    fn scatter_slot(
        &self,
        mut elements: impl Iterator<Item = ibv_sge>,
        num_sge: u32,
        pd: u32,
        slot: &Slot,
    ) -> bool {
        let mut bytes = [0_u8; SLOT_PAYLOAD];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(&slot.payload) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        let payload = self.payload_bytes(slot).min(SLOT_PAYLOAD);
        if self.header_bytes() == 0 && num_sge == 1 {
            return elements.next().is_some_and(|posted| self.fill_one(&posted, pd, payload, &bytes));
        }
        self.scatter_payload(elements, pd, slot, Piece { addr: bytes.as_mut_ptr(), len: payload })
    }

    /// As [`scatter_slot`](Self::scatter_slot), from the lane's own memory.
    #[inline(never)]
    fn scatter_bounced(&self, elements: impl Iterator<Item = ibv_sge>, pd: u32, n: u32) -> bool {
        let slot = self.receiving.slot(n);
        let len = self.payload_bytes(slot).min(BOUNCE_BYTES);
        let bounce = self.receiving.bounce(n);
        self.scatter_payload(elements, pd, slot, Piece { addr: bounce.as_ptr(), len })
    }

    /// Tells requesters now and then that the messages before `n` have been taken from the lane's
    /// own memory. Posting a receive tells them too, but some programs rarely post.
    fn announce_taken(&self, n: u32) {
        let taken = &self.shared().posted.taken;
        if n.wrapping_sub(taken.load(Relaxed)) >= BOUNCES / 4 {
            taken.store(n, Release);
        }
    }

    /// Copies a payload to the receive's memory, behind the header of a datagram.
    fn scatter_payload(
        &self,
        elements: impl Iterator<Item = ibv_sge>,
        pd: u32,
        slot: &Slot,
        payload: Piece,
    ) -> bool {
        let header_bytes = self.header_bytes();
        let has_immediate = slot.flags.load(Relaxed) & FLAG_IMM != 0;
        let is_global = slot.flags.load(Relaxed) & FLAG_GLOBAL != 0;
        let ends = is_global.then(|| {
            let number = sender_of(slot.sender.load(Relaxed))[1] as u8;
            ends_of(&self.host.arena.view, number, slot.service_level.load(Relaxed) >> 4, self.device)
        });
        let class = slot.traffic_class.load(Relaxed);
        let header = (header_bytes > 0).then(|| grh(payload.len as u64, has_immediate, class, ends));
        let header =
            header.as_ref().map(|header| Piece { addr: header.as_ptr().cast_mut(), len: header.len() });
        let mut left = header_bytes + payload.len;
        let places = self.places(elements, pd, &mut left);
        // SAFETY: the header is on this stack, the payload is there or in this process's arena, and
        // `locate` checks every place.
        let copied = unsafe { scatter(header.into_iter().chain([payload]), places) };
        copied.is_ok() && left == 0
    }

    /// The most common case of [`scatter_slot`](Self::scatter_slot): one element, no header.
    #[inline]
    fn fill_one(&self, posted: &ibv_sge, pd: u32, length: usize, bytes: &[u8; SLOT_PAYLOAD]) -> bool {
        let sge = ibv_sge { length: length as u32, ..*posted };
        let view = &self.host.arena.view;
        let Some(Place::Here(piece)) = locate(view, None, pd, &sge, Access::Scatter) else {
            return false;
        };
        if sge.length > posted.length {
            return false;
        }
        // SAFETY: `locate` has found a live registration for these bytes, and `bytes` has as many.
        unsafe { copy_small(bytes.as_ptr(), piece.addr, piece.len) };
        true
    }

    /// Returns the places of a receive's scatter list for `left` bytes, which it counts down. Ends
    /// early at an element that no registration covers.
    #[inline]
    fn places(
        &self,
        elements: impl Iterator<Item = ibv_sge>,
        pd: u32,
        left: &mut usize,
    ) -> impl Iterator<Item = Place> {
        let view = &self.host.arena.view;
        elements.map_while(move |posted| {
            let length = posted.length.min(u32::try_from(*left).unwrap_or(u32::MAX));
            let sge = ibv_sge { length, ..posted };
            if length > 0 {
                let place = locate(view, None, pd, &sge, Access::Scatter)?;
                *left -= length as usize;
                return Some(place);
            }
            Some(Place::Here(Piece { addr: std::ptr::dangling_mut(), len: 0 }))
        })
    }

    /// A peer may be placing a datagram: if it has died, the receive is offered again.
    #[cold]
    fn look_after_claim(&self, n: u32, slot: &Slot) {
        let mark = &self.shared().next.value;
        if let Some(block) = claimer(&slot.state, n) {
            let doubts = &self.receiving.doubts;
            if doubts.fetch_add(1, Relaxed).is_multiple_of(PATIENCE) && !self.host.lives(block) {
                self.receiving.recovered.store(true, SeqCst);
                if take_back(&slot.state, n, self.receiving.ring.size, block) {
                    offer(mark, n);
                }
            }
        } else if self.recovered() && (self.srq.is_some() || n != self.receiving.tail.load(Acquire)) {
            offer(mark, n);
        }
    }

    /// Whether a receive was ever reclaimed from a dead peer.
    #[inline]
    pub(crate) fn recovered(&self) -> bool {
        self.receiving.recovered.load(Relaxed)
    }
}
