//! Which ranks a point has, and which of them talk to each other.

use super::{Mesh, Operation, Pattern, PointSpec, Service};

impl PointSpec {
    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        self.peers.saturating_add(1)
    }

    /// The ranks that a rank talks to, in the order in which its messages take them.
    pub(crate) fn partners(&self, rank: u32) -> Vec<u32> {
        if rank == 0 { (1..self.ranks()).collect() } else { vec![0] }
    }

    /// The ranks that a rank is connected with: those that it talks to first.
    pub(crate) fn neighbours(&self, rank: u32) -> Vec<u32> {
        let partners = self.partners(rank);
        let is_idle = |other: &u32| self.mesh == Mesh::Full && *other != rank && !partners.contains(other);
        let idle: Vec<u32> = (0..self.ranks()).filter(is_idle).collect();
        partners.into_iter().chain(idle).collect()
    }

    /// Whether a rank is the one of a 1:n.
    pub(crate) fn is_hub(&self, rank: u32) -> bool {
        self.pattern == Pattern::FanOut && rank == 0
    }

    /// Whether one queue pair serves all neighbours of a rank: that of datagrams, which say where they go.
    pub(crate) fn shares_queue_pair(&self) -> bool {
        self.pattern == Pattern::FanOut && self.service == Service::Ud
    }

    /// Whether a rank sends to a group.
    pub(crate) fn sends_to_group(&self, rank: u32) -> bool {
        self.operation == Operation::Multicast && self.is_hub(rank)
    }
}
