//! The ranks of an open loop: two that exchange messages, others that load the device, and how
//! these are told when.

use super::choices::Load;
use super::settings::Settings;
use crate::point::{Memory, MessageSpec, Operation, PointSpec, QueuePoll, Service, Setup};
use crate::topology::{Flow, Links, Part, PartSpec, Topology, Usage};

/// What loads the device while messages are exchanged at a set rate.
pub(super) const LOAD: Part = Part(1);
/// How those who load it are told when.
pub(super) const CONTROL: Part = Part(2);

/// The first rank of an open loop that loads it, after the two that exchange its messages.
const FIRST_LOADER: u32 = 2;

/// Two ranks that exchange messages, and others that load the device meanwhile.
pub(super) fn topology(spec: &PointSpec) -> Topology {
    let settings = &Settings::of(spec);
    let each: u64 = if settings.load == Load::Beside { 2 } else { 1 };
    let load = each * u64::from(settings.loaders);
    let ranks = u32::try_from(u64::from(FIRST_LOADER) + load).unwrap_or(u32::MAX);
    let asked = |rank| if rank < FIRST_LOADER { vec![rank ^ 1] } else { Vec::new() };
    let links = Links::new(ranks, asked, |rank| rank == 0);
    let main = PartSpec::main(&spec.message, Usage::PACED, links);
    let mut topology = Topology::of_one(main);
    if settings.loaders > 0 {
        topology.parts.extend([load_part(spec, settings, ranks), control_part(spec, settings, ranks)]);
    }
    topology
}

/// Floods over a reliable connection, which tells the loader how far it is.
fn load_part(spec: &PointSpec, settings: &Settings, ranks: u32) -> PartSpec {
    let each = settings.load_bytes.max(1);
    let message = MessageSpec {
        operation: settings.load.operation(),
        size_bytes: settings.load_bytes,
        // Often enough to know how far it is.
        signal_interval: (LOAD_SIGNALED_BYTES / each).clamp(1, LOAD_SIGNAL_INTERVAL) as u32,
        tx_depth: LOAD_DEPTH,
        outstanding_reads: None,
        ..beside(spec)
    };
    let usage =
        Usage { flow: Flow::Flood, has_place_each: true, is_timed: false, is_drained: true, ..Usage::PACED };
    let links = Links::new(ranks, |rank| loads_with(settings, rank, ranks), |rank| settings.is_loader(rank));
    PartSpec { part: LOAD, message, usage, links, joint: None }
}

/// A byte from rank 0 to each loader, and one back.
fn control_part(spec: &PointSpec, settings: &Settings, ranks: u32) -> PartSpec {
    let message = MessageSpec {
        operation: Operation::Send,
        size_bytes: 1,
        signal_interval: 1,
        tx_depth: CONTROL_DEPTH,
        rx_depth: CONTROL_DEPTH,
        rx_fill: CONTROL_DEPTH,
        ..beside(spec)
    };
    let usage = Usage { pauses: true, has_rounds: true, has_place_each: true, ..Usage::ALTERNATING };
    let partners = |rank| match rank {
        0 => loaders(settings, ranks).collect(),
        rank if settings.is_loader(rank) => vec![0],
        _ => Vec::new(),
    };
    let links = Links::new(ranks, partners, |rank| rank == 0);
    PartSpec { part: CONTROL, message, usage, links, joint: None }
}

/// What messages beside the main ones have in common: nothing that a plan varies of those.
fn beside(spec: &PointSpec) -> MessageSpec {
    MessageSpec {
        service: Service::Rc,
        poll: QueuePoll::Busy,
        send_poll: QueuePoll::Busy,
        inline: false,
        sge: 1,
        setup: Setup::Exchange,
        memory: Memory::Device,
        ..spec.message.clone()
    }
}

/// The ranks between which and this one a load goes.
fn loads_with(settings: &Settings, rank: u32, ranks: u32) -> Vec<u32> {
    let end = match settings.load {
        Load::Beside if rank >= FIRST_LOADER => return vec![rank ^ 1],
        Load::Beside => return Vec::new(),
        Load::Incast => 1,
        Load::Outcast => 0,
    };
    match rank {
        rank if rank == end => loaders(settings, ranks).collect(),
        FIRST_LOADER.. => vec![end],
        _ => Vec::new(),
    }
}

/// The ranks that load the device.
fn loaders(settings: &Settings, ranks: u32) -> impl Iterator<Item = u32> + '_ {
    (FIRST_LOADER..ranks).filter(|rank| settings.is_loader(*rank))
}

impl Settings {
    /// Whether a rank loads the device.
    pub(super) fn is_loader(&self, rank: u32) -> bool {
        let loads = self.load != Load::Beside || rank.is_multiple_of(2);
        rank >= FIRST_LOADER && self.loaders > 0 && loads
    }
}

/// Messages that a loader has under way: perftest's.
const LOAD_DEPTH: u32 = 128;
/// Every how many messages of a load one asks for a completion, at most, and every how many bytes.
const LOAD_SIGNAL_INTERVAL: u64 = 16;
const LOAD_SIGNALED_BYTES: u64 = 256 << 10;
/// More than the messages that rank 0 and a loader have under way.
const CONTROL_DEPTH: u32 = 8;

#[cfg(test)]
mod tests;
