//! Which ranks a point has, and which of them talk to each other.

use super::{Carrier, Load, Mesh, Operation, Part, Pattern, PointSpec, Service};

/// The first rank of an open loop that loads it, after the two that exchange its messages.
const FIRST_LOADER: u32 = 2;

impl PointSpec {
    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        match (self.part, self.pattern) {
            (Part::Main, Pattern::FanOut) => self.peers.saturating_add(1),
            (Part::Main, Pattern::Pairs) => self.pairs.saturating_mul(2),
            _ if self.load == Load::Beside => self.loaders.saturating_mul(2).saturating_add(FIRST_LOADER),
            _ => self.loaders.saturating_add(FIRST_LOADER),
        }
    }

    /// The ranks that a rank talks to in this part of the point, in the order in which its messages take them. Pairs are
    /// neighbours, so that ranks which take two hosts in turn have their partners on the other one (S15).
    pub(crate) fn partners(&self, rank: u32) -> Vec<u32> {
        match (self.part, self.pattern, rank) {
            (Part::Main, Pattern::OpenLoop, FIRST_LOADER..) => Vec::new(),
            (Part::Main, Pattern::OpenLoop | Pattern::Pairs, rank) => vec![rank ^ 1],
            (Part::Main, _, 0) => (1..self.ranks()).collect(),
            (Part::Main, ..) => vec![0],
            (Part::Load, ..) => self.loads_with(rank),
            (Part::Control, _, 0) => self.loaders().collect(),
            (Part::Control, ..) if self.is_loader(rank) => vec![0],
            (Part::Control, ..) => Vec::new(),
        }
    }

    /// The ranks between which and this one a load goes.
    fn loads_with(&self, rank: u32) -> Vec<u32> {
        let end = match self.load {
            Load::Beside if rank >= FIRST_LOADER => return vec![rank ^ 1],
            Load::Beside => return Vec::new(),
            Load::Incast => 1,
            Load::Outcast => 0,
        };
        match rank {
            rank if rank == end => self.loaders().collect(),
            FIRST_LOADER.. => vec![end],
            _ => Vec::new(),
        }
    }

    /// The ranks that load the device.
    fn loaders(&self) -> impl Iterator<Item = u32> {
        (FIRST_LOADER..self.ranks()).filter(|rank| self.is_loader(*rank))
    }

    /// Whether a rank loads the device.
    pub(crate) fn is_loader(&self, rank: u32) -> bool {
        rank >= FIRST_LOADER && self.loaders > 0 && (self.load != Load::Beside || rank.is_multiple_of(2))
    }

    /// The ranks that a rank is connected with in this part of the point: those that it talks to first.
    pub(crate) fn neighbours(&self, rank: u32) -> Vec<u32> {
        let partners = self.partners(rank);
        let is_idle = |other: &u32| self.mesh == Mesh::Full && *other != rank && !partners.contains(other);
        let idle: Vec<u32> = (0..self.ranks()).filter(is_idle).collect();
        partners.into_iter().chain(idle).collect()
    }

    /// Whether a rank begins, and the ranks that it talks to answer.
    pub(crate) fn begins(&self, rank: u32) -> bool {
        if self.pattern == Pattern::Pairs {
            rank.is_multiple_of(2)
        } else {
            rank == 0 || self.is_loader(rank)
        }
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
        self.endpoint == Carrier::Verbs && self.pattern == Pattern::FanOut && self.service == Service::Ud
    }

    /// Whether a rank sends to a group.
    pub(crate) fn sends_to_group(&self, rank: u32) -> bool {
        self.operation == Operation::Multicast && self.is_hub(rank)
    }
}

#[cfg(test)]
mod tests;
