//! The receive queue: posting, completing, flushing.

use std::ffi::c_int;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use verbs::abi::*;

use crate::arena::QUARANTINE;
use crate::completion::blank_completion;
use crate::context::own_gid;
use crate::copy::{Piece, Place, copy_small, scatter};
use crate::deliver::is_at_or_after;
use crate::limits::GRH_BYTES;
use crate::memory::{Access, locate};
use crate::queue_pair::Qp;
use crate::shared::{FLAG_IMM, FLAG_IN_SLOT, FLAG_WRITE, SLOT_PAYLOAD, Slot, SlotState, UNCHECKED};
use crate::timer::Instant;

/// What a queue pair's lock protects on the receiving side.
pub(crate) struct ReceiveQueue {
    /// Number of the next receive to be posted.
    tail: u32,
}

impl ReceiveQueue {
    pub(crate) fn new() -> Self {
        Self { tail: 0 }
    }
}

/// What polling for a receive has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    Nothing,
    Receive,
    /// A receive that shows that the queue pair has failed: what else is posted has to be flushed.
    Failure,
}

/// Looks at a receive that a peer is placing before the peer's health is checked: a system call, next to which so many
/// looks are nothing.
pub(crate) const PATIENCE: u32 = 1 << 8;

/// The header that a datagram's buffer starts with (IBTA vol. 1, section 8.3): both ends are this host.
pub(crate) fn grh(payload_bytes: u64, has_immediate: bool, traffic_class: u8) -> [u8; GRH_BYTES as usize] {
    /// IPv6, as every GRH.
    const VERSION: u32 = 6;
    /// What a RoCE v2 packet's IPv6 header names: UDP.
    const NEXT_HEADER: u8 = 17;
    const HOP_LIMIT: u8 = 64;
    /// UDP header, base transport header, datagram header and integrity check of the packet that would carry it.
    const AROUND: u64 = 8 + 12 + 8 + 4;
    const IMMEDIATE: u64 = 4;
    let immediate = if has_immediate { IMMEDIATE } else { 0 };
    let length = AROUND + immediate + payload_bytes.next_multiple_of(4);
    let gid = own_gid().raw;
    let mut header = [0; GRH_BYTES as usize];
    header[..4].copy_from_slice(&(VERSION << 28 | u32::from(traffic_class) << 20).to_be_bytes());
    header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    (header[6], header[7]) = (NEXT_HEADER, HOP_LIMIT);
    header[8..24].copy_from_slice(&gid);
    header[24..].copy_from_slice(&gid);
    header
}

pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller gives a live queue pair of this device.
    let qp = unsafe { Qp::from(qp) };
    let mut queue = qp.receive.lock();
    let before = qp.state();
    let mut posted = 0;
    // SAFETY: the caller gives a list of readable work requests that ends with null.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: as above; the elements are readable.
        if let Err(errno) = unsafe { qp.post_receive(&mut queue, request) } {
            // SAFETY: the caller gives a writable pointer.
            unsafe { bad_wr.write(wr) };
            posted = errno;
            break;
        }
        wr = request.next;
    }
    drop(queue);
    match qp.state() {
        IBV_QPS_ERR if before == IBV_QPS_ERR => qp.announce_flush(),
        // A peer has found an error meanwhile, and may have looked for receives before these were posted.
        IBV_QPS_ERR => qp.flush_receives(),
        _ => {}
    }
    qp.ctx().progress();
    posted
}

impl Qp {
    /// # Safety
    /// The request's elements are readable.
    #[inline]
    unsafe fn post_receive(&self, queue: &mut ReceiveQueue, wr: &ibv_recv_wr) -> Result<(), c_int> {
        let state = self.state();
        if state == IBV_QPS_RESET || !(0..=self.cap.max_recv_sge.cast_signed()).contains(&wr.num_sge) {
            return Err(libc::EINVAL);
        }
        let n = queue.tail;
        if n.wrapping_sub(self.head.load(Acquire)) >= self.cap.max_recv_wr {
            return Err(libc::ENOMEM);
        }
        let elements = if wr.num_sge == 0 {
            &[]
        } else {
            // SAFETY: the caller vouches for the elements.
            unsafe { std::slice::from_raw_parts(wr.sg_list, wr.num_sge as usize) }
        };
        let view = &self.host.arena.view;
        let slot = self.slot(n);
        let (mut room, mut unchecked) = (0_u64, 0);
        for (i, sge) in (0..).zip(elements) {
            let Some(shared) = self.ring.sge(view, n, i) else { return Err(libc::EINVAL) };
            shared.addr.store(sge.addr, Relaxed);
            shared.length.store(sge.length, Relaxed);
            shared.lkey.store(sge.lkey, Relaxed);
            room += u64::from(sge.length);
            if locate(view, None, self.pd, sge, Access::Scatter).is_none() {
                unchecked = UNCHECKED;
            }
        }
        slot.room.store(u32::try_from(room).unwrap_or(u32::MAX), Relaxed);
        slot.num_sge.store(wr.num_sge.cast_unsigned() | unchecked, Relaxed);
        self.wr_ids[(n & (self.ring.size - 1)) as usize].store(wr.wr_id, Relaxed);
        let posted = if state == IBV_QPS_ERR { SlotState::Flushed(n) } else { SlotState::Posted(n) };
        slot.state.store(posted.encode(), Release);
        queue.tail = n.wrapping_add(1);
        Ok(())
    }

    /// Number and slot of the next receive to complete.
    #[inline]
    pub(crate) fn next_slot(&self) -> (u32, &Slot) {
        let n = self.head.load(Relaxed);
        (n, self.slot(n))
    }

    #[inline]
    pub(crate) fn slot(&self, n: u32) -> &Slot {
        // SAFETY: the slots lie in the own arena, which is never unmapped.
        unsafe { self.slots.slot(n) }
    }

    /// Takes the next completed receive. Called under the lock of the completion queue that the receives go to.
    #[inline]
    pub(crate) fn receive_completion(&self, wc: &mut ibv_wc) -> Taken {
        let n = self.head.load(Relaxed);
        let slot = self.slot(n);
        let taken = match SlotState::decode(slot.state.load(SeqCst)) {
            SlotState::Done(done) if done == n => self.take(n, slot, wc),
            SlotState::Flushed(flushed) if flushed == n => {
                self.fill(wc, n, IBV_WC_WR_FLUSH_ERR);
                if self.recovered() { Taken::Failure } else { Taken::Receive }
            }
            SlotState::Claimed(claimed, block) if claimed == n => {
                self.doubt(n, slot, block);
                Taken::Nothing
            }
            SlotState::Posted(posted) if posted == n && self.recovered() => {
                self.offer(n);
                Taken::Nothing
            }
            _ => Taken::Nothing,
        };
        if taken != Taken::Nothing {
            self.head.store(n.wrapping_add(1), Release);
        }
        taken
    }

    #[inline]
    fn fill(&self, wc: &mut ibv_wc, n: u32, status: ibv_wc_status) {
        let wr_id = self.wr_ids[(n & (self.ring.size - 1)) as usize].load(Relaxed);
        *wc = blank_completion(wr_id, status, IBV_WC_RECV, self.ibv.qp_num);
    }

    #[inline]
    fn take(&self, n: u32, slot: &Slot, wc: &mut ibv_wc) -> Taken {
        let flags = slot.flags.load(Relaxed);
        let mut status = ibv_wc_status::from(slot.status.load(Relaxed));
        if status == IBV_WC_SUCCESS && flags & FLAG_IN_SLOT != 0 && !self.scatter_slot(n, slot) {
            status = IBV_WC_LOC_PROT_ERR;
            self.shared().fail();
        }
        self.fill(wc, n, status);
        if status != IBV_WC_SUCCESS {
            return Taken::Failure;
        }
        if flags & FLAG_WRITE != 0 {
            wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
        }
        wc.byte_len = slot.byte_len.load(Relaxed);
        if flags & FLAG_IMM != 0 {
            wc.imm_data = slot.imm.load(Relaxed);
            wc.wc_flags |= IBV_WC_WITH_IMM;
        }
        if self.ibv.qp_type == IBV_QPT_UD {
            wc.src_qp = slot.src_qp.load(Relaxed);
            wc.sl = slot.service_level.load(Relaxed);
            wc.wc_flags |= IBV_WC_GRH;
        }
        Taken::Receive
    }

    /// Moves a payload from its slot to where the receive wants it; false where that is not allowed any more.
    #[inline]
    fn scatter_slot(&self, n: u32, slot: &Slot) -> bool {
        let mut bytes = [0_u8; SLOT_PAYLOAD];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(&slot.payload) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        let is_datagram = self.ibv.qp_type == IBV_QPT_UD;
        if !is_datagram && slot.num_sge.load(Relaxed) == 1 {
            return self.fill_one(n, slot, &bytes);
        }
        let header_bytes = if is_datagram { GRH_BYTES as usize } else { 0 };
        let payload = (slot.byte_len.load(Relaxed) as usize).saturating_sub(header_bytes).min(SLOT_PAYLOAD);
        let has_immediate = slot.flags.load(Relaxed) & FLAG_IMM != 0;
        let header =
            is_datagram.then(|| grh(payload as u64, has_immediate, slot.traffic_class.load(Relaxed)));
        let header =
            header.as_ref().map(|header| Piece { addr: header.as_ptr().cast_mut(), len: header.len() });
        let payload = Piece { addr: bytes.as_mut_ptr(), len: payload };
        let mut left = header_bytes + payload.len;
        let places = self.places(n, slot.num_sge.load(Relaxed) & !UNCHECKED, &mut left);
        // SAFETY: header and payload live on this stack; every place is checked by `locate`.
        let copied = unsafe { scatter(header.into_iter().chain([payload]), places) };
        copied.is_ok() && left == 0
    }

    /// The commonest case of [`scatter_slot`](Self::scatter_slot): one element, no header.
    #[inline]
    fn fill_one(&self, n: u32, slot: &Slot, bytes: &[u8; SLOT_PAYLOAD]) -> bool {
        let view = &self.host.arena.view;
        let Some(shared) = self.ring.sge(view, n, 0) else { return false };
        let length = slot.byte_len.load(Relaxed).min(SLOT_PAYLOAD as u32);
        let sge = ibv_sge { addr: shared.addr.load(Relaxed), length, lkey: shared.lkey.load(Relaxed) };
        let Some(Place::Here(piece)) = locate(view, None, self.pd, &sge, Access::Scatter) else {
            return false;
        };
        if length > shared.length.load(Relaxed) {
            return false;
        }
        // SAFETY: `locate` has found a live registration for so many bytes, and the source has as many.
        unsafe { copy_small(bytes.as_ptr(), piece.addr, piece.len) };
        true
    }

    /// The places of a receive's scatter list, as far as `left` bytes reach; counts them off it. Ends early at an element
    /// that no registration covers.
    #[inline]
    fn places(&self, n: u32, elements: u32, left: &mut usize) -> impl Iterator<Item = Place> {
        let view = &self.host.arena.view;
        (0..elements).map_while(move |i| {
            let shared = self.ring.sge(view, n, i)?;
            let posted = shared.load();
            let length = posted.length.min(u32::try_from(*left).unwrap_or(u32::MAX));
            let sge = ibv_sge { length, ..posted };
            if length > 0 {
                let place = locate(view, None, self.pd, &sge, Access::Scatter)?;
                *left -= length as usize;
                return Some(place);
            }
            Some(Place::Here(Piece { addr: std::ptr::dangling_mut(), len: 0 }))
        })
    }

    /// A peer has been placing this receive for long: if it has died, the receive is posted again.
    #[cold]
    fn doubt(&self, n: u32, slot: &Slot, block: u32) {
        if self.doubts.fetch_add(1, Relaxed).is_multiple_of(PATIENCE) && !self.host.lives(block) {
            self.recover(n, slot, block);
        }
    }

    /// Takes a receive back from a peer that has died.
    #[cold]
    fn recover(&self, n: u32, slot: &Slot, block: u32) {
        self.recovered.store(true, SeqCst);
        let back = if self.state() == IBV_QPS_ERR { SlotState::Flushed(n) } else { SlotState::Posted(n) };
        let claimed = SlotState::Claimed(n, block).encode();
        if slot.state.compare_exchange(claimed, back.encode(), SeqCst, Relaxed).is_ok() {
            self.offer(n);
        }
    }

    /// Whether a receive was ever taken back.
    #[inline]
    pub(crate) fn recovered(&self) -> bool {
        self.recovered.load(Relaxed)
    }

    /// Shows a receive that was taken back to the requesters, who pass it by once their mark is behind it. One of them
    /// may be moving the mark on at this very moment, which is why this is repeated with every look at the receive.
    #[cold]
    fn offer(&self, n: u32) {
        let mark = &self.shared().next.value;
        if !is_at_or_after(n, mark.load(SeqCst)) {
            mark.store(n, SeqCst);
        }
    }

    /// Flushes what is posted to a queue pair that has failed.
    pub(crate) fn flush_receives(&self) {
        let queue = self.receive.lock();
        if self.state() != IBV_QPS_ERR {
            return; // It was reset since, and what is posted belongs to its next life.
        }
        let mut n = self.head.load(Acquire);
        while n != queue.tail {
            let (posted, flushed) = (SlotState::Posted(n).encode(), SlotState::Flushed(n).encode());
            let slot = self.slot(n);
            let found = slot.state.compare_exchange(posted, flushed, SeqCst, SeqCst);
            if let Err(found) = found
                && let SlotState::Claimed(_, block) = SlotState::decode(found)
                && !self.host.lives(block)
            {
                self.recover(n, slot, block);
            }
            n = n.wrapping_add(1);
        }
        drop(queue);
        self.announce_flush();
    }

    /// Takes back what is posted, so that no peer begins to place a message, and waits for those that have begun.
    pub(crate) fn withdraw_receives(&self) {
        let queue = self.receive.lock();
        let mut n = self.head.load(Acquire);
        while n != queue.tail {
            let (posted, empty) = (SlotState::Posted(n).encode(), SlotState::Empty.encode());
            let _ = self.slot(n).state.compare_exchange(posted, empty, SeqCst, Relaxed);
            n = n.wrapping_add(1);
        }
        drop(queue);
        self.settle();
    }

    /// Waits until no peer is in the middle of placing a message: what it was about to write to is then the program's
    /// alone. A peer that is stopped there is given up after the time for which freed memory is kept.
    pub(crate) fn settle(&self) {
        let (mut n, tail) = (self.head.load(Acquire), self.receive.lock().tail);
        let end = Instant::now() + QUARANTINE;
        while n != tail {
            match SlotState::decode(self.slot(n).state.load(SeqCst)) {
                SlotState::Claimed(claimed, block)
                    if claimed == n && self.host.lives(block) && Instant::now() < end =>
                {
                    std::thread::yield_now();
                }
                _ => n = n.wrapping_add(1),
            }
        }
    }

    /// Forgets what was posted and what is complete (`RESET`). Called under the completion queue's lock.
    pub(crate) fn clear_receives(&self) {
        let queue = self.receive.lock();
        let mut n = self.head.load(Acquire);
        while n != queue.tail {
            self.slot(n).state.store(SlotState::Empty.encode(), SeqCst);
            n = n.wrapping_add(1);
        }
        self.head.store(queue.tail, SeqCst);
        self.shared().next.value.store(queue.tail, SeqCst);
    }
}

/// Identifiers of the posted receives, by slot.
pub(crate) fn wr_ids(slots: u32) -> Box<[AtomicU64]> {
    (0..slots).map(|_| AtomicU64::new(0)).collect()
}
