//! Messages of MPI as an endpoint.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use mpi::{Communicator, Slots};

use super::call::JointCall;
use super::carried::Carried;
use super::lane::{GREETING_BYTES, Lane, Tag};
use super::one_sided::OneSided;
use super::rank::Context;
use crate::Error;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::collectives::CollectivesVisitor;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::limits::Limits;
use crate::endpoint::{Arrival, Endpoint, FILL, Mark, Posted, words};
use crate::host_counters::Ways;
use crate::point::MpiCall;
use crate::topology::{Flow, PartSpec};

/// Fruitless looks, each a call of MPI, between glances at the clock.
const SPINS: u32 = 64;
/// Receives that are posted for messages that are answered one by one: the next may come before the
/// one that was taken is posted again.
const RECEIVES: usize = 2;

/// A rank of MPI with the ranks that it exchanges messages with.
pub(crate) struct MpiEndpoint {
    pub(super) messages: Communicator,
    /// What all ranks do together.
    pub(super) joint: Option<JointCall>,
    carried: Carried,
    call: MpiCall,
    lanes: Vec<Lane>,
    /// What carries messages that are not sent.
    one_sided: Option<OneSided>,
    out: Sends,
    size: usize,
    next_out: usize,
    next_in: usize,
    /// Where the message is that was taken last: its lane and its slot.
    last: (usize, usize),
    /// Lanes of messages that were taken before that one and not posted again.
    owed: Vec<usize>,
    /// What blocking calls received last.
    received: Box<[u8]>,
    taken: u64,
    clock: Clock,
    limits: Limits,
    yields_cpu: bool,
    spins: u32,
    awaits_room: bool,
}

/// Sends in turn, each from memory of its own.
struct Sends {
    slots: Slots,
    /// What is no [`Mark::More`], where sends are requests that were made once.
    marked: Slots,
    /// The one that comes next.
    next: usize,
    /// The oldest that is not known to be done, and how many are from there to the next.
    oldest: usize,
    under_way: usize,
    /// How many are done.
    done: u64,
    is_persistent: bool,
}

impl Sends {
    fn new(
        messages: &Communicator,
        count: usize,
        size: usize,
        persistent: Option<u32>,
    ) -> Result<Self, Error> {
        let mut slots = Slots::new(messages, count, size.max(GREETING_BYTES))?;
        let mut marked = Slots::new(messages, 1, size.max(GREETING_BYTES))?;
        (0..count).for_each(|slot| slots.bytes_mut(slot).fill(FILL));
        marked.bytes_mut(0).fill(FILL);
        if let Some(peer) = persistent {
            for slot in 0..count {
                slots.send_init(slot, size, peer, Tag::Message(Mark::More).number())?;
            }
        }
        let is_persistent = persistent.is_some();
        Ok(Self { slots, marked, next: 0, oldest: 0, under_way: 0, done: 0, is_persistent })
    }

    /// Takes note of the oldest send that is done; whether there was one.
    #[inline]
    fn take_done(&mut self) -> Result<bool, Error> {
        if self.under_way == 0 || self.slots.test(self.oldest)?.is_none() {
            return Ok(false);
        }
        self.oldest = self.after(self.oldest);
        self.under_way -= 1;
        self.done += 1;
        Ok(true)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.under_way == self.slots.count()
    }

    /// Takes note of all sends, which are done or about to be.
    #[inline]
    fn take_all(&mut self) -> Result<(), Error> {
        self.slots.wait_all(0..self.slots.count())?;
        self.done += self.under_way as u64;
        (self.under_way, self.oldest) = (0, self.next);
        Ok(())
    }

    /// Whether the next slot is free.
    #[inline]
    fn has_room(&mut self) -> Result<bool, Error> {
        Ok(self.under_way < self.slots.count() || self.take_done()?)
    }

    /// Posts the next send, for which there is room.
    #[inline]
    fn post(&mut self, bytes: usize, peer: u32, tag: Tag) -> Result<(), Error> {
        let slot = self.next;
        if !self.is_persistent {
            self.slots.isend(slot, bytes, peer, tag.number())?;
        } else if tag == Tag::Message(Mark::More) {
            self.slots.start(slot)?;
        } else {
            return self.post_marked(bytes, peer, tag);
        }
        self.next = self.after(slot);
        self.under_way += 1;
        Ok(())
    }

    /// Sends what ends a series of persistent sends, after all of these are done.
    #[cold]
    fn post_marked(&mut self, bytes: usize, peer: u32, tag: Tag) -> Result<(), Error> {
        if self.marked.is_pending(0) {
            self.marked.wait(0)?;
        }
        let message = self.slots.bytes(self.next)[..bytes].to_vec();
        self.marked.bytes_mut(0)[..bytes].copy_from_slice(&message);
        self.marked.isend(0, bytes, peer, tag.number())?;
        self.marked.wait(0)?;
        self.done += 1;
        Ok(())
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.count() { 0 } else { slot + 1 }
    }
}

impl MpiEndpoint {
    pub(super) fn new(
        spec: &PartSpec,
        context: Context,
        carried: Carried,
        peers: &[u32],
        yields_cpu: bool,
        clock: Clock,
    ) -> Result<Self, Error> {
        let message = &spec.message;
        let one_sided = OneSided::new(&context, spec, peers)?;
        // Only greetings are sent beside puts and gets.
        let (size, call) = match one_sided {
            Some(_) => (0, MpiCall::Nonblocking),
            None => (message.size(), message.mpi.call),
        };
        let depth = (message.tx_depth as usize).max(1);
        let is_flood = spec.usage.flow == Flow::Flood;
        let receives = if spec.usage.flow == Flow::Alternating { RECEIVES } else { depth };
        let window = is_flood.then_some(depth as u64);
        let lane = |peer: &u32| Lane::new(&context, *peer, size, call, receives, window);
        let depth = if spec.joint.is_some() { 1 } else { depth };
        let peers = if spec.joint.is_some() { &[] } else { peers };
        let lanes = peers.iter().map(lane).collect::<Result<Vec<_>, _>>()?;
        let persistent = peers.first().copied().filter(|_| call == MpiCall::Persistent);
        Ok(Self {
            out: Sends::new(&context.messages, depth, size, persistent)?,
            messages: context.messages,
            joint: None,
            carried,
            call,
            lanes,
            one_sided,
            size,
            next_out: 0,
            next_in: 0,
            last: (0, 0),
            owed: Vec::with_capacity(peers.len()),
            received: vec![0; size.max(GREETING_BYTES)].into(),
            taken: 0,
            clock,
            limits: Limits::new(spec, clock),
            yields_cpu,
            spins: 0,
            awaits_room: false,
        })
    }

    /// Sends to the next peer, or posts that.
    #[inline]
    fn post(&mut self, tag: Tag, bytes: usize) -> Result<Posted, Error> {
        let is_alone = self.lanes.len() == 1;
        let lane = &mut self.lanes[self.next_out];
        if self.call == MpiCall::Blocking {
            self.messages.send(&self.out.slots.bytes(0)[..bytes], lane.peer, tag.number())?;
            self.out.done += 1;
        } else {
            let counts = tag != Tag::Greeting;
            if counts && !lane.may_send()? {
                self.awaits_room = true;
                return Ok(Posted::Busy);
            }
            // The only receiver has answered all that went.
            if counts && self.out.is_full() && is_alone && lane.answers() {
                self.out.take_all()?;
            }
            if !self.out.has_room()? {
                self.awaits_room = true;
                return Ok(Posted::Busy);
            }
            self.out.post(bytes, lane.peer, tag)?;
            if let Tag::Message(mark) = tag {
                lane.sent(mark);
            }
        }
        self.limits.moved();
        self.next_out = if self.next_out + 1 == self.lanes.len() { 0 } else { self.next_out + 1 };
        Ok(Posted::Queued)
    }

    /// What blocking calls receive: from the only peer.
    #[inline]
    fn receive_blocking(&mut self) -> Result<Arrival, Error> {
        let peer = self.lanes[0].peer;
        let status = self.messages.receive(&mut self.received, Some(peer), None)?;
        self.taken += 1;
        Ok(Self::arrival(Tag::of(&status)?, 0, self.taken - 1))
    }

    /// The number of a greeting, which is all that it carries.
    fn greeting(&self, lane: usize, slot: usize) -> u64 {
        let bytes = self.lanes[lane].into.bytes(slot).first_chunk::<GREETING_BYTES>();
        bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
    }

    #[inline]
    fn arrival(tag: Tag, lane: usize, number: u64) -> Arrival {
        let (mark, is_greeting) = match tag {
            Tag::Message(mark) => (mark, false),
            Tag::Greeting => (Mark::Last, true),
        };
        Arrival { mark, number, lane: lane as u32, is_greeting }
    }

    fn path(&self) -> String {
        let peer = self.lanes.first().map_or(0, |lane| lane.peer);
        format!("{} to rank {peer}", self.carried.library)
    }

    /// Ends the point where its time is over. Gives the time.
    #[cold]
    fn look_at_clock(&mut self) -> Result<Ticks, Error> {
        let path = self.path();
        self.limits.check(self.awaits_room, || path)
    }

    /// The long way to be idle.
    #[cold]
    fn rest(&mut self) -> Result<(), Error> {
        self.look_at_clock()?;
        if self.yields_cpu {
            std::thread::yield_now();
        }
        self.awaits_room = false;
        Ok(())
    }
}

impl DrivenEndpoint for MpiEndpoint {
    const CAPABILITIES: Capabilities =
        Capabilities::COUNTED.and(Capabilities::ADDRESSED).and(Capabilities::COLLECTIVES);

    fn visit_collectives<V: CollectivesVisitor>(&mut self, visitor: V) -> Option<V::Done> {
        Some(visitor.visit(self))
    }

    fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        self.limits.start(Duration::from_secs_f64(timeout_s));
        Ok(())
    }

    fn stop(&mut self) {}

    fn library(&self) -> Option<String> {
        Some(self.carried.library.clone())
    }

    fn ways(&self) -> Ways {
        self.carried.ways()
    }

    fn transport(&self) -> Result<Option<String>, Error> {
        self.carried.transport().map(Some)
    }
}

impl Endpoint for MpiEndpoint {
    #[inline]
    fn clock(&self) -> Clock {
        self.clock
    }

    fn lanes(&self) -> u64 {
        self.lanes.len() as u64
    }

    #[inline]
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        if let Some(one_sided) = &mut self.one_sided {
            one_sided.post()?;
            self.limits.moved();
            self.spins += 1;
            if self.spins >= SPINS {
                self.spins = 0;
                self.look_at_clock()?;
            }
            return Ok(Posted::Queued);
        }
        self.post(Tag::Message(mark), self.size)
    }

    fn try_send_to(&mut self, lane: u32, mark: Mark) -> Result<Posted, Error> {
        self.next_out = lane as usize;
        self.try_send(mark)
    }

    fn try_send_sync(&mut self) -> Result<Posted, Error> {
        self.try_send_sync_as(0)
    }

    fn try_send_sync_as(&mut self, number: u32) -> Result<Posted, Error> {
        if !self.out.has_room()? {
            self.awaits_room = true;
            return Ok(Posted::Busy);
        }
        let slot = self.out.next;
        self.out.slots.bytes_mut(slot)[..GREETING_BYTES].copy_from_slice(&number.to_le_bytes());
        self.next_out = 0;
        let posted = self.post(Tag::Greeting, GREETING_BYTES)?;
        self.next_out = 0;
        Ok(posted)
    }

    #[inline]
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        for _ in 0..self.lanes.len() {
            let lane = self.next_in;
            let found = self.lanes[lane].take()?;
            self.next_in = if lane + 1 == self.lanes.len() { 0 } else { lane + 1 };
            let Some((tag, slot)) = found else { continue };
            if lane != self.last.0 && self.lanes.len() > 1 && !self.owed.contains(&self.last.0) {
                self.owed.push(self.last.0);
            }
            self.last = (lane, slot);
            self.limits.moved();
            self.spins = 0;
            let number = match tag {
                Tag::Message(_) => self.lanes[lane].taken - 1,
                Tag::Greeting => self.greeting(lane, slot),
            };
            return Ok(Some(Self::arrival(tag, lane, number)));
        }
        Ok(None)
    }

    #[inline]
    fn receive(&mut self) -> Result<Mark, Error> {
        if self.call == MpiCall::Blocking {
            return Ok(self.receive_blocking()?.mark);
        }
        loop {
            if let Some(arrival) = self.try_receive()? {
                return Ok(arrival.mark);
            }
            self.idle()?;
        }
    }

    #[inline]
    fn replenish(&mut self) -> Result<(), Error> {
        if self.call == MpiCall::Blocking {
            return Ok(());
        }
        while let Some(lane) = self.owed.pop() {
            self.lanes[lane].replenish()?;
        }
        self.lanes[self.last.0].replenish()
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        if let Some(one_sided) = &mut self.one_sided {
            one_sided.complete()?;
        }
        while self.out.take_done()? {}
        let mut left = self.out.under_way as u64;
        for lane in &mut self.lanes {
            left = left.max(lane.unanswered()?);
        }
        Ok(u32::try_from(left).unwrap_or(u32::MAX))
    }

    #[inline]
    fn try_sent(&mut self) -> Result<u64, Error> {
        self.out.take_done()?;
        let mut arrived = 0;
        for lane in &mut self.lanes {
            match lane.arrived()? {
                Some(count) => arrived += count,
                None => return Ok(self.out.done),
            }
        }
        Ok(arrived)
    }

    #[inline]
    fn has_room(&mut self) -> Result<bool, Error> {
        self.out.has_room()
    }

    #[inline]
    fn put(&mut self, word: usize, value: u64) -> Result<(), Error> {
        let slot = self.out.next;
        words::put(&mut self.out.slots.bytes_mut(slot)[..self.size], word, value);
        Ok(())
    }

    #[inline]
    fn get(&self, word: usize) -> Result<u64, Error> {
        let (lane, slot) = self.last;
        let message = match self.call {
            MpiCall::Blocking => &self.received[..],
            _ => self.lanes[lane].into.bytes(slot),
        };
        Ok(words::get(message, word))
    }

    #[inline]
    fn idle_until(&mut self, _instant: Ticks) -> Result<(), Error> {
        self.spins += 1;
        if self.spins < SPINS && !self.yields_cpu {
            return Ok(());
        }
        self.spins = 0;
        self.rest()
    }

    fn attend(&mut self) -> Result<(), Error> {
        self.one_sided.as_mut().map_or(Ok(()), OneSided::attend)
    }

    fn release(&mut self) -> Result<(), Error> {
        self.one_sided.as_mut().map_or(Ok(()), OneSided::release)
    }

    fn yield_cpu(&mut self) -> Result<(), Error> {
        self.look_at_clock()?;
        if self.yields_cpu {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn quiet(&self) -> Duration {
        self.limits.quiet()
    }
}
