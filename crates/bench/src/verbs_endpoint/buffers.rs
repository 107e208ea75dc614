//! The memory of an endpoint, and the requests that name it.

use verbs::abi::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
    ibv_sge,
};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain, ReceiveRequest, Remote};

use super::{FILL, GREETINGS};
use crate::Error;
use crate::point::{Memory, Operation, PointSpec, Service};

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
    /// Held for the receives that name it.
    _receive: Option<MemoryRegion>,
    /// One request per buffer, posted in turn.
    pub(super) receives: Vec<ReceiveRequest>,
}

impl Buffers {
    pub(super) fn new(domain: &ProtectionDomain, spec: &PointSpec) -> Result<Self, Error> {
        let size = usize::try_from(spec.size_bytes).unwrap_or(usize::MAX);
        let kind = match spec.memory {
            Memory::Device => MemoryKind::Device,
            Memory::Process => MemoryKind::Process,
        };
        let region = |length, access| domain.memory_region_of(kind, length, access);
        let mut send = region(size, IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut send)?;
        let access = access(spec.operation);
        let target = (access != 0).then(|| region(size, access | IBV_ACCESS_LOCAL_WRITE));
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
                _receive: None,
                receives: vec![ReceiveRequest::new(0, Vec::new())],
            });
        }
        let header = if spec.service == Service::Ud { GRH_BYTES } else { 0 };
        let stride = (size + header).next_multiple_of(LINE);
        let slots = (RECEIVE_BYTES / stride).clamp(1, spec.rx_depth as usize);
        let mut receive = region(stride * slots, IBV_ACCESS_LOCAL_WRITE)?;
        touch(&mut receive)?;
        let receives = (0..slots)
            .map(|slot| Ok(ReceiveRequest::new(0, cut(&receive, slot * stride, size + header, spec.sge)?)))
            .collect::<Result<_, Error>>()?;
        Ok(Self { send, target, _receive: Some(receive), receives })
    }

    /// What a request of this end gathers or scatters.
    pub(super) fn elements(&self, spec: &PointSpec) -> Result<Vec<ibv_sge>, Error> {
        cut(&self.send, 0, self.send.len(), spec.sge)
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

/// Receives that a queue pair keeps posted.
pub(super) fn receive_depth(spec: &PointSpec) -> u32 {
    if spec.operation.arrives() { spec.rx_depth } else { GREETINGS }
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
