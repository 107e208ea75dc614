//! The fast path for the most common requests: one small element, or two inline elements such as a
//! header and a payload, to a connected peer that is found and ready.
//!
//! Either the whole request is carried out at once, or nothing is done here, and the general path
//! (`send`) finds out why. The fast path decides nothing itself.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use verbs::abi::*;

use crate::memory::copy::{Piece, store_wordwise};
use crate::memory::slots::SLOT_PAYLOAD;
use crate::objects::own::Entry;
use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::transport::local::message::Payload;
use crate::transport::local::order::{Order, Ticket};
use crate::transport::local::place::Place;
use crate::transport::local::pool::Pool;
use crate::transport::local::region::{Access, locate};
use crate::transport::local::target;
use crate::transport::message::Message;
use crate::transport::target::Target;

/// Flags of requests that may take the fast path. (A fence has nothing to wait for: all earlier
/// requests are done.)
const FLAGS: u32 = IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE;

impl Qp {
    /// Carries out a request at once if nothing prevents that; returns whether it did.
    ///
    /// # Safety
    /// The request's elements are readable.
    #[inline(always)]
    pub(crate) unsafe fn post_eagerly(&self, queue: &mut SendQueue, wr: &ibv_send_wr) -> bool {
        match wr.num_sge {
            // SAFETY: as the caller guarantees.
            1 => unsafe { self.post_element(queue, wr) },
            // SAFETY: as the caller guarantees.
            2 => unsafe { self.post_inline_pair(queue, wr) },
            _ => false,
        }
    }

    /// Whether the send queue accepts another request that is carried out at once.
    #[inline(always)]
    fn is_open(&self, queue: &SendQueue, position: u32) -> bool {
        self.shared().state.load(Acquire) == IBV_QPS_RTS
            && queue.is_prompt()
            && position.wrapping_sub(self.retired.load(Acquire)) < self.cap.max_send_wr
    }

    /// # Safety
    /// The request has one element, which is readable.
    #[inline(always)]
    unsafe fn post_element(&self, queue: &mut SendQueue, wr: &ibv_send_wr) -> bool {
        let is_write = wr.opcode == IBV_WR_RDMA_WRITE;
        if (!is_write && wr.opcode != IBV_WR_SEND) || wr.send_flags & !FLAGS != 0 {
            return false;
        }
        // SAFETY: the caller guarantees the element.
        let sge = unsafe { *wr.sg_list };
        let position = queue.position();
        // Only a connection has a target.
        let Some(Target::Local(target)) = &queue.target else { return false };
        if sge.length as usize > SLOT_PAYLOAD || sge.length == 0 || !self.is_open(queue, position) {
            return false;
        }
        let piece = if wr.send_flags & IBV_SEND_INLINE != 0 {
            if sge.length > self.cap.max_inline_data {
                return false;
            }
            Piece { addr: sge.addr as *mut u8, len: sge.length as usize }
        } else {
            match locate(&self.host.arena.view, None, self.pd, &sge, Access::Gather) {
                Some(Place::Here(piece)) => piece,
                _ => return false,
            }
        };
        let done = target.touching(self.shared(), || {
            if is_write { self.write_eagerly(target, wr, piece) } else { self.send_eagerly(target, [piece]) }
        });
        if done {
            let opcode = if is_write { IBV_WC_RDMA_WRITE } else { IBV_WC_SEND };
            self.end_eagerly(queue, wr, opcode, sge.length);
        }
        done
    }

    /// # Safety
    /// The request has two elements, which are readable.
    #[inline(never)]
    unsafe fn post_inline_pair(&self, queue: &mut SendQueue, wr: &ibv_send_wr) -> bool {
        if wr.opcode != IBV_WR_SEND || wr.send_flags & !FLAGS != 0 || wr.send_flags & IBV_SEND_INLINE == 0 {
            return false;
        }
        // SAFETY: the caller guarantees the elements.
        let pair = unsafe { &*wr.sg_list.cast::<[ibv_sge; 2]>() };
        let pieces = pair.map(|sge| Piece { addr: sge.addr as *mut u8, len: sge.length as usize });
        let bytes = pieces[0].len + pieces[1].len;
        let Some(Target::Local(target)) = &queue.target else { return false };
        if bytes > SLOT_PAYLOAD.min(self.cap.max_inline_data as usize)
            || self.cap.max_send_sge < 2
            || !self.is_open(queue, queue.position())
        {
            return false;
        }
        let done = target.touching(self.shared(), || self.send_eagerly(target, pieces));
        if done {
            self.end_eagerly(queue, wr, IBV_WC_SEND, bytes as u32);
        }
        done
    }

    /// Completes a request that was carried out.
    #[inline(always)]
    fn end_eagerly(&self, queue: &mut SendQueue, wr: &ibv_send_wr, opcode: ibv_wc_opcode, bytes: u32) {
        let position = queue.position();
        queue.advance();
        if self.sq_sig_all || wr.send_flags & IBV_SEND_SIGNALED != 0 {
            self.push_completion(Entry {
                wr_id: wr.wr_id,
                qp: self,
                status: IBV_WC_SUCCESS,
                opcode,
                bytes,
                retires: position.wrapping_add(1),
                stamp: 0,
            });
        }
    }

    #[inline(always)]
    fn send_eagerly<const N: usize>(&self, target: &target::Target, pieces: [Piece; N]) -> bool {
        let shared = target.shared();
        let lane = &target.lane;
        let bytes = pieces.iter().map(|piece| piece.len as u64).sum();
        if !self.is_answered_by(target) {
            return false;
        }
        let n = lane.next();
        let mut taken = None;
        if let Some(pool) = &target.pool {
            let Some(ticket) = self.take_eagerly(pool, bytes) else { return false };
            lane.slot(n).index.store(ticket.index as u16, Relaxed);
            taken = Some((pool, ticket));
        } else if !lane.credit_for(shared, n).is_some_and(|credit| credit.has_room(n, bytes)) {
            return false;
        }
        let message = Message {
            pieces: &pieces,
            bytes,
            imm: None,
            solicited: false,
            src_qp: self.ibv.qp_num,
            datagram: None,
            written: false,
        };
        message.describe(shared, lane.slot(n), bytes, IBV_WC_SUCCESS, Payload::InSlot, message.src_qp);
        lane.publish(shared, n);
        if let Some((pool, ticket)) = taken {
            pool.pass(ticket);
        }
        target.announce(self.host, false);
        true
    }

    /// Takes a receive of a shared queue if it is known to have room for `bytes` bytes and if
    /// taking it raises no event. The caller must then `pass` it.
    #[inline]
    fn take_eagerly(&self, pool: &Pool, bytes: u64) -> Option<Ticket> {
        if pool.shared().limit.load(Relaxed) != 0 {
            return None;
        }
        pool.take_where(self.host.block, |ticket| bytes <= ticket.room.into()).ok()
    }

    #[inline(always)]
    fn write_eagerly(&self, target: &target::Target, wr: &ibv_send_wr, piece: Piece) -> bool {
        // SAFETY: the request is an RDMA Write, so this member is the one that was written.
        let rdma = unsafe { wr.wr.rdma };
        let shared = target.shared();
        if !self.is_answered_by(target) || shared.access.load(Relaxed) & IBV_ACCESS_REMOTE_WRITE == 0 {
            return false;
        }
        let view = target.peer.view(&self.host.arena.view);
        let sge = ibv_sge { addr: rdma.remote_addr, length: piece.len as u32, lkey: rdma.rkey };
        if target.watch.is_near() {
            return false;
        }
        let pd = shared.pd.load(Relaxed);
        // Memory outside of an arena is left to the general path.
        let Some(Place::Here(to)) = locate(view, Some(&target.peer), pd, &sge, Access::RemoteWrite) else {
            return false;
        };
        if !target.is_warm(rdma.rkey) || piece.addr.addr().abs_diff(to.addr.addr()) < piece.len {
            return false;
        }
        // SAFETY: both places are live memory for these bytes, the peer's in an arena that stays
        // mapped as long as the peer is held, and they do not overlap.
        unsafe { store_wordwise(piece.addr, to.addr, piece.len) };
        target.watch.is_due();
        true
    }

    /// Whether a target is still the peer of this queue pair, and is in RTS: a receiver in another
    /// state may need an event.
    #[inline(always)]
    fn is_answered_by(&self, target: &target::Target) -> bool {
        let shared = target.shared();
        shared.state.load(Acquire) == IBV_QPS_RTS
            && target.receives(shared)
            && shared.dest_qp_num.load(Relaxed) == self.ibv.qp_num
    }
}
