//! Placing a message in a peer's receive ring.
//!
//! Every check that an adapter's responder makes is made here, by the requester, on what the peer shares; nothing that
//! is read from there is believed beyond its own bounds.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::io::Errno;
use verbs::abi::*;

use crate::channel::notify;
use crate::copy::{Piece, gather_small, scatter};
use crate::host::{Host, agree};
use crate::limits::GRH_BYTES;
use crate::memory::{Access, locate};
use crate::receive::grh;
use crate::shared::{
    FLAG_IMM, FLAG_IN_SLOT, FLAG_SOLICITED, FLAG_WRITE, SLOT_PAYLOAD, SharedQp, Slot, SlotState, UNCHECKED,
};
use crate::target::Target;

/// A message that is ready to be delivered.
pub(crate) struct Message<'a> {
    /// Where its payload is, in this process.
    pub(crate) pieces: &'a [Piece],
    /// Payload bytes.
    pub(crate) bytes: u64,
    /// Immediate data, network byte order.
    pub(crate) imm: Option<u32>,
    pub(crate) solicited: bool,
    /// The sending queue pair.
    pub(crate) src_qp: u32,
    /// For a datagram.
    pub(crate) datagram: Option<Datagram>,
    /// The payload is in place already: an RDMA write.
    pub(crate) written: bool,
}

/// What a datagram carries besides.
#[derive(Clone, Copy)]
pub(crate) struct Datagram {
    pub(crate) qkey: u32,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Delivery {
    /// The payload is in place and the receive is complete.
    Done,
    /// No receive is posted.
    NotReady,
    /// The receive is too small. A reliable connection has completed it with an error.
    TooLong,
    /// The receive names memory that may not be written to; it was completed with an error.
    BadReceive,
    /// Nobody there takes messages from here.
    NoAnswer,
    /// A remote access that no registration allows.
    Denied,
    /// A request that the peer does not serve.
    Invalid,
}

impl Delivery {
    /// Whether the receive is complete. One that is too small completes, with an error, only on a connection that can
    /// report it (class C of IBTA vol. 1, section 9.9.3); the others drop the message and keep the receive (class D), and
    /// then there is nothing to announce; a needless announcement does no harm.
    fn completes(self, message: &Message<'_>) -> bool {
        match self {
            Self::Done | Self::BadReceive => true,
            Self::TooLong => message.datagram.is_none(),
            Self::NotReady | Self::NoAnswer | Self::Denied | Self::Invalid => false,
        }
    }
}

impl Target {
    /// Delivers a message.
    #[inline]
    pub(crate) fn deliver(&self, host: &Host, message: &Message<'_>) -> Delivery {
        let shared = self.shared();
        if !self.receives(shared) {
            return Delivery::NoAnswer;
        }
        match message.datagram {
            Some(datagram) if shared.qkey.load(Relaxed) != datagram.qkey => return Delivery::NoAnswer,
            Some(_) => {}
            None if shared.dest_qp_num.load(Relaxed) != message.src_qp => return Delivery::NoAnswer,
            None => {}
        }
        let delivery = Attempt { host, target: self, shared, message }.run();
        if delivery.completes(message) {
            let solicited = message.solicited || delivery != Delivery::Done;
            let view = self.peer.view(&host.arena.view);
            notify(host, view, Some(&self.peer), shared.recv_cq.load(Relaxed), solicited);
        }
        delivery
    }

    /// Completes the next receive of a connection for an RDMA write that is in place.
    pub(crate) fn complete_write(&self, host: &Host, message: &Message<'_>) -> Delivery {
        self.end_next(host, message, IBV_WC_SUCCESS)
    }

    /// Fails the queue pair of a connection. The next receive that it has posted is flushed in a way that shows its owner
    /// what has happened; the owner flushes the others.
    #[cold]
    pub(crate) fn fail(&self, host: &Host) {
        let shared = self.shared();
        if shared.generation.load(Acquire) != self.generation {
            return;
        }
        shared.fail();
        // A receive that is being posted just now is seen here, or whoever posts it sees the state.
        agree();
        let nothing = Message {
            pieces: &[],
            bytes: 0,
            imm: None,
            solicited: true,
            src_qp: shared.dest_qp_num.load(Relaxed),
            datagram: None,
            written: false,
        };
        self.end_next(host, &nothing, IBV_WC_WR_FLUSH_ERR);
    }

    /// Completes the next receive of a connection without placing anything.
    fn end_next(&self, host: &Host, message: &Message<'_>, status: ibv_wc_status) -> Delivery {
        let shared = self.shared();
        let attempt = Attempt { host, target: self, shared, message };
        let n = shared.next.value.load(Acquire);
        let slot = self.slot(n);
        if !self.is_posted(n) {
            return Delivery::NotReady;
        }
        attempt.describe(slot, message.bytes, status, false);
        match attempt.finish(slot, n, SlotState::Posted(n).encode()) {
            Some(delivery) => {
                let view = self.peer.view(&host.arena.view);
                notify(host, view, Some(&self.peer), shared.recv_cq.load(Relaxed), message.solicited);
                delivery
            }
            None => Delivery::NoAnswer, // Its owner has taken it back.
        }
    }
}

/// One delivery under way.
struct Attempt<'a> {
    host: &'a Host,
    target: &'a Target,
    shared: &'a SharedQp,
    message: &'a Message<'a>,
}

impl Attempt<'_> {
    #[inline]
    fn run(&self) -> Delivery {
        let mut n = self.shared.next.value.load(Acquire);
        for _ in 0..2 * (self.target.ring.size + 1) {
            let slot = self.target.slot(n);
            match SlotState::decode(slot.state.load(Acquire)) {
                SlotState::Posted(posted) if posted == n => {
                    if let Some(delivery) = self.fill(slot, n) {
                        return delivery;
                    }
                }
                // Several requesters may send datagrams to one queue pair: a receive that another has taken is passed
                // by, also where the mark lags behind and the slot is in use for a later receive already.
                SlotState::Posted(taken) | SlotState::Claimed(taken, _) | SlotState::Done(taken)
                    if is_at_or_after(taken, n) && self.message.datagram.is_some() =>
                {
                    let mark = self.shared.next.value.load(Acquire);
                    n = n.wrapping_add(1);
                    n = if is_at_or_after(mark, n) { mark } else { n };
                }
                SlotState::Flushed(flushed) if is_at_or_after(flushed, n) => return Delivery::NoAnswer,
                _ => return Delivery::NotReady,
            }
        }
        Delivery::NotReady
    }

    /// Fills a posted receive; `None` when somebody else was faster.
    #[inline]
    fn fill(&self, slot: &Slot, n: u32) -> Option<Delivery> {
        let header = if self.message.datagram.is_some() { GRH_BYTES } else { 0 };
        let bytes = self.message.bytes + header;
        let elements = slot.num_sge.load(Relaxed);
        if elements & UNCHECKED == 0 && bytes > u64::from(slot.room.load(Relaxed)) {
            return self.too_long(slot, n);
        }
        let posted = SlotState::Posted(n).encode();
        let in_slot = self.message.bytes <= SLOT_PAYLOAD as u64 && elements & UNCHECKED == 0;
        if in_slot && self.message.datagram.is_none() {
            // The only requester: nobody else writes to the slot, so one exchange ends the delivery.
            self.describe(slot, bytes, IBV_WC_SUCCESS, true);
            return self.finish(slot, n, posted);
        }
        let claimed = SlotState::Claimed(n, self.host.block).encode();
        slot.state.compare_exchange(posted, claimed, SeqCst, Relaxed).ok()?;
        let placed = if in_slot { Ok(()) } else { self.place(n, elements & !UNCHECKED) };
        match placed {
            Ok(()) => {
                self.describe(slot, bytes, IBV_WC_SUCCESS, in_slot);
                self.finish(slot, n, claimed)
            }
            Err(Misfit::Short) if !self.is_reliable() => {
                slot.state.store(posted, SeqCst);
                Some(Delivery::TooLong)
            }
            Err(Misfit::Gone) => Some(Delivery::NoAnswer),
            Err(misfit) => Some(self.reject(slot, n, claimed, misfit)),
        }
    }

    /// Writes what the completion will say, and a payload that fits.
    #[inline]
    fn describe(&self, slot: &Slot, bytes: u64, status: ibv_wc_status, in_slot: bool) {
        let message = self.message;
        if in_slot {
            // SAFETY: the pieces are readable: the requester located them for this message.
            let payload = unsafe { gather_small(message.pieces) };
            for (word, bytes) in slot.payload.iter().zip(payload.chunks_exact(8)) {
                word.store(u64::from_ne_bytes(bytes.try_into().unwrap_or_default()), Relaxed);
            }
        }
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        slot.byte_len.store(bytes as u32, Relaxed);
        slot.imm.store(message.imm.unwrap_or(0), Relaxed);
        slot.src_qp.store(message.src_qp, Relaxed);
        slot.status.store(status as u8, Relaxed);
        slot.flags.store(
            flag(in_slot, FLAG_IN_SLOT)
                | flag(message.imm.is_some(), FLAG_IMM)
                | flag(message.solicited, FLAG_SOLICITED)
                | flag(message.written, FLAG_WRITE),
            Relaxed,
        );
        if let Some(datagram) = message.datagram {
            slot.service_level.store(datagram.service_level, Relaxed);
            slot.traffic_class.store(datagram.traffic_class, Relaxed);
        }
    }

    /// Hands the slot to its owner.
    #[inline]
    fn finish(&self, slot: &Slot, n: u32, from: u64) -> Option<Delivery> {
        // Sequentially consistent: see `req_notify_cq`.
        slot.state.compare_exchange(from, SlotState::Done(n).encode(), SeqCst, Relaxed).ok()?;
        let next = n.wrapping_add(1);
        self.advance(next);
        prefetch(self.target.slot(next));
        Some(Delivery::Done)
    }

    /// Moves the mark of the next receive on, never back: a slower requester of datagrams may come after a faster one.
    #[inline]
    fn advance(&self, next: u32) {
        let mark = &self.shared.next.value;
        if self.message.datagram.is_none() {
            mark.store(next, Release);
            return;
        }
        let ahead = |now: u32| (!is_at_or_after(now, next)).then_some(next);
        let _ = mark.fetch_update(Release, Relaxed, ahead);
    }

    fn is_reliable(&self) -> bool {
        self.shared.service.load(Relaxed) == IBV_QPT_RC
    }

    #[cold]
    fn too_long(&self, slot: &Slot, n: u32) -> Option<Delivery> {
        if !self.is_reliable() {
            return Some(Delivery::TooLong);
        }
        let (posted, claimed) =
            (SlotState::Posted(n).encode(), SlotState::Claimed(n, self.host.block).encode());
        slot.state.compare_exchange(posted, claimed, SeqCst, Relaxed).ok()?;
        Some(self.reject(slot, n, claimed, Misfit::Short))
    }

    /// Completes a receive with an error, which also fails its queue pair.
    #[cold]
    fn reject(&self, slot: &Slot, n: u32, claimed: u64, misfit: Misfit) -> Delivery {
        let (status, delivery) = match misfit {
            Misfit::Short => (IBV_WC_LOC_LEN_ERR, Delivery::TooLong),
            Misfit::Forbidden | Misfit::Gone => (IBV_WC_LOC_PROT_ERR, Delivery::BadReceive),
        };
        self.describe(slot, 0, status, false);
        if self.shared.generation.load(Acquire) == self.target.generation {
            self.shared.fail();
        }
        let _ = self.finish(slot, n, claimed);
        delivery
    }

    /// Scatters the payload to the memory that the receive names, after checking all of it.
    fn place(&self, n: u32, elements: u32) -> Result<(), Misfit> {
        let view = self.target.peer.view(&self.host.arena.view);
        let pd = self.shared.pd.load(Relaxed);
        let element = |i| {
            let shared = self.target.ring.sge(view, n, i)?;
            let sge = shared.load();
            let place = locate(view, Some(&self.target.peer), pd, &sge, Access::Scatter)?;
            self.target.warm_up(view, sge.lkey);
            Some(place)
        };
        let message = self.message;
        let header = message.datagram.map(|d| grh(message.bytes, message.imm.is_some(), d.traffic_class));
        let mut room = 0;
        for i in 0..elements {
            room += element(i).ok_or(Misfit::Forbidden)?.bytes() as u64;
        }
        if room < self.message.bytes + header.map_or(0, |_| GRH_BYTES) {
            return Err(Misfit::Short);
        }
        let places = (0..elements).filter_map(element);
        let header =
            header.as_ref().map(|header| Piece { addr: header.as_ptr().cast_mut(), len: header.len() });
        let pieces = header.into_iter().chain(self.message.pieces.iter().copied());
        // SAFETY: every place was just checked; the pieces are readable and the header lives until the end of this
        // function; a peer's arena stays mapped as long as `target` holds the peer.
        unsafe { scatter(pieces, places) }
            .map_err(|errno| if errno == Errno::SRCH { Misfit::Gone } else { Misfit::Forbidden })
    }
}

/// Why a payload does not go where a receive wants it.
#[derive(Clone, Copy)]
enum Misfit {
    Short,
    Forbidden,
    /// The process has ended.
    Gone,
}

/// Whether receive `a` is `b` or one after it; numbers come round.
pub(crate) fn is_at_or_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() >= 0
}

/// Asks for a cache line before it is needed.
#[inline]
fn prefetch(slot: &Slot) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect that a program can see, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>((&raw const *slot).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}
