//! The memory of an endpoint, and the requests that refer to it.

use verbs::abi::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
    ibv_sge,
};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain, ReceiveRequest, Remote};

use super::constants::GREETINGS;
use crate::Error;
use crate::endpoint::FILL;
use crate::point::{Memory, Operation, Service};
use crate::topology::{Form, PartSpec};

/// The size of the header of every received datagram (IBTA, volume 1, section 11.4.1.2).
const GRH_BYTES: usize = 40;
/// The size of all receive buffers together, unless one message needs more: receives share buffers,
/// as in perftest (whose cycle buffer is a page). In a larger pool, the first pass would be part of
/// the measurement.
const RECEIVE_BYTES: usize = 4096;
/// The alignment of buffers, which share no cache line.
pub(super) const LINE: usize = 64;
const PAGE: usize = 4096;

/// The memory of an endpoint.
pub(super) struct Buffers {
    /// Memory that messages are sent from, or that fetched bytes go to.
    pub(super) send: MemoryRegion,
    /// Memory that the peer writes to or fetches from.
    pub(super) target: Option<MemoryRegion>,
    /// Memory that receives refer to.
    receive: Option<MemoryRegion>,
    /// One request for each buffer, posted in turn.
    pub(super) receives: Vec<ReceiveRequest>,
    /// The positions of messages in `send`, and in the peer's target for one-way writes.
    pub(super) slots: Slots,
    /// The positions of messages in `target`.
    pub(super) places: Slots,
    /// The position in `send` that signals are sent from, and the first position in `target` that
    /// they arrive at, if nothing else tells ranks of each other's progress.
    pub(super) signals: Option<Signals>,
    /// The offset of the payload in a received message, and the distance of such messages.
    received_at: (usize, usize),
}

/// The positions of signals: one byte each, in a separate line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signals {
    pub(super) from: usize,
    pub(super) at: usize,
}

/// Positions for messages, one after another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Slots {
    pub(super) count: usize,
    pub(super) stride: usize,
}

impl Slots {
    /// Returns the positions that messages are sent from, or are fetched to: one for each partner
    /// at the rank that fetches in 1:n.
    fn of_send(size: usize, spec: &PartSpec, rank: u32) -> Self {
        if let Form::Numbered { .. } = spec.usage.form {
            let stride = size.next_multiple_of(LINE);
            return Self {
                count: spec.message.buffers.map_or(in_a_page(stride), |buffers| buffers as usize),
                stride,
            };
        }
        if spec.usage.form == Form::Written {
            // A message stays unchanged while it is under way.
            let count = spec.message.buffers.unwrap_or(spec.message.tx_depth) as usize;
            return Self { count, stride: size.next_multiple_of(LINE) };
        }
        let is_each = spec.message.operation.is_fetch();
        Self::for_each(size, if is_each { spec.links.partners(rank).len() } else { 1 })
    }

    /// Returns the positions that messages are written to or fetched from: one for each partner, at
    /// a rank that is written to in 1:n or loaded by several ranks.
    fn of_target(size: usize, spec: &PartSpec, rank: u32) -> Self {
        if let Form::Numbered { .. } = spec.usage.form {
            return Self::of_send(size, spec, rank);
        }
        let count = if spec.usage.has_place_each { spec.links.partners(rank).len() } else { 1 };
        Self::for_each(size, count)
    }

    /// Returns `count` positions that do not share cache lines.
    fn for_each(size: usize, count: usize) -> Self {
        Self { count, stride: if count > 1 { size.next_multiple_of(LINE) } else { size } }
    }

    /// Returns the offset of the message with this number.
    #[inline]
    pub(super) fn offset(self, message: u64) -> usize {
        (message % self.count as u64) as usize * self.stride
    }

    fn bytes(self) -> usize {
        self.count.saturating_mul(self.stride)
    }
}

/// Returns how many messages fit into a page, at least one.
fn in_a_page(stride: usize) -> usize {
    (RECEIVE_BYTES / stride.max(LINE)).max(1)
}

impl Buffers {
    pub(super) fn new(domain: &ProtectionDomain, spec: &PartSpec, rank: u32) -> Result<Self, Error> {
        let size = spec.message.size();
        let kind = match spec.message.memory {
            Memory::Device => MemoryKind::Device,
            Memory::Process => MemoryKind::Process,
        };
        // A message of 0 bytes also has a position: an empty region cannot be registered.
        let region = |length: usize, access| domain.memory_region_of(kind, length.max(1), access);
        let slots = Slots::of_send(size, spec, rank);
        let places = Slots::of_target(size, spec, rank);
        let signals = signals(spec, slots, places);
        let room = |slots: Slots, signals: Option<usize>, count: usize| match signals {
            Some(at) => at.saturating_add(count * LINE),
            None => slots.bytes(),
        };
        let mut send = region(room(slots, signals.map(|s| s.from), 1), IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut send)?;
        let access = access(spec);
        let partners = spec.links.partners(rank).len();
        let length = room(places, signals.map(|s| s.at), partners);
        let target = (access != 0).then(|| region(length, access | IBV_ACCESS_LOCAL_WRITE));
        let mut target = target.transpose()?;
        if let Some(target) = &mut target {
            touch(target)?;
            // Polled bytes and atomics start from zero. A message that is read must not end like
            // memory that nothing has been written to.
            let byte = if spec.message.operation == Operation::Read { FILL } else { 0 };
            for place in 0..places.count {
                target.write(place * places.stride + size.saturating_sub(8), &vec![byte; size.min(8)])?;
            }
            for signal in signals.into_iter().flat_map(|s| (0..partners).map(move |i| s.at + i * LINE)) {
                target.write(signal, &[0])?;
            }
        }
        if !spec.message.operation.is_datagram() {
            // An arriving message has no payload, or writes it elsewhere; a datagram does not take
            // this branch.
            return Ok(Self {
                send,
                target,
                receive: None,
                receives: vec![ReceiveRequest::new(0, Vec::new())],
                slots,
                places,
                signals,
                received_at: (0, slots.stride),
            });
        }
        let header = if spec.message.service == Service::Ud { GRH_BYTES } else { 0 };
        let stride = (size + header).next_multiple_of(LINE);
        let count = match (spec.usage.form, spec.message.buffers) {
            // Samples are read where they arrive, so no other sample may arrive there meanwhile.
            (Form::Written, _) => spec.message.rx_depth as usize + 1,
            (_, Some(buffers)) => buffers as usize,
            (_, None) => in_a_page(stride).min(spec.message.rx_depth as usize),
        };
        let mut receive = region(stride.saturating_mul(count), IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut receive)?;
        let receives = (0..count)
            .map(|slot| {
                Ok(ReceiveRequest::new(0, cut(&receive, slot * stride, size + header, spec.message.sge)?))
            })
            .collect::<Result<_, Error>>()?;
        let received_at = (header, stride);
        Ok(Self { send, target, receive: Some(receive), receives, slots, places, signals, received_at })
    }

    /// Returns the first eight bytes of the message that arrived in receive number `receive`, or as
    /// message number `message` if it was written to the target.
    pub(super) fn stamp(&self, receive: u64, message: u64) -> Result<u64, Error> {
        let mut bytes = [0; size_of::<u64>()];
        match (&self.receive, &self.target) {
            (Some(receives), _) => {
                let (header, stride) = self.received_at;
                let slot = (receive % self.receives.len() as u64) as usize;
                receives.read(slot * stride + header, &mut bytes)?;
            }
            (None, Some(target)) => target.read(self.slots.offset(message), &mut bytes)?,
            (None, None) => {}
        }
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Returns eight bytes of the message that arrived in receive number `receive`.
    #[inline]
    pub(super) fn received_word(&self, receive: u64, word: usize) -> Result<u64, Error> {
        let (header, stride) = self.received_at;
        let slot = (receive % self.receives.len() as u64) as usize;
        let receives = self.receive.as_ref().unwrap_or(&self.send);
        Ok(receives.load(slot * stride + header + 8 * word)?)
    }

    /// Returns the elements that a request of this rank to a partner gathers or scatters.
    pub(super) fn elements(&self, spec: &PartSpec, partner: usize) -> Result<Vec<ibv_sge>, Error> {
        let offset = (partner % self.slots.count) * self.slots.stride;
        cut(&self.send, offset, spec.message.size(), spec.message.sge)
    }

    /// Returns the target of a partner's one-sided operations.
    pub(super) fn remote(&self, partner: usize) -> Result<Option<Remote>, Error> {
        let offset = (partner % self.places.count) * self.places.stride;
        Ok(self.target.as_ref().map(|target| target.remote(offset)).transpose()?)
    }

    /// Returns the target of a partner's signals.
    pub(super) fn remote_signal(&self, partner: usize) -> Result<Option<Remote>, Error> {
        let (Some(signals), Some(target)) = (self.signals, &self.target) else { return Ok(None) };
        Ok(Some(target.remote(signals.at + partner * LINE)?))
    }

    /// Returns the element that a signal of this rank gathers.
    pub(super) fn signal_element(&self) -> Result<Option<ibv_sge>, Error> {
        Ok(self.signals.map(|signals| self.send.sge(signals.from, 1)).transpose()?)
    }
}

/// Returns the positions of signals, behind the messages, if the point has signals: a fetch tells
/// nothing to the other rank.
fn signals(spec: &PartSpec, slots: Slots, places: Slots) -> Option<Signals> {
    let behind = |slots: Slots| slots.bytes().next_multiple_of(LINE);
    has_signals(spec).then(|| Signals { from: behind(slots), at: behind(places) })
}

/// Returns whether ranks of a round signal their progress, because the measured operation does not.
fn has_signals(spec: &PartSpec) -> bool {
    spec.usage.has_rounds && spec.message.operation.is_fetch()
}

/// Returns what peers may do with the target, as `IBV_ACCESS_REMOTE_*`.
pub(super) fn access(spec: &PartSpec) -> u32 {
    let signalled = if has_signals(spec) { IBV_ACCESS_REMOTE_WRITE } else { 0 };
    signalled | of_operation(spec.message.operation)
}

fn of_operation(operation: Operation) -> u32 {
    match operation {
        Operation::Multicast | Operation::Send | Operation::SendImm => 0,
        Operation::Write | Operation::WriteImm => IBV_ACCESS_REMOTE_WRITE,
        Operation::Read => IBV_ACCESS_REMOTE_READ,
        Operation::CompareSwap | Operation::FetchAdd => IBV_ACCESS_REMOTE_ATOMIC,
    }
}

/// Returns the depth of a queue pair's receive queue.
pub(super) fn receive_depth(spec: &PartSpec) -> u32 {
    if spec.message.operation.arrives() { spec.message.rx_depth } else { GREETINGS }
}

/// Returns how many receives a queue pair keeps posted.
pub(super) fn receive_fill(spec: &PartSpec) -> u32 {
    receive_depth(spec).min(spec.message.rx_fill)
}

/// Returns how many receives are posted before the first message can be taken.
pub(super) fn receives_before(spec: &PartSpec) -> u32 {
    // Greetings must find posted receives.
    receive_fill(spec).min(if spec.usage.fills_late { GREETINGS } else { u32::MAX })
}

/// Returns `len` bytes as up to `elements` elements of equal length; the last one takes the rest.
fn cut(region: &MemoryRegion, offset: usize, len: usize, elements: u32) -> Result<Vec<ibv_sge>, Error> {
    let count = (elements as usize).clamp(1, len.max(1));
    let each = len / count;
    let element = |i: usize| {
        let length = if i + 1 == count { len - i * each } else { each };
        region.sge(offset + i * each, length)
    };
    Ok((0..count).map(element).collect::<Result<_, _>>()?)
}

/// Writes to every page, so that no page fault occurs during the measurement.
fn touch(region: &mut MemoryRegion) -> Result<(), Error> {
    for offset in (0..region.len()).step_by(PAGE) {
        region.write(offset, &[FILL])?;
    }
    Ok(())
}
