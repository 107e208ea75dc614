//! How far apart two hosts are, as far as their groups tell.

use super::hosts::Hosts;

/// The distances between hosts. Two hosts have a distance for each grouping: they are in one group
/// (such as a leaf switch), or in two. Paths across groups may be slower by design, so a pair is
/// compared with pairs of the same distance.
#[derive(Clone, Debug, Default)]
pub(super) struct Distances {
    /// The group of each host, of each grouping. Hosts without a group are a group.
    groups: Vec<Vec<Option<usize>>>,
}

impl Distances {
    pub(super) fn of(hosts: &Hosts) -> Self {
        Self { groups: hosts.groupings.iter().map(|grouping| grouping.of.clone()).collect() }
    }

    /// The number of distances.
    pub(super) fn count(&self) -> usize {
        1 << self.groups.len()
    }

    /// The distance between two hosts, a number below [`Self::count`]: a bit for each grouping.
    pub(super) fn between(&self, a: usize, b: usize) -> usize {
        (0..).zip(&self.groups).map(|(bit, of)| usize::from(of[a] != of[b]) << bit).sum()
    }
}
