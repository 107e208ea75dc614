//! Which ranks a point has, and which of them talk to each other.

use super::{Mesh, Operation, Pattern, PointSpec, Service};

impl PointSpec {
    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        match self.pattern {
            Pattern::FanOut => self.peers.saturating_add(1),
            Pattern::Pairs => self.pairs.saturating_mul(2),
            _ => 2,
        }
    }

    /// The ranks that a rank talks to, in the order in which its messages take them. Pairs are neighbours, so that ranks which
    /// take two hosts in turn have their partners on the other one (S15).
    pub(crate) fn partners(&self, rank: u32) -> Vec<u32> {
        match (self.pattern, rank) {
            (Pattern::Pairs, rank) => vec![rank ^ 1],
            (_, 0) => (1..self.ranks()).collect(),
            _ => vec![0],
        }
    }

    /// The ranks that a rank is connected with: those that it talks to first.
    pub(crate) fn neighbours(&self, rank: u32) -> Vec<u32> {
        let partners = self.partners(rank);
        let is_idle = |other: &u32| self.mesh == Mesh::Full && *other != rank && !partners.contains(other);
        let idle: Vec<u32> = (0..self.ranks()).filter(is_idle).collect();
        partners.into_iter().chain(idle).collect()
    }

    /// Whether a rank begins, and the ranks that it talks to answer.
    pub(crate) fn begins(&self, rank: u32) -> bool {
        if self.pattern == Pattern::Pairs { rank.is_multiple_of(2) } else { rank == 0 }
    }

    /// Whether a rank begins together with others of its host.
    pub(crate) fn begins_together(&self, rank: u32) -> bool {
        self.pattern == Pattern::Pairs && self.begins(rank)
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
