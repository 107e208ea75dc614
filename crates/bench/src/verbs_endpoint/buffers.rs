//! The memory of an endpoint, and the requests that name it.

use verbs::abi::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
    ibv_sge,
};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain, ReceiveRequest, Remote};

use super::{FILL, GREETINGS};
use crate::Error;
use crate::point::{Memory, Operation, Pattern, PointSpec, Service};

/// In front of every received datagram (IBTA vol. 1, section 11.4.1.2).
const GRH_BYTES: usize = 40;
/// Bytes of all receive buffers together, unless one message needs more: receives share buffers, as perftest's do (its
/// cycle buffer is a page). A larger pool would make the first lap through it part of the measurement.
const RECEIVE_BYTES: usize = 4096;
/// Buffers do not share cache lines.
const LINE: usize = 64;
const PAGE: usize = 4096;

/// The memory of an endpoint.
pub(super) struct Buffers {
    /// What is sent, or where fetched bytes go.
    pub(super) send: MemoryRegion,
    /// What the peer writes to or fetches from.
    pub(super) target: Option<MemoryRegion>,
    /// What receives name.
    receive: Option<MemoryRegion>,
    /// One request per buffer, posted in turn.
    pub(super) receives: Vec<ReceiveRequest>,
    /// Where messages that take them in turn stand: in `send`, and in the peer's target alike.
    pub(super) slots: Slots,
    /// Where a payload begins in a received message, and how far such messages are apart.
    received_at: (usize, usize),
}

/// Places for messages, one after another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Slots {
    count: usize,
    stride: usize,
}

impl Slots {
    fn new(size: usize, spec: &PointSpec) -> Self {
        if spec.pattern != Pattern::OneWay {
            return Self { count: 1, stride: size };
        }
        let stride = size.next_multiple_of(LINE);
        Self { count: spec.buffers.map_or(in_a_page(stride), |buffers| buffers as usize), stride }
    }

    /// Where the message of this number stands.
    #[inline]
    pub(super) fn offset(self, message: u64) -> usize {
        (message % self.count as u64) as usize * self.stride
    }

    fn bytes(self) -> usize {
        self.count.saturating_mul(self.stride)
    }
}

/// Messages of which a page's worth is used in turn, at least one.
fn in_a_page(stride: usize) -> usize {
    (RECEIVE_BYTES / stride).max(1)
}

impl Buffers {
    pub(super) fn new(domain: &ProtectionDomain, spec: &PointSpec) -> Result<Self, Error> {
        let size = usize::try_from(spec.size_bytes).unwrap_or(usize::MAX);
        let kind = match spec.memory {
            Memory::Device => MemoryKind::Device,
            Memory::Process => MemoryKind::Process,
        };
        let region = |length, access| domain.memory_region_of(kind, length, access);
        let slots = Slots::new(size, spec);
        let mut send = region(slots.bytes(), IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut send)?;
        let access = access(spec.operation);
        let target = (access != 0).then(|| region(slots.bytes(), access | IBV_ACCESS_LOCAL_WRITE));
        let mut target = target.transpose()?;
        if let Some(target) = &mut target {
            touch(target)?;
            // What is polled, and what atomics count from.
            target.write(size.saturating_sub(8), &vec![0; size.min(8)])?;
        }
        if !matches!(spec.operation, Operation::Send | Operation::SendImm) {
            // What arrives has no payload, or writes it somewhere else; a datagram never gets here.
            return Ok(Self {
                send,
                target,
                receive: None,
                receives: vec![ReceiveRequest::new(0, Vec::new())],
                slots,
                received_at: (0, slots.stride),
            });
        }
        let header = if spec.service == Service::Ud { GRH_BYTES } else { 0 };
        let stride = (size + header).next_multiple_of(LINE);
        let count =
            spec.buffers.map_or(in_a_page(stride).min(spec.rx_depth as usize), |buffers| buffers as usize);
        let mut receive = region(stride.saturating_mul(count), IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut receive)?;
        let receives = (0..count)
            .map(|slot| Ok(ReceiveRequest::new(0, cut(&receive, slot * stride, size + header, spec.sge)?)))
            .collect::<Result<_, Error>>()?;
        Ok(Self { send, target, receive: Some(receive), receives, slots, received_at: (header, stride) })
    }

    /// The first eight bytes of the message that arrived as the so many-th receive, or, where it was written to the target,
    /// as the one of this number.
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

    /// What a request of this end gathers or scatters.
    pub(super) fn elements(&self, spec: &PointSpec) -> Result<Vec<ibv_sge>, Error> {
        cut(&self.send, 0, usize::try_from(spec.size_bytes).unwrap_or(usize::MAX), spec.sge)
    }

    /// Where the peer's one-sided operations go.
    pub(super) fn remote(&self) -> Result<Option<Remote>, Error> {
        Ok(self.target.as_ref().map(|target| target.remote(0)).transpose()?)
    }
}

/// What peers may do with the target, as `IBV_ACCESS_REMOTE_*`.
pub(super) fn access(operation: Operation) -> u32 {
    match operation {
        Operation::Send | Operation::SendImm => 0,
        Operation::Write | Operation::WriteImm => IBV_ACCESS_REMOTE_WRITE,
        Operation::Read => IBV_ACCESS_REMOTE_READ,
        Operation::CompareSwap | Operation::FetchAdd => IBV_ACCESS_REMOTE_ATOMIC,
    }
}

/// Depth of a queue pair's receive queue.
pub(super) fn receive_depth(spec: &PointSpec) -> u32 {
    if spec.operation.arrives() { spec.rx_depth } else { GREETINGS }
}

/// Receives that a queue pair keeps posted.
pub(super) fn receive_fill(spec: &PointSpec) -> u32 {
    receive_depth(spec).min(spec.rx_fill)
}

/// `len` bytes as so many elements of equal length, as far as that goes; the last takes the rest.
fn cut(region: &MemoryRegion, offset: usize, len: usize, elements: u32) -> Result<Vec<ibv_sge>, Error> {
    let count = (elements as usize).clamp(1, len.max(1));
    let each = len / count;
    let element = |i: usize| {
        let length = if i + 1 == count { len - i * each } else { each };
        region.sge(offset + i * each, length)
    };
    Ok((0..count).map(element).collect::<Result<_, _>>()?)
}

/// Writes to every page, so that none is missing when the clock runs.
fn touch(region: &mut MemoryRegion) -> Result<(), Error> {
    for offset in (0..region.len()).step_by(PAGE) {
        region.write(offset, &[FILL])?;
    }
    Ok(())
}
