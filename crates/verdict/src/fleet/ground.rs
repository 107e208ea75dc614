//! Good hosts, beside which suspects are measured.

use std::collections::BTreeSet;

use super::claim::Claim;
use super::examined::Place;
use super::hosts::Hosts;
use super::lanes::Steps;
use super::model::Model;
use super::probe::Measured;
use super::robust::median;

/// The pairs of good hosts that give the level in isolation, and how often each is measured.
const PAIRS_OF_LEVEL: usize = 6;
const REPETITIONS_OF_LEVEL: usize = 3;

/// The hosts that nobody suspects, nearest to the others first, and the pairs that are suspect.
pub(super) struct Ground {
    good: Vec<usize>,
    pairs: BTreeSet<[usize; 2]>,
}

impl Ground {
    /// The good hosts while these claims are open or named.
    pub(super) fn of(hosts: &Hosts, models: &[Model], claims: &[Claim]) -> Self {
        let mut suspect = vec![false; hosts.count];
        let mut pairs = BTreeSet::new();
        for claim in claims {
            match claim.place {
                Place::Host(host) => suspect[host] = true,
                Place::Pair { a, b } => {
                    pairs.insert([a, b]);
                }
                // Groups are suspect because of their members, and members are claims too.
                _ => {}
            }
        }
        let is_known =
            |host: usize| models.iter().any(|model| model.fit.sent[host] + model.fit.received[host] > 0);
        let mut good: Vec<usize> =
            (0..hosts.count).filter(|&host| !suspect[host] && is_known(host)).collect();
        let distance = |host: usize| models.iter().map(|model| model.distance(host)).fold(0.0, f64::max);
        let mut distances: Vec<f64> = (0..hosts.count).map(distance).collect();
        distances
            .iter_mut()
            .filter(|distance| distance.is_nan())
            .for_each(|distance| *distance = f64::INFINITY);
        good.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
        Self { good, pairs }
    }

    /// At most `most` good partners of some hosts, none of which is suspect with them or unwanted.
    pub(super) fn partners(
        &self,
        of: &[usize],
        most: usize,
        is_unwanted: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let is_suspect = |a: usize, b: usize| self.pairs.contains(&[a.min(b), a.max(b)]);
        let is_wanted = |partner: usize| {
            !is_unwanted(partner) && of.iter().all(|&host| host != partner && !is_suspect(host, partner))
        };
        self.good.iter().copied().filter(|&partner| is_wanted(partner)).take(most).collect()
    }

    /// The pairs of good hosts whose values give the level.
    pub(super) fn level_pairs(&self) -> Steps {
        let hosts = &self.good[..self.good.len().min(PAIRS_OF_LEVEL)];
        let next = |index: usize| hosts[(index + 1) % hosts.len()];
        let edges = if hosts.len() == 2 { 1 } else { hosts.len() };
        let pairs = hosts.iter().enumerate().take(edges).map(|(index, &host)| [host, next(index)]);
        let pairs = pairs.filter(|[a, b]| a != b && !self.pairs.contains(&[*a.min(b), *a.max(b)]));
        let once: Steps = pairs.collect();
        once.repeat(REPETITIONS_OF_LEVEL)
    }
}

/// The level of each quantity in isolation, from what good pairs gave; `None`: not measured.
pub(super) fn levels(models: &[Model], pairs: &Steps, given: &[Measured]) -> Vec<Option<f64>> {
    let level = |model: &Model| {
        median(pairs.iter().zip(given).flat_map(|(&[a, b], measured)| {
            let value = |from: usize, to: usize| {
                Some(model.value([a, b], measured, from)? - model.fit.send[from] - model.fit.receive[to])
            };
            [value(a, b), value(b, a)].into_iter().flatten()
        }))
    };
    models.iter().map(level).collect()
}
