//! The ranks of a point of collective calls.

use super::choices::Start;
use crate::endpoint::collectives::Joint;
use crate::pattern::defaults::Defaults;
use crate::point::{Operation, PointSpec};
use crate::topology::{Links, PartSpec, Topology, Usage};

/// The topology of `ranks` ranks that call `joint` together and start as `start` says.
pub(crate) fn topology(spec: &PointSpec, ranks: u32, start: Start, joint: Joint) -> Topology {
    // A library connects its ranks itself.
    let links = if spec.message.endpoint.is_verbs() { Links::mesh(ranks) } else { Links::ring(ranks) };
    let main = PartSpec::main(&spec.message, Usage::PACED, links).doing(joint);
    let together = if start == Start::OwnBarrier { (0..ranks).collect() } else { Vec::new() };
    Topology { together, ..Topology::of_one(main) }
}

/// The defaults over verbs: RDMA Writes, of which every Nth asks for a completion.
pub(crate) fn defaults() -> Defaults {
    Defaults { operation: Operation::Write, signal_interval: None, ..Defaults::default() }
}
