//! The short way of what is posted most: one small element to the peer of a connection that is
//! there and waits for it.
//!
//! Either all of it can be done at once, or nothing is done here and the general way (`send`) finds
//! out why: this decides nothing of its own.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use verbs::abi::*;

use crate::memory::copy::{Piece, store_wordwise};
use crate::memory::slots::SLOT_PAYLOAD;
use crate::objects::own::Entry;
use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::transport::local::message::Payload;
use crate::transport::local::place::Place;
use crate::transport::local::region::{Access, locate};
use crate::transport::local::target;
use crate::transport::message::Message;
use crate::transport::target::Target;

/// Flags of requests that take the short way. (A fence waits for nothing: all that was posted
/// before is done.)
const FLAGS: u32 = IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE;

impl Qp {
    /// Carries out a request at once if nothing is in its way: whether it did.
    ///
    /// # Safety
    /// The request's elements are readable.
    #[inline(always)]
    pub(crate) unsafe fn post_eagerly(&self, queue: &mut SendQueue, wr: &ibv_send_wr) -> bool {
        let is_write = wr.opcode == IBV_WR_RDMA_WRITE;
        if (!is_write && wr.opcode != IBV_WR_SEND) || wr.num_sge != 1 || wr.send_flags & !FLAGS != 0 {
            return false;
        }
        // SAFETY: the caller vouches for the element.
        let sge = unsafe { *wr.sg_list };
        let position = queue.position();
        // Only a connection has a target.
        let Some(Target::Local(target)) = &queue.target else { return false };
        if sge.length as usize > SLOT_PAYLOAD
            || sge.length == 0
            || self.shared().state.load(Acquire) != IBV_QPS_RTS
            || !queue.is_prompt()
            || position.wrapping_sub(self.retired.load(Acquire)) >= self.cap.max_send_wr
        {
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
            if is_write { self.write_eagerly(target, wr, piece) } else { self.send_eagerly(target, piece) }
        });
        if !done {
            return false;
        }
        queue.advance();
        if self.sq_sig_all || wr.send_flags & IBV_SEND_SIGNALED != 0 {
            let opcode = if is_write { IBV_WC_RDMA_WRITE } else { IBV_WC_SEND };
            self.push_completion(Entry {
                wr_id: wr.wr_id,
                qp: self,
                status: IBV_WC_SUCCESS,
                opcode,
                bytes: sge.length,
                retires: position.wrapping_add(1),
                stamp: 0,
            });
        }
        true
    }

    #[inline(always)]
    fn send_eagerly(&self, target: &target::Target, piece: Piece) -> bool {
        let shared = target.shared();
        let lane = &target.lane;
        let bytes = piece.len as u64;
        if !self.is_answered_by(target) || target.pool.is_some() {
            return false;
        }
        let n = lane.next();
        if !lane.credit_for(shared, n).is_some_and(|credit| credit.has_room(n, bytes)) {
            return false;
        }
        let message = Message {
            pieces: &[piece],
            bytes,
            imm: None,
            solicited: false,
            src_qp: self.ibv.qp_num,
            datagram: None,
            written: false,
        };
        message.describe(shared, lane.slot(n), bytes, IBV_WC_SUCCESS, Payload::InSlot, message.src_qp);
        lane.publish(shared, n);
        target.announce(self.host, false);
        true
    }

    #[inline(always)]
    fn write_eagerly(&self, target: &target::Target, wr: &ibv_send_wr, piece: Piece) -> bool {
        // SAFETY: the request is an RDMA write, so this member is the one that was written.
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
        // Memory that does not lie in an arena is a matter of the general way.
        let Some(Place::Here(to)) = locate(view, Some(&target.peer), pd, &sge, Access::RemoteWrite) else {
            return false;
        };
        if !target.is_warm(rdma.rkey) || piece.addr.addr().abs_diff(to.addr.addr()) < piece.len {
            return false;
        }
        // SAFETY: both places were found to be live memory for so many bytes, the peer's in an
        // arena that stays mapped as long as the peer is held, and they do not overlap.
        unsafe { store_wordwise(piece.addr, to.addr, piece.len) };
        target.watch.is_due();
        true
    }

    /// Whether a target is still the peer of this queue pair, and is in RTS: whoever receives in
    /// another state may have to be told so by an event.
    #[inline(always)]
    fn is_answered_by(&self, target: &target::Target) -> bool {
        let shared = target.shared();
        shared.state.load(Acquire) == IBV_QPS_RTS
            && target.receives(shared)
            && shared.dest_qp_num.load(Relaxed) == self.ibv.qp_num
    }
}
