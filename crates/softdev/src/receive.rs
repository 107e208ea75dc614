//! The receive queue: posting, completing, flushing.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};

use verbs::abi::*;

use crate::arena::{Arena, QUARANTINE};
use crate::completion::blank_completion;
use crate::context::own_gid;
use crate::copy::{Piece, Place, copy_small, scatter};
use crate::deliver::is_at_or_after;
use crate::host::agree;
use crate::limits::GRH_BYTES;
use crate::memory::{Access, locate};
use crate::queue_pair::Qp;
use crate::shared::{
    Credit, FLAG_IMM, FLAG_IN_SLOT, FLAG_WRITE, Posted, Ring, SLOT_PAYLOAD, Slot, SlotState, Slots, UNCHECKED,
};
use crate::spin::SpinLock;
use crate::timer::Instant;
use crate::wqe::{Receive, Wqes};

/// The receiving side of a queue pair.
pub(crate) struct Receiving {
    queue: SpinLock<ReceiveQueue>,
    /// Number of the next receive to complete.
    head: AtomicU32,
    /// Number of the next receive to be posted: what `queue` says, for whoever polls.
    tail: AtomicU32,
    /// The queue pair has failed, and nobody sends to it any more: what is posted is flushed.
    closed: AtomicBool,
    ring: Ring,
    slots: Slots,
    wqes: Wqes,
    /// Looks at a receive that a peer is placing.
    doubts: AtomicU32,
    /// A receive was taken back from a peer that had died.
    recovered: AtomicBool,
}

/// What a queue pair's lock protects on the receiving side.
#[derive(Default)]
struct ReceiveQueue {
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
    pub(crate) fn new(arena: &Arena, cap: &ibv_qp_cap) -> Option<Self> {
        let (size, max_sge) = (cap.max_recv_wr.max(1).next_power_of_two(), cap.max_recv_sge.max(1));
        let mut ring = Ring { offset: 0, size, stride: Ring::stride_for(max_sge) };
        ring.offset = arena.allocate(ring.bytes())?;
        Some(Self {
            queue: SpinLock::new(ReceiveQueue::default()),
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            ring,
            slots: ring.slots(&arena.view)?,
            wqes: Wqes::new(size, max_sge),
            doubts: AtomicU32::new(1),
            recovered: AtomicBool::new(false),
        })
    }

    /// Tells peers where the lane is.
    pub(crate) fn show(&self, posted: &Posted) {
        posted.credit.store(Credit::new(0, 0, 0).encode(), Relaxed);
        posted.ring_offset.store(self.ring.offset, Relaxed);
        posted.ring_size.store(self.ring.size, Relaxed);
        posted.ring_stride.store(self.ring.stride, Relaxed);
    }

    /// Gives the lane back.
    pub(crate) fn free(&self, arena: &Arena) {
        arena.free(self.ring.offset, self.ring.bytes());
    }

    #[inline]
    fn slot(&self, n: u32) -> &Slot {
        // SAFETY: the slots lie in the own arena, which is never unmapped.
        unsafe { self.slots.slot(n) }
    }
}

/// What polling for a receive has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    Nothing,
    Receive,
    /// The queue pair has failed: what is posted has to be flushed.
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
    let mut queue = qp.receiving.queue.lock();
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
        let (n, receiving) = (queue.tail, &self.receiving);
        let head = receiving.head.load(Acquire);
        if n.wrapping_sub(head) >= self.cap.max_recv_wr {
            return Err(libc::ENOMEM);
        }
        let elements = if wr.num_sge == 0 {
            &[]
        } else {
            // SAFETY: the caller vouches for the elements.
            unsafe { std::slice::from_raw_parts(wr.sg_list, wr.num_sge as usize) }
        };
        let receive = self.write_post(n, wr.wr_id, elements);
        receiving.tail.store(n.wrapping_add(1), Release);
        let header = if self.ibv.qp_type == IBV_QPT_UD { GRH_BYTES as u32 } else { 0 };
        let room = receive.room.checked_sub(header).filter(|_| receive.valid);
        let credit = queue.add(room.map(|room| room.min(SLOT_PAYLOAD as u32) as u8), head);
        // In ERR nobody sends any more, but one may have begun: it must not take what is posted to be flushed.
        if !receiving.closed.load(Relaxed) {
            self.shared().posted.credit.store(credit.encode(), Release);
        }
        Ok(())
    }

    /// Writes receive `n` down, for the requesters and for this process.
    #[inline]
    fn write_post(&self, n: u32, wr_id: u64, elements: &[ibv_sge]) -> Receive {
        // SAFETY: the posts lie in the own arena, which is never unmapped.
        let (post, list) = unsafe { self.receiving.slots.post(n) };
        let (mut room, mut valid) = (0_u64, true);
        for (shown, sge) in list.iter().zip(elements) {
            shown.store(sge);
            room += u64::from(sge.length);
            valid &= locate(&self.host.arena.view, None, self.pd, sge, Access::Scatter).is_some();
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let receive = Receive { wr_id, room, num_sge: elements.len() as u32, valid };
        post.room.store(room, Relaxed);
        post.num_sge.store(receive.num_sge | if valid { 0 } else { UNCHECKED }, Relaxed);
        self.receiving.wqes.store(n, receive, elements);
        receive
    }

    /// Number and slot of the next receive to complete.
    #[inline]
    pub(crate) fn next_slot(&self) -> (u32, &Slot) {
        let n = self.receiving.head.load(Relaxed);
        (n, self.receiving.slot(n))
    }

    /// Takes the next completed receive. Called under the lock of the completion queue that the receives go to.
    #[inline]
    pub(crate) fn receive_completion(&self, wc: &mut ibv_wc) -> Taken {
        let receiving = &self.receiving;
        let n = receiving.head.load(Relaxed);
        let slot = receiving.slot(n);
        let done = SlotState::Done(n).encode();
        if slot.state.load(Acquire) != done {
            let taken = self.look_closer(n, slot);
            if taken != Taken::Receive {
                return taken;
            }
        }
        if n == receiving.tail.load(Acquire) {
            return Taken::Nothing; // What a peer says of a receive that was not posted.
        }
        if slot.state.load(Acquire) == done {
            self.take(n, slot, wc);
        } else {
            let wr_id = receiving.wqes.load(n).wr_id;
            *wc = blank_completion(wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, self.ibv.qp_num);
            self.pass(n, slot);
        }
        receiving.head.store(n.wrapping_add(1), Release);
        Taken::Receive
    }

    /// Whether a receive that no message has come for is to be flushed all the same.
    #[inline]
    fn look_closer(&self, n: u32, slot: &Slot) -> Taken {
        let receiving = &self.receiving;
        if self.state() == IBV_QPS_ERR && n != receiving.tail.load(Acquire) {
            // Once it is closed, all messages that there will ever be are there.
            return if receiving.closed.load(Acquire) { Taken::Receive } else { Taken::Failure };
        }
        if self.ibv.qp_type == IBV_QPT_UD {
            self.look_after_claim(n, slot);
        }
        Taken::Nothing
    }

    /// Lets no datagram be placed in a slot that is passed over.
    fn pass(&self, n: u32, slot: &Slot) {
        if self.ibv.qp_type == IBV_QPT_UD {
            slot.state.store(SlotState::Done(n).encode(), SeqCst);
        }
    }

    #[inline]
    fn take(&self, n: u32, slot: &Slot, wc: &mut ibv_wc) {
        let receive = self.receiving.wqes.load(n);
        let flags = slot.flags.load(Relaxed);
        let mut status = ibv_wc_status::from(slot.status.load(Relaxed));
        if status == IBV_WC_SUCCESS && flags & FLAG_IN_SLOT != 0 && !self.scatter_slot(n, &receive, slot) {
            status = IBV_WC_LOC_PROT_ERR;
            self.shared().fail();
        }
        *wc = blank_completion(receive.wr_id, status, IBV_WC_RECV, self.ibv.qp_num);
        if status != IBV_WC_SUCCESS {
            return;
        }
        wc.byte_len = slot.byte_len.load(Relaxed);
        if flags & FLAG_WRITE != 0 {
            wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
        } else {
            // More than there is room for cannot have come, whatever a peer says.
            wc.byte_len = wc.byte_len.min(receive.room);
        }
        if flags & FLAG_IMM != 0 {
            wc.imm_data = slot.imm.load(Relaxed);
            wc.wc_flags |= IBV_WC_WITH_IMM;
        }
        if self.ibv.qp_type == IBV_QPT_UD {
            wc.src_qp = slot.src_qp.load(Relaxed);
            wc.sl = slot.service_level.load(Relaxed);
            wc.wc_flags |= IBV_WC_GRH;
        }
    }

    /// Moves a payload from its slot to where the receive wants it; false where that is not allowed any more.
    #[inline]
    fn scatter_slot(&self, n: u32, receive: &Receive, slot: &Slot) -> bool {
        let mut bytes = [0_u8; SLOT_PAYLOAD];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(&slot.payload) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        let is_datagram = self.ibv.qp_type == IBV_QPT_UD;
        let header_bytes = if is_datagram { GRH_BYTES as usize } else { 0 };
        let payload = (slot.byte_len.load(Relaxed) as usize).saturating_sub(header_bytes).min(SLOT_PAYLOAD);
        if !is_datagram && receive.num_sge == 1 {
            return self.fill_one(n, payload, &bytes);
        }
        let has_immediate = slot.flags.load(Relaxed) & FLAG_IMM != 0;
        let header =
            is_datagram.then(|| grh(payload as u64, has_immediate, slot.traffic_class.load(Relaxed)));
        let header =
            header.as_ref().map(|header| Piece { addr: header.as_ptr().cast_mut(), len: header.len() });
        let payload = Piece { addr: bytes.as_mut_ptr(), len: payload };
        let mut left = header_bytes + payload.len;
        let places = self.places(n, receive.num_sge, &mut left);
        // SAFETY: header and payload live on this stack; every place is checked by `locate`.
        let copied = unsafe { scatter(header.into_iter().chain([payload]), places) };
        copied.is_ok() && left == 0
    }

    /// The commonest case of [`scatter_slot`](Self::scatter_slot): one element, no header.
    #[inline]
    fn fill_one(&self, n: u32, length: usize, bytes: &[u8; SLOT_PAYLOAD]) -> bool {
        let Some(posted) = self.receiving.wqes.elements(n, 1).next() else { return false };
        let sge = ibv_sge { length: length as u32, ..posted };
        let view = &self.host.arena.view;
        let Some(Place::Here(piece)) = locate(view, None, self.pd, &sge, Access::Scatter) else {
            return false;
        };
        if sge.length > posted.length {
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
        self.receiving.wqes.elements(n, elements).map_while(move |posted| {
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

    /// A peer may be placing a datagram: if it has died meanwhile, the receive is offered again.
    #[cold]
    fn look_after_claim(&self, n: u32, slot: &Slot) {
        match SlotState::decode(slot.state.load(SeqCst)) {
            SlotState::Claimed(claimed, block) if claimed == n => {
                let doubts = &self.receiving.doubts;
                if doubts.fetch_add(1, Relaxed).is_multiple_of(PATIENCE) && !self.host.lives(block) {
                    self.recover(n, slot, block);
                }
            }
            _ if self.recovered() && n != self.receiving.tail.load(Acquire) => self.offer(n),
            _ => {}
        }
    }

    /// Takes a receive back from a peer that has died.
    #[cold]
    fn recover(&self, n: u32, slot: &Slot, block: u32) {
        self.receiving.recovered.store(true, SeqCst);
        let claimed = SlotState::Claimed(n, block).encode();
        let before = SlotState::Done(n.wrapping_sub(self.receiving.ring.size)).encode();
        if slot.state.compare_exchange(claimed, before, SeqCst, Relaxed).is_ok() {
            self.offer(n);
        }
    }

    /// Whether a receive was ever taken back.
    #[inline]
    pub(crate) fn recovered(&self) -> bool {
        self.receiving.recovered.load(Relaxed)
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
        let (mut n, tail) = (self.receiving.head.load(Acquire), self.receiving.tail.load(Acquire));
        let end = Instant::now() + QUARANTINE;
        while n != tail {
            match SlotState::decode(self.receiving.slot(n).state.load(SeqCst)) {
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
        let receiving = &self.receiving;
        let mut queue = receiving.queue.lock();
        let tail = queue.tail;
        let mut n = receiving.head.load(Acquire);
        while n != tail {
            self.pass(n, receiving.slot(n));
            n = n.wrapping_add(1);
        }
        *queue = ReceiveQueue { tail, plain_from: tail, ..ReceiveQueue::default() };
        receiving.head.store(tail, SeqCst);
        receiving.closed.store(false, SeqCst);
        self.shared().next.value.store(tail, SeqCst);
        self.shared().posted.credit.store(Credit::new(tail, 0, 0).encode(), SeqCst);
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
