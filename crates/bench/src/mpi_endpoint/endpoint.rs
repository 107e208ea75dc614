//! Messages of MPI as an endpoint.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use mpi::Communicator;

use super::call::JointCall;
use super::carried::Carried;
use super::lane::Lane;
use super::one_sided::OneSided;
use super::rank::Context;
use super::sends::Sends;
use super::tag::{GREETING_BYTES, Tag};
use super::windows::Windows;
use crate::Error;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::collectives::CollectivesVisitor;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::limits::Limits;
use crate::endpoint::{Arrival, Batch, Endpoint, Mark, Posted, words};
use crate::host_counters::Ways;
use crate::point::MpiCall;
use crate::topology::{Flow, PartSpec};

/// Unsuccessful tests, each a call of MPI, between two readings of the clock.
const SPINS: u32 = 64;
/// Receives that are posted for messages that are answered one by one: the next message may arrive
/// before the receive of the last one is posted again.
const RECEIVES: usize = 2;

/// A rank of MPI with its peers.
pub(crate) struct MpiEndpoint {
    pub(super) messages: Communicator,
    /// The joint operation of all ranks.
    pub(super) joint: Option<JointCall>,
    carried: Carried,
    call: MpiCall,
    lanes: Vec<Lane>,
    /// The operations of messages that are not sent.
    one_sided: Option<OneSided>,
    out: Sends,
    size: usize,
    next_out: usize,
    next_in: usize,
    /// The lane and the slot of the message that was taken last.
    last: (usize, usize),
    /// Lanes of earlier messages whose receives were not posted again.
    owed: Vec<usize>,
    /// The last message of a blocking receive.
    received: Box<[u8]>,
    taken: u64,
    clock: Clock,
    limits: Limits,
    yields_cpu: bool,
    spins: u32,
    awaits_room: bool,
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
        // Puts and gets need sends only for greetings.
        let (size, call) = match one_sided {
            Some(_) => (0, MpiCall::Nonblocking),
            None => (message.size(), message.mpi.call),
        };
        let depth = (message.tx_depth as usize).max(1);
        let is_flood = spec.usage.flow == Flow::Flood;
        let receives = if spec.usage.flow == Flow::Alternating { RECEIVES } else { depth };
        let is_one_way = spec.usage.is_one_way && call == MpiCall::Nonblocking;
        let windows = |peer| Windows::new(&context.answers, peer, depth as u64, is_one_way);
        let lane = |peer: &u32| {
            let has_windows = is_flood && one_sided.is_none();
            let windows = has_windows.then(|| windows(*peer)).transpose()?;
            Lane::new(&context, *peer, size, call, receives, windows)
        };
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

    /// Sends to the next peer, or posts the send.
    #[inline]
    fn post(&mut self, tag: Tag, bytes: usize) -> Result<Posted, Error> {
        let peer = self.lanes[self.next_out].peer;
        if self.call == MpiCall::Blocking {
            self.messages.send(&self.out.slots.bytes(0)[..bytes], peer, tag.number())?;
            self.out.done += 1;
        } else if self.out.has_room()? {
            self.out.post(bytes, peer, tag)?;
        } else {
            self.awaits_room = true;
            return Ok(Posted::Busy);
        }
        self.posted();
        Ok(Posted::Queued)
    }

    /// Posts the next message of a stream, if its window has room.
    #[inline]
    fn post_in_window(&mut self, mark: Mark) -> Result<Posted, Error> {
        let is_alone = self.lanes.len() == 1;
        let lane = &mut self.lanes[self.next_out];
        let Some(windows) = &mut lane.windows else { return self.post(Tag::Message(mark), self.size) };
        let may_send = windows.may_send()?;
        // The only receiver has answered all messages.
        if may_send && is_alone && self.out.is_full() {
            self.out.take_all()?;
        }
        if !may_send || !self.out.has_room()? {
            self.awaits_room = true;
            return Ok(Posted::Busy);
        }
        self.out.post(self.size, lane.peer, windows.out.tag(mark))?;
        for _ in 0..windows.out.sent(1, mark) {
            self.messages.send(&[], lane.peer, Tag::Filler.number())?;
        }
        if windows.awaits_answer() {
            self.out.take_all()?;
        }
        self.posted();
        Ok(Posted::Queued)
    }

    /// Posts more messages of a stream to the only peer, as far as its window has room.
    #[inline]
    fn post_more(&mut self, most: u64) -> Result<u64, Error> {
        let [Lane { windows: Some(windows), peer, .. }] = &mut self.lanes[..] else { return Ok(0) };
        let posted = self.out.post_some(windows.out.room().min(most), self.size, *peer)?;
        windows.out.sent(posted, Mark::More);
        if windows.awaits_answer() {
            self.out.take_all()?;
        }
        Ok(posted)
    }

    /// Notes that a message was posted: the next one goes to the next peer.
    #[inline]
    fn posted(&mut self) {
        self.limits.moved();
        self.next_out = if self.next_out + 1 == self.lanes.len() { 0 } else { self.next_out + 1 };
    }

    /// Receives a message from the only peer by a blocking call.
    #[inline]
    fn receive_blocking(&mut self) -> Result<Arrival, Error> {
        let peer = self.lanes[0].peer;
        let status = self.messages.receive(&mut self.received, Some(peer), None)?;
        self.taken += 1;
        Ok(Self::arrival(Tag::of(&status)?, 0, self.taken - 1))
    }

    /// Returns the number of a greeting, which is its only content.
    fn greeting(&self, lane: usize, slot: usize) -> u64 {
        let bytes = self.lanes[lane].into.bytes(slot).first_chunk::<GREETING_BYTES>();
        bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
    }

    #[inline]
    fn arrival(tag: Tag, lane: usize, number: u64) -> Arrival {
        let mark = tag.mark();
        let is_greeting = tag == Tag::Greeting;
        Arrival { mark, number, lane: lane as u32, is_greeting }
    }

    fn path(&self) -> String {
        let peer = self.lanes.first().map_or(0, |lane| lane.peer);
        format!("{} to rank {peer}", self.carried.library)
    }

    /// Ends the point if its time is over. Returns the time.
    #[cold]
    fn look_at_clock(&mut self) -> Result<Ticks, Error> {
        let path = self.path();
        self.limits.check(self.awaits_room, || path)
    }

    /// The slow path of being idle.
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
        let taken: u64 = self.lanes.iter().map(|lane| lane.taken).sum();
        self.carried.transport(self.out.done + self.taken + taken).map(Some)
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
        self.post_in_window(mark)
    }

    #[inline]
    fn try_send_some(&mut self, most: u64) -> Result<u64, Error> {
        if self.try_send(Mark::More)? == Posted::Busy {
            return Ok(0);
        }
        Ok(1 + self.post_more(most.saturating_sub(1))?)
    }

    fn announce(&mut self, messages: u64) {
        self.lanes
            .iter_mut()
            .filter_map(|lane| lane.windows.as_mut())
            .for_each(|windows| windows.out.announce(messages));
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
                Tag::Greeting => self.greeting(lane, slot),
                _ => self.lanes[lane].taken - 1,
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
    fn receive_some(&mut self) -> Result<Batch, Error> {
        match &mut self.lanes[..] {
            [lane] if lane.windows.as_ref().is_some_and(|windows| windows.is_one_way) => {
                self.last = (0, lane.head);
                self.limits.moved();
                lane.wait_some()
            }
            _ => Ok(Batch { messages: 1, mark: self.receive()? }),
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
            left = left.max(lane.windows.as_mut().map_or(Ok(0), Windows::unanswered)?);
        }
        Ok(u32::try_from(left).unwrap_or(u32::MAX))
    }

    #[inline]
    fn try_sent(&mut self) -> Result<u64, Error> {
        let mut arrived = 0;
        for lane in &mut self.lanes {
            let Some(windows) = &mut lane.windows else {
                self.out.take_done()?;
                return Ok(self.out.done);
            };
            arrived += windows.arrived()?;
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
        if let [Lane { windows: Some(windows), .. }] = &mut self.lanes[..]
            && windows.awaits_answer()
        {
            windows.wait()?;
            self.limits.moved();
            return Ok(());
        }
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
