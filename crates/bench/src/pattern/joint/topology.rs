//! The ranks of a point in which all do something together.

use super::choices::Start;
use crate::endpoint::collectives::Joint;
use crate::pattern::defaults::Defaults;
use crate::point::{Operation, PointSpec};
use crate::topology::{Links, PartSpec, Topology, Usage};

/// So many ranks that do something together, and begin so.
pub(crate) fn topology(spec: &PointSpec, ranks: u32, start: Start, joint: Joint) -> Topology {
    // A library connects its ranks itself.
    let links = if spec.message.endpoint.is_verbs() { Links::mesh(ranks) } else { Links::ring(ranks) };
    let main = PartSpec::main(&spec.message, Usage::PACED, links).doing(joint);
    let together = if start == Start::OwnBarrier { (0..ranks).collect() } else { Vec::new() };
    Topology { together, ..Topology::of_one(main) }
}

/// How verbs carry what ranks do together: by RDMA Writes that ask for a completion now and then.
pub(crate) fn defaults() -> Defaults {
    Defaults { operation: Operation::Write, signal_interval: None, ..Defaults::default() }
}
