//! A connected link: what is under way, what has arrived, and how a rank waits.

use std::collections::VecDeque;
use std::time::Duration;

use measure::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use verbs::abi::IBV_ACCESS_LOCAL_WRITE;
use verbs::{
    Completion, CompletionChannel, CompletionQueue, MemoryRegion, ProtectionDomain, QueuePair, ReadyToSend,
    ReceiveRequest, SendRequest,
};

use super::constants::{CREDIT_SENDS, CREDITS_IN_A_RING, PROMPT_SLOTS_MAX, RECEIVE};
use super::registered::Registered;
use crate::Error;
use crate::transfer::link::{BLOCKS_MAX, Kind, Patience};
use crate::transfer::told::LinkTold;

/// How long a rank polls before it sleeps.
const SPINS_FOR: Duration = Duration::from_micros(20);
/// The longest sleep before the deadline is checked.
const SLEEPS_FOR: Duration = Duration::from_secs(1);

/// A queue pair, and the blocks that have arrived on it.
pub(super) struct Lane {
    pub(super) pair: QueuePair<ReadyToSend>,
    pub(super) arrived: VecDeque<Arrived>,
    /// The posted sends without a polled completion.
    pub(super) under_way: usize,
}

/// A block that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) kind: Kind,
    pub(super) bytes: usize,
    /// The slot that has the block.
    slot: usize,
}

/// Returns the depth of the send queue of a queue pair, where `slots` slots are sent over `pairs`
/// queue pairs.
pub(super) fn sends_of_lane(slots: usize, pairs: usize) -> usize {
    slots.div_ceil(pairs.max(1)) + CREDIT_SENDS
}

/// The counts of sent and released blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// The blocks that this rank has posted.
    posted: u64,
    /// The posted blocks that the peer has released.
    freed: u64,
    /// The blocks of the peer that this rank has released.
    taken: u64,
    /// The releases that the peer knows of.
    told: u64,
}

/// One side of a connected link.
pub(crate) struct Link {
    pub(super) lanes: Vec<Lane>,
    pub(super) queue: CompletionQueue,
    pub(super) channel: CompletionChannel,
    pub(super) domain: ProtectionDomain,
    /// The slots that this rank fills. Block n takes queue pair n modulo the number of queue pairs.
    pub(super) own: Vec<MemoryRegion>,
    /// The slot that is being filled.
    pub(super) filling: Option<usize>,
    /// The slots that can be filled. The last one was used last and is filled next: it is still in
    /// the caches of both ranks.
    pub(super) free: Vec<usize>,
    /// The posted slots, in order.
    pub(super) posted: VecDeque<usize>,
    /// The request that sends each slot to its place at the peer.
    pub(super) requests: Vec<SendRequest>,
    /// The request that carries credits alone.
    pub(super) credit: SendRequest,
    /// The request that receives a message.
    pub(super) receive: ReceiveRequest,
    /// The bytes of a slot of this rank that are used.
    pub(super) block_bytes: usize,
    /// The slots that the peer fills, in the same way.
    pub(super) theirs: Vec<MemoryRegion>,
    pub(super) flow: Flow,
    pub(super) keeps_registrations: bool,
    pub(super) registered: Registered,
    pub(super) sleeps: u64,
    pub(super) patience: Patience,
    pub(super) clock: Clock,
}

/// Immediate data: the kind of a message in the upper two bits, the slot of the block, and the
/// number of blocks that its sender has released so far, modulo 2^18.
const KIND_SHIFT: u32 = 30;
const SLOT_SHIFT: u32 = 18;
const SLOT_MASK: u32 = BLOCKS_MAX - 1;
const COUNT_MASK: u32 = (1 << SLOT_SHIFT) - 1;
const _: () = assert!(BLOCKS_MAX.is_power_of_two() && (SLOT_MASK << SLOT_SHIFT) < 1 << KIND_SHIFT);
const PACKED: u32 = 0;
const RAW: u32 = 1;
const CREDIT: u32 = 2;

impl Link {
    /// Polls the completion queue and handles all completions. Returns whether there were any.
    pub(super) fn poll(&mut self) -> Result<bool, Error> {
        let mut completions = [Completion::default(); 16];
        let queue = self.queue.clone();
        let found = queue.poll(&mut completions)?;
        for completion in found {
            let status = completion.status();
            if !status.is_success() {
                return Err(self.patience.is_broken(&format!("{status}")));
            }
            match completion.id() & RECEIVE {
                0 => {
                    let lane = (completion.id() as usize).min(self.lanes.len() - 1);
                    self.lanes[lane].under_way = self.lanes[lane].under_way.saturating_sub(1);
                }
                _ => self.arrive(completion)?,
            }
        }
        Ok(!found.is_empty())
    }

    /// Handles a received message.
    fn arrive(&mut self, completion: &Completion) -> Result<(), Error> {
        let lane = (completion.id() & !RECEIVE) as usize;
        let is_wrong = |what| Err(self.patience.is_wrong(what));
        let Some(immediate) = completion.immediate() else {
            return is_wrong("sent a message without immediate data");
        };
        // The blocks released since the last message: no more than are posted.
        let count = immediate & COUNT_MASK;
        let more = u64::from(count.wrapping_sub(self.flow.freed as u32) & COUNT_MASK);
        if more <= self.posted.len() as u64 {
            self.flow.freed += more;
            self.free.extend(self.posted.drain(..more as usize));
        } else if more <= u64::from(COUNT_MASK / 2) {
            return is_wrong("released blocks that were not sent");
        }
        // Any other count is an older one: messages of several queue pairs overtake each other.
        let kind = match immediate >> KIND_SHIFT {
            PACKED => Some(Kind::Packed),
            RAW => Some(Kind::Raw),
            CREDIT => None,
            _ => return is_wrong("sent a block of an unknown kind"),
        };
        if let Some(kind) = kind {
            let bytes = completion.byte_len() as usize;
            let slot = (immediate >> SLOT_SHIFT & SLOT_MASK) as usize;
            let waiting: usize = self.lanes.iter().map(|lane| lane.arrived.len()).sum();
            if waiting >= self.theirs.len() || slot >= self.theirs.len() || bytes > self.theirs[0].len() {
                return is_wrong("sent more blocks or bytes than there is room for");
            }
            self.lanes[lane].arrived.push_back(Arrived { kind, bytes, slot });
        }
        self.receive.set_id(lane as u64 | RECEIVE);
        Ok(self.lanes[lane].pair.post_receive(&mut self.receive)?)
    }

    /// Waits until `holds` returns true: polls for a while, then sleeps.
    pub(super) fn wait(&mut self, mut holds: impl FnMut(&Self) -> bool) -> Result<(), Error> {
        if holds(self) {
            return Ok(());
        }
        let mut silence = self.patience.silence();
        let mut spun = self.clock.now();
        let spins = self.clock.ticks(SPINS_FOR);
        loop {
            let has_moved = self.poll()?;
            // Also checked after a sleep, which polls as well.
            if holds(self) {
                return Ok(());
            }
            if has_moved {
                spun = self.clock.now();
                silence = self.patience.silence();
            }
            if self.clock.now().since(spun) < spins {
                std::hint::spin_loop();
                continue;
            }
            self.sleep()?;
            if !holds(self) && (silence.is_over() || self.patience.deadline.is_over()) {
                return Err(self.patience.is_over());
            }
            spun = self.clock.now();
        }
    }

    /// Sleeps until a completion event, unless there is a completion already.
    fn sleep(&mut self) -> Result<(), Error> {
        self.queue.arm()?;
        if self.poll()? {
            return Ok(());
        }
        self.sleeps += 1;
        let limit = Timespec::try_from(SLEEPS_FOR).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], Some(&limit)) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => Ok(self.channel.event()?),
            Err(error) => Err(Error::system("wait for a completion")(error)),
        }
    }

    /// Returns an error if the deadline has passed.
    pub(super) fn look(&self) -> Result<(), Error> {
        self.patience.look()
    }

    /// Whether a slot can be filled.
    pub(super) fn has_room(&self) -> bool {
        self.filling.is_some() || !self.free.is_empty()
    }

    /// Returns the next block, if it has arrived.
    pub(super) fn arrived(&self) -> Option<Arrived> {
        self.lanes[self.next_lane()].arrived.front().copied()
    }

    /// Returns the number of blocks that this rank has posted as a source, or taken as a sink.
    pub(super) fn blocks(&self, is_source: bool) -> u64 {
        if is_source { self.flow.posted } else { self.flow.taken }
    }

    /// Waits for a slot that can be filled. Returns its number, which is the same until it is
    /// posted.
    pub(super) fn room(&mut self) -> Result<usize, Error> {
        self.wait(Self::has_room)?;
        let filling = self.filling.or_else(|| self.free.pop());
        self.filling = filling;
        filling.ok_or_else(|| self.patience.is_gone("it sends nothing"))
    }

    /// Sends the first `bytes` bytes of the slot that is being filled.
    pub(super) fn post(&mut self, kind: Kind, bytes: usize) -> Result<(), Error> {
        let slot = self.room()?;
        let lane = (self.flow.posted % self.lanes.len() as u64) as usize;
        self.send_queue_room(lane)?;
        if self.keeps_registrations {
            self.registered.hits += 1;
        } else {
            // The slot is registered anew, as by a program that registers memory for each block.
            let buffer = self.own.remove(slot).deregister()?;
            let begin = self.clock.now();
            let region = self.domain.register(buffer, IBV_ACCESS_LOCAL_WRITE);
            self.registered.see(self.clock, begin);
            self.own.insert(slot, region?);
        }
        let kind = if kind == Kind::Raw { RAW } else { PACKED };
        let immediate = self.immediate(kind) | (slot as u32) << SLOT_SHIFT;
        let request = &mut self.requests[slot];
        request.set_element(self.own[slot].sge(0, bytes)?);
        request.set_id(lane as u64);
        request.set_immediate(immediate);
        self.lanes[lane].pair.post_send(request)?;
        self.lanes[lane].under_way += 1;
        self.flow.posted += 1;
        self.posted.extend(self.filling.take());
        Ok(())
    }

    /// Returns the immediate data of a message, with the credits. The peer then knows them.
    fn immediate(&mut self, kind: u32) -> u32 {
        self.flow.told = self.flow.taken;
        kind << KIND_SHIFT | (self.flow.taken as u32 & COUNT_MASK)
    }

    /// Waits for room in the send queue of a lane.
    fn send_queue_room(&mut self, lane: usize) -> Result<(), Error> {
        let most = sends_of_lane(self.own.len(), self.lanes.len());
        self.wait(|link| link.lanes[lane].under_way < most)
    }

    /// Returns the lane of the peer's next block.
    pub(super) fn next_lane(&self) -> usize {
        (self.flow.taken % self.lanes.len() as u64) as usize
    }

    /// Returns the slot of the peer's next block.
    pub(super) fn next_slot(&self) -> usize {
        self.arrived().map_or(0, |arrived| arrived.slot)
    }

    /// Releases the next slot, which the peer can then fill again. Sends credits when they are due.
    pub(super) fn release(&mut self) -> Result<(), Error> {
        let lane = self.next_lane();
        self.lanes[lane].arrived.pop_front();
        self.flow.taken += 1;
        // While there is another block, the peer does not wait, and needs no credit for each slot.
        let is_waited_for = self.theirs.len() <= PROMPT_SLOTS_MAX && self.arrived().is_none();
        let due = if is_waited_for { 1 } else { (self.theirs.len() / CREDITS_IN_A_RING).max(1) as u64 };
        if self.flow.taken - self.flow.told < due {
            return Ok(());
        }
        self.send_queue_room(0)?;
        let immediate = self.immediate(CREDIT);
        self.credit.set_immediate(immediate);
        self.lanes[0].pair.post_send(&mut self.credit)?;
        self.lanes[0].under_way += 1;
        Ok(())
    }

    pub(super) fn told(&self, blocks: u64) -> LinkTold {
        LinkTold {
            blocks,
            block_bytes: self.block_bytes.max(self.theirs[0].len()) as u64,
            depth: Some(self.own.len().max(self.theirs.len()) as u64),
            registration_hits: Some(self.registered.hits),
            registration_misses: Some(self.registered.misses),
            registering_ns: Some(self.registered.ns),
            sleeps: Some(self.sleeps),
            ..LinkTold::default()
        }
    }
}
