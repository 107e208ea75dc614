//! The ranks of an open loop: two that exchange messages, loaders, and the messages that start and
//! stop the loaders.

use super::choices::Load;
use super::settings::Settings;
use crate::point::{Memory, MessageSpec, Operation, PointSpec, QueuePoll, Service, Setup};
use crate::topology::{Flow, Links, Part, PartSpec, Topology, Usage};

/// The messages of the load.
pub(super) const LOAD: Part = Part(1);
/// The messages that start and stop the loaders.
pub(super) const CONTROL: Part = Part(2);

/// The first rank of the load, after the two that exchange messages.
const FIRST_LOADER: u32 = 2;

/// The topology: two ranks that exchange messages, and the ranks of the load.
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

/// The part of the load: streams over RC, whose acknowledgements show the progress.
fn load_part(spec: &PointSpec, settings: &Settings, ranks: u32) -> PartSpec {
    let each = settings.load_bytes.max(1);
    let message = MessageSpec {
        operation: settings.load.operation(),
        size_bytes: settings.load_bytes,
        // Often enough to follow the progress.
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

/// The part of the control messages: a byte from rank 0 to each loader, and one back.
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

/// The settings of load and control messages, which do not depend on those of the main messages.
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

/// The ranks that exchange messages of the load with this rank.
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

/// The outstanding messages of a loader: perftest's.
const LOAD_DEPTH: u32 = 128;
/// The most messages of a load, and the most bytes, between two that ask for a completion.
const LOAD_SIGNAL_INTERVAL: u64 = 16;
const LOAD_SIGNALED_BYTES: u64 = 256 << 10;
/// More than the outstanding control messages of rank 0 and a loader.
const CONTROL_DEPTH: u32 = 8;

#[cfg(test)]
mod tests;
