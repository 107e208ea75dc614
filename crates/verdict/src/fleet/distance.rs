//! How far apart two hosts are, as far as their groups tell.

use std::ops::Range;

use super::hosts::Hosts;

/// The distances between hosts. Two hosts have a distance for each grouping: they are in one group
/// (such as a leaf switch), or in two. Paths across groups may be slower by design, so a pair is
/// compared with pairs of the same distance. Each network has its own distances, since nothing
/// compares its pairs with those of another one.
#[derive(Clone, Debug, Default)]
pub(super) struct Distances {
    /// The group of each host, of each grouping. Hosts without a group are a group.
    groups: Vec<Vec<Option<usize>>>,
    /// The hosts of each network; none if there is one.
    networks: Vec<Vec<usize>>,
    /// The network of each host; none if there is one.
    network_of: Vec<usize>,
}

impl Distances {
    pub(super) fn of(hosts: &Hosts) -> Self {
        Self {
            groups: hosts.groupings.iter().map(|grouping| grouping.of.clone()).collect(),
            networks: if hosts.networks.is_empty() { Vec::new() } else { hosts.of_networks() },
            network_of: hosts.networks.clone(),
        }
    }

    /// The number of distances.
    pub(super) fn count(&self) -> usize {
        self.networks.len().max(1) << self.groups.len()
    }

    /// The distance between two hosts of one network, a number below [`Self::count`]: a bit for
    /// each grouping, and the network above them.
    pub(super) fn between(&self, a: usize, b: usize) -> usize {
        let bits: usize = (0..).zip(&self.groups).map(|(bit, of)| usize::from(of[a] != of[b]) << bit).sum();
        let network = self.network_of.get(a).copied().unwrap_or(0);
        bits + (network << self.groups.len())
    }

    /// Whether two hosts are in one network.
    pub(super) fn is_reached(&self, [a, b]: [usize; 2]) -> bool {
        self.network_of.get(a) == self.network_of.get(b)
    }

    /// The hosts of each network, with its distances; none if there is one network.
    pub(super) fn networks(&self) -> impl Iterator<Item = (&[usize], Range<usize>)> {
        let size = 1 << self.groups.len();
        let of = move |network: usize| network * size..(network + 1) * size;
        self.networks.iter().enumerate().map(move |(network, hosts)| (hosts.as_slice(), of(network)))
    }
}
