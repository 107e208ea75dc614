//! An end that is connected: what is under way, what has come, and how it waits.

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

/// How long an end polls before it sleeps.
const SPINS_FOR: Duration = Duration::from_micros(20);
/// How long it sleeps at most before it looks at its deadline.
const SLEEPS_FOR: Duration = Duration::from_secs(1);

/// A queue pair, and what has come by it.
pub(super) struct Lane {
    pub(super) pair: QueuePair<ReadyToSend>,
    pub(super) arrived: VecDeque<Arrived>,
    /// Requests that are not known to be complete.
    pub(super) under_way: usize,
}

/// A block that has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) kind: Kind,
    pub(super) bytes: usize,
    /// Where it is.
    slot: usize,
}

/// Requests that a queue pair has room for, where so many slots are filled over so many.
pub(super) fn sends_of_lane(slots: usize, pairs: usize) -> usize {
    slots.div_ceil(pairs.max(1)) + CREDIT_SENDS
}

/// Who has done how much.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// Blocks that this end has posted, and those of them that the other has released.
    posted: u64,
    freed: u64,
    /// Blocks of the other end that this one has released, and of how many it has told that.
    taken: u64,
    told: u64,
}

/// An end that is connected.
pub(crate) struct Link {
    pub(super) lanes: Vec<Lane>,
    pub(super) queue: CompletionQueue,
    pub(super) channel: CompletionChannel,
    pub(super) domain: ProtectionDomain,
    /// Slots that this end fills. Block n goes by the queue pair n modulo the number of those.
    pub(super) own: Vec<MemoryRegion>,
    /// The one that is being filled.
    pub(super) filling: Option<usize>,
    /// Those of the others that can be. The last one was used last, and is filled next: it is in
    /// the caches, at this end and at the other.
    pub(super) free: Vec<usize>,
    /// Those that were posted, in that order.
    pub(super) posted: VecDeque<usize>,
    /// What sends each of them to its place at the other end.
    pub(super) requests: Vec<SendRequest>,
    /// What carries credits alone.
    pub(super) credit: SendRequest,
    /// What a queue pair receives a message with.
    pub(super) receive: ReceiveRequest,
    /// Bytes of such a block.
    pub(super) block_bytes: usize,
    /// Slots that the other end fills, in the same way.
    pub(super) theirs: Vec<MemoryRegion>,
    pub(super) flow: Flow,
    pub(super) keeps_registrations: bool,
    pub(super) registered: Registered,
    pub(super) sleeps: u64,
    pub(super) patience: Patience,
    pub(super) clock: Clock,
}

/// Immediate data: what a message is, in the upper two bits; the slot of the block; and how many
/// blocks its sender has released in all, modulo 2^18.
const KIND_SHIFT: u32 = 30;
const SLOT_SHIFT: u32 = 18;
const SLOT_MASK: u32 = BLOCKS_MAX - 1;
const COUNT_MASK: u32 = (1 << SLOT_SHIFT) - 1;
const _: () = assert!(BLOCKS_MAX.is_power_of_two() && (SLOT_MASK << SLOT_SHIFT) < 1 << KIND_SHIFT);
const PACKED: u32 = 0;
const RAW: u32 = 1;
const CREDIT: u32 = 2;

impl Link {
    /// Takes note of what has completed; whether there was anything.
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

    /// Takes note of a message.
    fn arrive(&mut self, completion: &Completion) -> Result<(), Error> {
        let lane = (completion.id() & !RECEIVE) as usize;
        let is_wrong = |what| Err(self.patience.is_wrong(what));
        let Some(immediate) = completion.immediate() else {
            return is_wrong("sent a message without its kind");
        };
        // How many it has released since it said so last: it cannot be more than were sent.
        let count = immediate & COUNT_MASK;
        let more = u64::from(count.wrapping_sub(self.flow.freed as u32) & COUNT_MASK);
        if more <= self.posted.len() as u64 {
            self.flow.freed += more;
            self.free.extend(self.posted.drain(..more as usize));
        } else if more <= u64::from(COUNT_MASK / 2) {
            return is_wrong("has released blocks that were not sent");
        }
        // Any other count is one of before: messages of several queue pairs overtake each other.
        let kind = match immediate >> KIND_SHIFT {
            PACKED => Some(Kind::Packed),
            RAW => Some(Kind::Raw),
            CREDIT => None,
            _ => return is_wrong("sent a block of no kind"),
        };
        if let Some(kind) = kind {
            let bytes = completion.byte_len() as usize;
            let slot = (immediate >> SLOT_SHIFT & SLOT_MASK) as usize;
            let waiting: usize = self.lanes.iter().map(|lane| lane.arrived.len()).sum();
            if waiting >= self.theirs.len() || slot >= self.theirs.len() || bytes > self.theirs[0].len() {
                return is_wrong("sent more than there is room for");
            }
            self.lanes[lane].arrived.push_back(Arrived { kind, bytes, slot });
        }
        self.receive.set_id(lane as u64 | RECEIVE);
        Ok(self.lanes[lane].pair.post_receive(&mut self.receive)?)
    }

    /// Waits until something holds: polls for a while, then sleeps.
    pub(super) fn wait(&mut self, mut holds: impl FnMut(&Self) -> bool) -> Result<(), Error> {
        if holds(self) {
            return Ok(());
        }
        let mut silence = self.patience.silence();
        let mut spun = self.clock.now();
        let spins = self.clock.ticks(SPINS_FOR);
        loop {
            let has_moved = self.poll()?;
            // Whoever went to sleep may have taken note of something, too.
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

    /// Sleeps until a completion is announced, unless one is there.
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

    /// Ends where the time is over.
    pub(super) fn look(&self) -> Result<(), Error> {
        self.patience.look()
    }

    /// Whether a slot can be filled.
    pub(super) fn has_room(&self) -> bool {
        self.filling.is_some() || !self.free.is_empty()
    }

    /// What has come next, if something has.
    pub(super) fn arrived(&self) -> Option<Arrived> {
        self.lanes[self.next_lane()].arrived.front().copied()
    }

    /// Blocks that this end has posted, or taken.
    pub(super) fn blocks(&self, is_source: bool) -> u64 {
        if is_source { self.flow.posted } else { self.flow.taken }
    }

    /// Waits for a slot that can be filled; gives its number, which is the same until it is posted.
    pub(super) fn room(&mut self) -> Result<usize, Error> {
        self.wait(Self::has_room)?;
        let filling = self.filling.or_else(|| self.free.pop());
        self.filling = filling;
        filling.ok_or_else(|| self.patience.is_gone("it says nothing"))
    }

    /// Sends so many bytes of the slot that has room.
    pub(super) fn post(&mut self, kind: Kind, bytes: usize) -> Result<(), Error> {
        let slot = self.room()?;
        let lane = (self.flow.posted % self.lanes.len() as u64) as usize;
        self.send_queue_room(lane)?;
        if self.keeps_registrations {
            self.registered.hits += 1;
        } else {
            // As one does who has no ring: memory is registered for each block.
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

    /// What goes with a message; the other end knows then how many of its blocks were released.
    fn immediate(&mut self, kind: u32) -> u32 {
        self.flow.told = self.flow.taken;
        kind << KIND_SHIFT | (self.flow.taken as u32 & COUNT_MASK)
    }

    /// Waits for room in the send queue of a lane.
    fn send_queue_room(&mut self, lane: usize) -> Result<(), Error> {
        let most = sends_of_lane(self.own.len(), self.lanes.len());
        self.wait(|link| link.lanes[lane].under_way < most)
    }

    /// The lane of the next block of the other end.
    pub(super) fn next_lane(&self) -> usize {
        (self.flow.taken % self.lanes.len() as u64) as usize
    }

    /// The slot of the next block of the other end.
    pub(super) fn next_slot(&self) -> usize {
        self.arrived().map_or(0, |arrived| arrived.slot)
    }

    /// Lets the other end fill the next slot again. It is told when there are some.
    pub(super) fn release(&mut self) -> Result<(), Error> {
        let lane = self.next_lane();
        self.lanes[lane].arrived.pop_front();
        self.flow.taken += 1;
        // Where there is another block, the other end does not wait: it need not be woken for each.
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
