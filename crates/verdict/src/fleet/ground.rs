//! Good hosts, beside which suspects are measured.

use std::collections::BTreeSet;

use super::claim::Claim;
use super::distance::Distances;
use super::examined::Place;
use super::hosts::Hosts;
use super::lanes::Steps;
use super::model::Model;
use super::probe::Measured;
use super::robust::median;

/// Pairs of good hosts that give the level of a distance in isolation, and how often each is
/// measured.
const PAIRS_OF_LEVEL: usize = 8;
const REPETITIONS_OF_LEVEL: usize = 3;
/// As many pairs without a common host are enough: a host that is slow for a while then moves one
/// pair of many. Otherwise a host may be in two.
const DISJOINT_PAIRS: usize = 6;
/// The good hosts among which pairs of a distance, and partners with a control, are looked for.
const CANDIDATES: usize = 512;

/// The hosts that nobody suspects, nearest to the others first, and the pairs that are suspect.
pub(super) struct Ground {
    good: Vec<usize>,
    pairs: BTreeSet<[usize; 2]>,
    distances: Distances,
}

/// A good partner of a suspect host, and its control: another good host with the same partner, at
/// the same distance where there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) partner: usize,
    pub(super) control: Option<usize>,
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
        let deviation = |host: usize| models.iter().map(|model| model.deviation(host)).fold(0.0, f64::max);
        let mut deviations: Vec<f64> = (0..hosts.count).map(deviation).collect();
        deviations
            .iter_mut()
            .filter(|deviation| deviation.is_nan())
            .for_each(|deviation| *deviation = f64::INFINITY);
        good.sort_by(|&a, &b| deviations[a].total_cmp(&deviations[b]));
        Self { good, pairs, distances: Distances::of(hosts) }
    }

    /// At most `most` good partners of some hosts, none of which is suspect with them or unwanted.
    pub(super) fn partners(
        &self,
        of: &[usize],
        most: usize,
        is_unwanted: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let is_wanted =
            |partner: usize| !is_unwanted(partner) && of.iter().all(|&host| self.is_good([host, partner]));
        self.good.iter().copied().filter(|&partner| is_wanted(partner)).take(most).collect()
    }

    /// At most `most` good partners of a host with their controls, none of which is unwanted. A
    /// partner that has a control at the same distance comes first.
    pub(super) fn beside(
        &self,
        host: usize,
        most: usize,
        is_unwanted: impl Fn(usize) -> bool,
    ) -> Vec<Beside> {
        let wanted = self.partners(&[host], CANDIDATES, is_unwanted);
        let mut found: Vec<Beside> = Vec::new();
        for is_same in [true, false] {
            for (index, &partner) in wanted.iter().enumerate() {
                if found.len() == most || found.iter().any(|one| one.partner == partner) {
                    continue;
                }
                // A control that is slow for a while must not be that of most partners: the one of
                // the fewest, and of these the next one.
                let controls = wanted[index + 1..].iter().chain(&wanted[..index]).copied();
                let is_at_distance = |control: &usize| {
                    let [own, other] = [host, *control].map(|one| self.distances.between(one, partner));
                    self.is_good([*control, partner]) && (!is_same || own == other)
                };
                let uses = |control: &usize| found.iter().filter(|one| one.control == Some(*control)).count();
                let control = controls.filter(is_at_distance).min_by_key(uses);
                if control.is_some() || !is_same {
                    found.push(Beside { partner, control });
                }
            }
        }
        found
    }

    /// The pairs of good hosts whose values give the level at each distance of these pairs.
    pub(super) fn level_pairs<'p>(&self, pairs: impl Iterator<Item = &'p [usize; 2]>) -> Steps {
        let wanted: BTreeSet<usize> = pairs.map(|&[a, b]| self.distances.between(a, b)).collect();
        let once: Steps = wanted.into_iter().flat_map(|distance| self.pairs_at(distance)).collect();
        once.repeat(REPETITIONS_OF_LEVEL)
    }

    fn pairs_at(&self, distance: usize) -> Steps {
        let disjoint = self.pairs_of(distance, 1);
        if disjoint.len() < DISJOINT_PAIRS { self.pairs_of(distance, 2) } else { disjoint }
    }

    /// Good pairs of a distance in which no host is more than `most` times.
    fn pairs_of(&self, distance: usize, most: usize) -> Steps {
        let hosts = &self.good[..self.good.len().min(CANDIDATES)];
        let mut uses = vec![0; hosts.len()];
        let mut pairs = Steps::new();
        for offset in 1..hosts.len().div_ceil(2) + 1 {
            for first in 0..hosts.len() {
                let second = (first + offset) % hosts.len();
                let pair = [hosts[first], hosts[second]];
                let is_free = uses[first].max(uses[second]) < most && pairs.len() < PAIRS_OF_LEVEL;
                let is_known = pairs.iter().any(|&[a, b]| [b, a] == pair);
                if is_free
                    && !is_known
                    && self.distances.between(pair[0], pair[1]) == distance
                    && self.is_good(pair)
                {
                    uses[first] += 1;
                    uses[second] += 1;
                    pairs.push(pair);
                }
            }
        }
        pairs
    }

    /// Whether two different hosts are no suspect pair.
    fn is_good(&self, [a, b]: [usize; 2]) -> bool {
        a != b && !self.pairs.contains(&[a.min(b), a.max(b)])
    }
}

/// The level of each quantity at each distance in isolation.
pub(super) struct Levels(Vec<Vec<Option<f64>>>);

impl Levels {
    /// From what good pairs gave.
    pub(super) fn new(models: &[Model], pairs: &Steps, given: &[Measured]) -> Self {
        let level = |model: &Model, distance: usize| {
            let of =
                pairs.iter().zip(given).filter(|([a, b], _)| model.fit.distances.between(*a, *b) == distance);
            median(of.flat_map(|(&[a, b], measured)| {
                let value = |from: usize, to: usize| {
                    Some(model.value([a, b], measured, from)? - model.fit.send[from] - model.fit.receive[to])
                };
                [value(a, b), value(b, a)].into_iter().flatten()
            }))
        };
        let of =
            |model: &Model| (0..model.fit.distances.count()).map(|distance| level(model, distance)).collect();
        Self(models.iter().map(of).collect())
    }

    /// The level at the distance of a pair; `None`: not measured.
    pub(super) fn of(&self, model: &Model, [a, b]: [usize; 2]) -> Option<f64> {
        self.0[model.quantity][model.fit.distances.between(a, b)]
    }

    /// By how much the level of a pair is above that of another one; `None`: not measured.
    pub(super) fn apart(&self, model: &Model, one: [usize; 2], other: [usize; 2]) -> Option<f64> {
        let between = |[a, b]: [usize; 2]| model.fit.distances.between(a, b);
        if between(one) == between(other) {
            return Some(0.0);
        }
        Some(self.of(model, one)? - self.of(model, other)?)
    }
}
