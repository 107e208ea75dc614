//! Placing a message in a peer's lane.
//!
//! The requester makes every check of an adapter's responder here, on the data that the peer
//! shares. These data never lead to an access outside of the peer's own memory.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::fence;

use rustix::io::Errno;
use verbs::abi::*;

use crate::memory::copy::Piece;
use crate::memory::layout::SharedQp;
use crate::memory::slots::{SLOT_PAYLOAD, SlotSge};
use crate::memory::touching::touch;
use crate::sys::limits::{BOUNCE_BYTES, GRH_BYTES};
use crate::sys::sync::Cpu;
use crate::transport::delivery::Delivery;
use crate::transport::local::arming::shown;
use crate::transport::local::claim::{self, Claim};
use crate::transport::local::ends::sender_word;
use crate::transport::local::header::grh;
use crate::transport::local::host::{Host, agree};
use crate::transport::local::lane::PostedReceive;
use crate::transport::local::message::Payload;
use crate::transport::local::notify::notify;
use crate::transport::local::order::{Order, Refusal, Ticket};
use crate::transport::local::place::{Place, scatter};
use crate::transport::local::pool::Pool;
use crate::transport::local::region::{Access, locate};
use crate::transport::local::target::Target;
use crate::transport::message::{Datagram, Message};

impl Target {
    /// Delivers a message for the queue pair that `own` shows to its peers.
    #[inline]
    pub(crate) fn deliver(&self, host: &Host, own: &SharedQp, message: &Message<'_>) -> Delivery {
        let shared = self.shared();
        let attempt = Attempt { host, target: self, shared, message };
        let delivery = match message.datagram {
            Some(datagram) => attempt.datagram(datagram),
            None => self.touching(own, || {
                if !self.receives(shared) || shared.dest_qp_num.load(Relaxed) != message.src_qp {
                    return Delivery::NoAnswer;
                }
                attempt.connected()
            }),
        };
        if delivery.completes(message) {
            self.announce(host, message.solicited || delivery != Delivery::Done);
        }
        delivery
    }

    /// Runs `work` on the connected peer while this queue pair's entry names the peer. A process
    /// that ends the connection or deregisters memory waits until it does not: see `agree`.
    #[inline]
    pub(crate) fn touching<T>(&self, own: &SharedQp, work: impl FnOnce() -> T) -> T {
        touch(&own.touching.value, self.qp_num, work)
    }

    /// Tells a sleeper of a completion.
    #[inline]
    pub(crate) fn announce(&self, host: &Host, solicited: bool) {
        let view = self.peer.view(&host.arena.view);
        let cq = self.shared().recv_cq.load(Relaxed);
        if view.cq(cq).channel_fd.load(Relaxed) >= 0 {
            shown::<Cpu>();
            notify(host, view, Some(&self.peer), cq, solicited);
        }
    }

    /// Completes the next receive of a connection for an RDMA Write whose payload is in place.
    pub(crate) fn complete_write(&self, host: &Host, message: &Message<'_>) -> Delivery {
        let attempt = Attempt { host, target: self, shared: self.shared(), message };
        let n = self.lane.next();
        match &self.pool {
            Some(pool) => match attempt.take(pool, 0) {
                Ok(ticket) => self.lane.slot(n).index.store(ticket.index as u16, Relaxed),
                Err(_) => return Delivery::NotReady,
            },
            None if self.lane.credit_for(self.shared(), n).is_none() => return Delivery::NotReady,
            None => {}
        }
        attempt.finish(n, message.bytes, IBV_WC_SUCCESS, Payload::Placed);
        self.announce(host, message.solicited);
        Delivery::Done
    }

    /// Whether the connected peer has posted a receive.
    pub(crate) fn awaits_message(&self) -> bool {
        match &self.pool {
            Some(pool) => !pool.is_dry(),
            None => self.lane.credit_for(self.shared(), self.lane.next()).is_some(),
        }
    }

    /// Fails the queue pair of a connection. Its owner, which polls or is woken, learns this from
    /// the state.
    #[cold]
    pub(crate) fn fail(&self, host: &Host) {
        let shared = self.shared();
        if shared.generation.load(Acquire) != self.generation {
            return;
        }
        shared.fail();
        // A receive that is being posted is seen here, or the thread that posts it sees the state.
        agree();
        if self.pool.is_some() || self.awaits_message() {
            self.announce(host, true);
        }
    }
}

/// A delivery under way.
struct Attempt<'a> {
    host: &'a Host,
    target: &'a Target,
    shared: &'a SharedQp,
    message: &'a Message<'a>,
}

impl Attempt<'_> {
    /// Delivers to a connected peer: this is its only requester.
    #[inline]
    fn connected(&self) -> Delivery {
        let lane = &self.target.lane;
        let bytes = self.message.bytes;
        if let Some(pool) = &self.target.pool {
            return self.connected_shared(pool);
        }
        let n = lane.next();
        let Some(credit) = lane.credit_for(self.shared, n) else { return Delivery::NotReady };
        if bytes <= SLOT_PAYLOAD as u64 && credit.has_room(n, bytes) {
            self.finish(n, bytes, IBV_WC_SUCCESS, Payload::InSlot);
            return Delivery::Done;
        }
        self.connected_checked(n)
    }

    /// As [`connected`](Self::connected), after a look at the receive.
    #[inline(never)]
    fn connected_checked(&self, n: u32) -> Delivery {
        self.end_connected(n, self.fill(n, self.target.lane.post(self.shared, n)))
    }

    /// As [`connected`](Self::connected), with a receive of a shared queue.
    #[inline(never)]
    fn connected_shared(&self, pool: &Pool) -> Delivery {
        let n = self.target.lane.next();
        // A receive that is too small for an unreliable message stays in the queue.
        let bytes = if self.is_reliable() { 0 } else { self.message.bytes };
        let ticket = match self.take(pool, bytes) {
            Ok(ticket) => ticket,
            Err(Refusal::Empty) => return Delivery::NotReady,
            Err(Refusal::Short) => return Delivery::TooLong,
        };
        self.target.lane.slot(n).index.store(ticket.index as u16, Relaxed);
        let filled = self.fill_taken(n, pool, ticket);
        let is_used = !matches!(filled, Err(Misfit::Gone))
            && (self.is_reliable() || !matches!(filled, Err(Misfit::Short)));
        if !is_used {
            pool.put_back(self.host.block, ticket);
        }
        self.end_connected(n, filled)
    }

    /// Takes a receive of a shared queue, unless it is known to have no room for `bytes` bytes.
    fn take(&self, pool: &Pool, bytes: u64) -> Result<Ticket, Refusal> {
        let ticket = pool.take(self.host.block, bytes)?;
        if pool.falls_below_limit(ticket) {
            self.target.raise_of_queue(self.host, pool.shared().number.load(Relaxed));
        }
        Ok(ticket)
    }

    /// Returns the bytes that a receive needs room for.
    fn needs(&self) -> u64 {
        let header = if self.message.datagram.is_some() { GRH_BYTES } else { 0 };
        self.message.bytes + header
    }

    fn is_to_group(&self) -> bool {
        self.message.datagram.is_some_and(|datagram| datagram.is_to_group())
    }

    /// Whether the payload can go in the slot. It cannot for a group: the receiver knows the GIDs
    /// only from the header in its buffer.
    fn fits_slot(&self) -> bool {
        self.message.bytes <= SLOT_PAYLOAD as u64 && !self.is_to_group()
    }

    /// As [`fill`](Self::fill), for a receive that was taken from a shared queue.
    fn fill_taken(&self, n: u32, pool: &Pool, ticket: Ticket) -> Result<Payload, Misfit> {
        if self.needs() <= ticket.room.into() && self.fits_slot() {
            return Ok(Payload::InSlot);
        }
        self.fill(n, pool.receive(ticket.index))
    }

    fn end_connected(&self, n: u32, filled: Result<Payload, Misfit>) -> Delivery {
        match filled {
            Ok(payload) => {
                self.finish(n, self.message.bytes, IBV_WC_SUCCESS, payload);
                Delivery::Done
            }
            Err(Misfit::Gone) => Delivery::NoAnswer,
            Err(Misfit::Short) if !self.is_reliable() => Delivery::TooLong,
            Err(misfit) => {
                let (status, delivery) = misfit.told();
                self.fail();
                self.finish(n, 0, status, Payload::Placed);
                delivery
            }
        }
    }

    /// Places the payload of message `n`, if the receive has room for it, or finds that it fits in
    /// the slot.
    fn fill(&self, n: u32, posted: PostedReceive<'_>) -> Result<Payload, Misfit> {
        if !posted.may_hold(self.needs()) {
            return Err(Misfit::Short);
        }
        if posted.valid && self.fits_slot() {
            return Ok(Payload::InSlot);
        }
        self.place(n, posted, self.is_to_group())
    }

    /// Writes a message to the slot of a connection and shows it.
    #[inline]
    fn finish(&self, n: u32, bytes: u64, status: ibv_wc_status, payload: Payload) {
        let slot = self.target.lane.slot(n);
        self.message.describe(self.shared, slot, bytes, status, payload, self.message.src_qp);
        self.target.lane.publish(self.shared, n);
    }

    /// Delivers to a queue pair that others may send datagrams to as well.
    fn datagram(&self, datagram: Datagram) -> Delivery {
        let shared = self.shared;
        if !self.target.receives(shared) || shared.qkey.load(Relaxed) != datagram.qkey {
            return Delivery::NoAnswer;
        }
        let Some(pool) = &self.target.pool else { return self.find_slot(None) };
        match self.take(pool, self.needs()) {
            Ok(ticket) => {
                let delivery = self.find_slot(Some((pool, ticket)));
                if !delivery.completes(self.message) {
                    pool.put_back(self.host.block, ticket);
                }
                delivery
            }
            Err(Refusal::Empty) => Delivery::NotReady,
            Err(Refusal::Short) => Delivery::TooLong,
        }
    }

    /// Finds a slot for a datagram and fills it.
    fn find_slot(&self, ticket: Option<(&Pool, Ticket)>) -> Delivery {
        let lane = &self.target.lane;
        let shared = self.shared;
        let posted = |n| if ticket.is_some() { Some(n) } else { lane.posted_from(shared, n) };
        let claim = |n, free| self.claim(n, free, ticket);
        let found = claim::find(&shared.next.value, lane.size(), |n| &lane.slot(n).state, posted, claim);
        found.unwrap_or(Delivery::NotReady)
    }

    /// Takes receive `n` for a datagram and fills it; `None` if another requester was faster.
    fn claim(&self, n: u32, free: u64, ticket: Option<(&Pool, Ticket)>) -> Option<Delivery> {
        let slot = self.target.lane.slot(n);
        let claim = Claim::new(&slot.state, n, free, self.host.block)?;
        // Either this sees that the queue pair has ended, or the process that ends it sees the
        // claim.
        if !self.target.receives(self.shared) {
            claim.withdraw();
            return Some(Delivery::NoAnswer);
        }
        let filled = match ticket {
            Some((pool, ticket)) => {
                slot.index.store(ticket.index as u16, Relaxed);
                self.fill_taken(n, pool, ticket)
            }
            None => self.fill(n, self.target.lane.post(self.shared, n)),
        };
        let (status, delivery, payload) = match filled {
            Ok(payload) => (IBV_WC_SUCCESS, Delivery::Done, payload),
            Err(Misfit::Short) => {
                claim.withdraw();
                return Some(Delivery::TooLong);
            }
            Err(Misfit::Gone) => {
                claim.withdraw();
                return Some(Delivery::NoAnswer);
            }
            Err(misfit) => {
                self.fail();
                let (status, delivery) = misfit.told();
                (status, delivery, Payload::Placed)
            }
        };
        let bytes = if delivery == Delivery::Done { self.message.bytes + GRH_BYTES } else { 0 };
        let datagram = self.message.datagram.as_ref();
        let ends = datagram.map_or(0, |datagram| self.target.number_of_ends(self.host, datagram));
        let sender = sender_word(self.message.src_qp, ends);
        self.message.describe(self.shared, slot, bytes, status, payload, sender);
        claim.show(&self.shared.next.value).then_some(delivery)
    }

    fn is_reliable(&self) -> bool {
        self.shared.service.load(Relaxed) == IBV_QPT_RC
    }

    /// Fails the queue pair of the receive before the completion shows why.
    #[cold]
    fn fail(&self) {
        if self.shared.generation.load(Acquire) == self.target.generation {
            self.shared.fail();
        }
    }

    /// Scatters the payload of message `n` to the receive's memory, after checking all of it. The
    /// owner itself fills memory that only it has mapped, unless the message is long.
    fn place(&self, n: u32, posted: PostedReceive<'_>, to_group: bool) -> Result<Payload, Misfit> {
        let view = self.target.peer.view(&self.host.arena.view);
        let element = |shared: &SlotSge| {
            let sge = shared.load();
            let place = locate(view, Some(&self.target.peer), posted.pd, &sge, Access::Scatter)?;
            self.target.warm_up(view, sge.lkey);
            Some(place)
        };
        let message = self.message;
        let header = message
            .datagram
            .map(|d| grh(message.bytes, message.imm.is_some(), d.traffic_class, d.ends.copied()));
        let mut room = 0;
        let mut unmapped = false;
        for shared in posted.elements {
            let place = element(shared).ok_or(Misfit::Forbidden)?;
            unmapped |= matches!(place, Place::There { .. });
            room += place.bytes() as u64;
        }
        if room < message.bytes + header.map_or(0, |_| GRH_BYTES) {
            return Err(Misfit::Short);
        }
        if unmapped && posted.valid && !to_group && self.bounce(n) {
            return Ok(Payload::Bounced);
        }
        if unmapped {
            // The memory may be unmapped as soon as it is deregistered: as in `reach`.
            fence(SeqCst);
            let is_there = posted.elements.iter().all(|shared| element(shared).is_some());
            if !self.target.receives(self.shared) {
                return Err(Misfit::Gone);
            }
            if !is_there {
                return Err(Misfit::Forbidden);
            }
        }
        let places = posted.elements.iter().filter_map(element);
        let header =
            header.as_ref().map(|header| Piece { addr: header.as_ptr().cast_mut(), len: header.len() });
        let pieces = header.into_iter().chain(message.pieces.iter().copied());
        // SAFETY: every place was just checked; the pieces are readable and the header lives until
        // the end of this function; a peer's arena stays mapped as long as `target` holds the peer.
        unsafe { scatter(pieces, places) }
            .map(|()| Payload::Placed)
            .map_err(|errno| if errno == Errno::SRCH { Misfit::Gone } else { Misfit::Forbidden })
    }

    /// Copies the payload of message `n` to the lane's own memory; false if there is no room.
    fn bounce(&self, n: u32) -> bool {
        let message = self.message;
        if message.bytes > BOUNCE_BYTES as u64 {
            return false;
        }
        let Some(to) = self.target.lane.bounce(self.shared, n) else { return false };
        let to = Place::Here(Piece { addr: to.as_ptr(), len: message.bytes as usize });
        // SAFETY: the pieces are readable and have as many bytes as the message; the lane's own
        // memory has as many there, and the target holds its mapping.
        unsafe { scatter(message.pieces.iter().copied(), std::iter::once(to)) }.is_ok()
    }
}

/// Why a payload does not fit a receive.
#[derive(Clone, Copy)]
enum Misfit {
    Short,
    Forbidden,
    /// The process has ended.
    Gone,
}

impl Misfit {
    /// Returns the status of the receive's completion, and the result for the requester.
    fn told(self) -> (ibv_wc_status, Delivery) {
        match self {
            Self::Short => (IBV_WC_LOC_LEN_ERR, Delivery::TooLong),
            Self::Forbidden | Self::Gone => (IBV_WC_LOC_PROT_ERR, Delivery::BadReceive),
        }
    }
}
