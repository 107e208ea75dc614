//! Confirmation in isolation: what is slow there as well, in visits apart from each other, is
//! named.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::again;
use super::budget::Budget;
use super::cells::Cell;
use super::claim::{Claim, pair_claim, ways};
use super::claims::suspect;
use super::examined::{Against, Culprit, Evidence, Measurements, Place, Way, Why};
use super::experiment::{Experiment, Part};
use super::ground::{Ground, Levels};
use super::hosts::Hosts;
use super::lanes::{self, Steps};
use super::model::Model;
use super::probe::{AnyProbe, Measured, Purpose, Stopped};
use super::relation::{contains, explains};
use super::robust::median;

/// Visits of each suspect. It is named if two of three were slow.
const VISITS: usize = 3;
/// The most looks at a suspect pair before the visits.
const LOOKS: usize = 3;
/// Good partners of a host, and of a pair.
const PARTNERS_OF_HOST: usize = 8;
const PARTNERS_OF_PAIR: usize = 6;
/// The members of a group, the pairs between two groups and the pairs of a fleet that stand for
/// all.
const MEMBERS: usize = 8;
const REPETITIONS_OF_MEMBER: usize = 3;
/// Good partners of a member that is measured once with each.
const PARTNERS_OF_MEMBER: usize = 5;
const PAIRS_BETWEEN: usize = 6;
/// Partners of a pair that stands for two groups, each once.
const PARTNERS_BETWEEN: usize = 6;
/// How often a pair that stands for a fleet is measured.
const REPETITIONS_OF_FLEET: usize = 3;
/// The share of the least deficit by which the other way of a culprit was slow in the screening.
const SLOW_BEFORE: f64 = 0.5;
/// One of this number of hosts may be busy beside a suspect.
const HOSTS_PER_PAIR: usize = 64;

/// What became of all claims.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) culprits: Vec<Culprit>,
    pub(super) cleared: Vec<(Claim, Why)>,
}

/// Everything that a confirmation needs to know.
pub(super) struct Case<'a> {
    pub(super) hosts: &'a Hosts,
    pub(super) models: &'a [Model],
}

/// What the visits gave of one place.
struct Visited {
    experiment: Experiment,
    /// Of each visit: what each step gave, and the levels of all quantities.
    given: Vec<(Vec<Measured>, Rc<Levels>)>,
}

impl Case<'_> {
    /// Confirms or clears all claims: what contains others first, and what it does not explain
    /// afterwards.
    pub(super) fn settle(
        &self,
        claims: Vec<Claim>,
        probe: &mut AnyProbe<'_>,
        counts: &mut Measurements,
        budget: &mut Budget,
    ) -> Result<Outcome, Stopped> {
        let mut outcome = Outcome::default();
        let mut open = claims;
        while !open.is_empty() {
            let no_time = outcome.cleared.iter().filter(|(_, why)| matches!(why, Why::NoTime));
            let no_time = no_time.map(|(claim, _)| *claim).filter(|claim| !claim.is_pair());
            let no_time: Vec<Claim> = no_time.collect();
            open.retain(|claim| {
                let explained = self.explained(&outcome.culprits, claim).map(Why::Explained);
                // A part may be slow because the whole is.
                let why = explained.or_else(|| self.is_part(&no_time, claim).then_some(Why::NoTime));
                outcome.cleared.extend(why.map(|why| (*claim, why)));
                why.is_none()
            });
            let ground = self.ground(&open, &outcome.culprits);
            // Most claims are about pairs, which contain nothing.
            let outer: Vec<Claim> = open.iter().copied().filter(|claim| !claim.is_pair()).collect();
            let (later, ready): (Vec<Claim>, Vec<Claim>) =
                open.into_iter().partition(|claim| self.is_part(&outer, claim));
            open = later;
            let stay = self.look(&ground, ready, &mut outcome.cleared, probe, counts, budget)?;
            let mut experiments = self.experiments(&ground, &stay);
            let before_visit = budget.before_visit();
            let (stay, late) = budget.split(stay, 0, |places| {
                let places: BTreeSet<&Place> = places.iter().collect();
                let of_places = experiments.iter().filter(|(place, _)| places.contains(place));
                self.cost(&ground, of_places.map(|(_, experiment)| experiment), before_visit)
            });
            outcome.cleared.extend(late.into_iter().map(|claim| (claim, Why::NoTime)));
            experiments.retain(|place, _| stay.iter().any(|claim| claim.place == *place));
            let visited = self.visit(&ground, experiments, probe, counts)?;
            let elsewhere = self.confirm(&visited, &stay, &mut outcome);
            let known = open.iter().chain(outcome.cleared.iter().map(|(claim, _)| claim));
            let named = outcome.culprits.iter().flat_map(|culprit| {
                ways(true).iter().map(|&way| (culprit.quantity, culprit.place, way, culprit.against))
            });
            let mut known: BTreeSet<_> = known.map(key).chain(named).collect();
            // Both hosts of a pair may be cleared at the same time.
            open.extend(elsewhere.into_iter().filter(|claim| known.insert(key(claim))));
        }
        Ok(outcome)
    }

    /// Measures suspect pairs again. Returns the claims that stay suspect, among them all that are
    /// not about a pair. If there is too little time to measure their places in isolation, suspect
    /// pairs are measured up to [`LOOKS`] times: that costs little, and clears most of those that
    /// noise has made suspect.
    fn look(
        &self,
        ground: &Ground,
        claims: Vec<Claim>,
        cleared: &mut Vec<(Claim, Why)>,
        probe: &mut AnyProbe<'_>,
        counts: &mut Measurements,
        budget: &mut Budget,
    ) -> Result<Vec<Claim>, Stopped> {
        let outer: Vec<Claim> = claims.iter().copied().filter(|claim| !claim.is_pair()).collect();
        let for_outer = self.cost_of(ground, &outer, budget);
        let mut open = claims;
        for _ in 0..LOOKS {
            let (ready, late) =
                budget.split(open, for_outer, |places| again::cost(self.models, ground, places));
            cleared.extend(late.into_iter().map(|claim| (claim, Why::NoTime)));
            let whys = again::look(self.models, ground, &ready, probe, counts)?;
            open = Vec::new();
            for (claim, why) in ready.into_iter().zip(whys) {
                match why {
                    Some(why) => cleared.push((claim, why)),
                    None => open.push(claim),
                }
            }
            if budget.holds(self.cost_of(ground, &open, budget)) {
                break;
            }
        }
        Ok(open)
    }

    /// The measurements that confirm or clear the places of claims.
    fn experiments(&self, ground: &Ground, claims: &[Claim]) -> BTreeMap<Place, Experiment> {
        claims.iter().map(|claim| (claim.place, self.experiment(ground, claim.place))).collect()
    }

    /// The number of rounds of all visits of the places of claims; 0 without a limit.
    fn cost_of(&self, ground: &Ground, claims: &[Claim], budget: &Budget) -> usize {
        if claims.is_empty() || budget.0.is_none() {
            return 0;
        }
        self.cost(ground, self.experiments(ground, claims).values(), budget.before_visit())
    }

    /// The number of rounds of all visits.
    fn cost<'e>(
        &self,
        ground: &Ground,
        experiments: impl Iterator<Item = &'e Experiment>,
        before_visit: usize,
    ) -> usize {
        let of_visit = self.series(ground, experiments);
        VISITS.saturating_mul(before_visit + lanes::rounds(&of_visit, self.at_once()))
    }

    /// How many pairs are measured at the same time.
    fn at_once(&self) -> usize {
        (self.hosts.count / HOSTS_PER_PAIR).max(1)
    }

    fn explained(&self, culprits: &[Culprit], claim: &Claim) -> Option<Place> {
        let is_same = |culprit: &&Culprit| {
            culprit.quantity == claim.quantity
                && culprit.against == claim.against
                && explains(
                    self.hosts,
                    culprit.place,
                    self.models[claim.quantity].directed,
                    |way| culprit.is_slow(way),
                    claim,
                )
        };
        culprits.iter().find(is_same).map(|culprit| culprit.place)
    }

    /// Whether one of some claims is about what contains the place of a claim.
    fn is_part(&self, claims: &[Claim], claim: &Claim) -> bool {
        claims.iter().any(|outer| {
            (outer.quantity, outer.against) == (claim.quantity, claim.against)
                && contains(self.hosts, outer.place, claim.place)
        })
    }

    /// Returns the hosts that neither an open claim nor a culprit names. While the whole fleet may
    /// be below the expectation, a claim that one host is below it does not count: the host may
    /// still be as fast as the others.
    fn ground(&self, open: &[Claim], culprits: &[Culprit]) -> Ground {
        let claimed = open.iter().map(|claim| (claim.quantity, claim.place));
        let named = culprits.iter().map(|culprit| (culprit.quantity, culprit.place));
        let of_fleet = claimed.chain(named).filter(|(_, place)| *place == Place::Fleet);
        let of_fleet: BTreeSet<usize> = of_fleet.map(|(quantity, _)| quantity).collect();
        let is_its_part =
            |claim: &Claim| claim.against == Against::Floor && of_fleet.contains(&claim.quantity);
        let mut claims: Vec<Claim> = open.iter().copied().filter(|claim| !is_its_part(claim)).collect();
        for culprit in culprits {
            let claim = |place| Claim {
                quantity: culprit.quantity,
                place,
                way: Way::Send,
                against: culprit.against,
                screened: 0.0,
                bound: 0.0,
                peers: 0,
            };
            match culprit.place {
                Place::Group { grouping, group } => {
                    let members = self.hosts.groupings[grouping].members(group);
                    claims.extend(members.into_iter().map(|host| claim(Place::Host(host))));
                }
                place => claims.push(claim(place)),
            }
        }
        Ground::of(self.hosts, self.models, &claims)
    }

    /// Names or clears the places of claims by what their visits gave. Returns the pairs that are
    /// suspect because their host was cleared.
    fn confirm(
        &self,
        visited: &BTreeMap<Place, Visited>,
        claims: &[Claim],
        outcome: &mut Outcome,
    ) -> Vec<Claim> {
        let mut elsewhere = Vec::new();
        let mut questions: BTreeMap<(Place, usize, Against), Vec<&Claim>> = BTreeMap::new();
        for claim in claims {
            questions.entry((claim.place, claim.quantity, claim.against)).or_default().push(claim);
        }
        for ((place, quantity, against), claims) in questions {
            let model = &self.models[quantity];
            let [send, receive] = evidence(self.hosts, model, against, &claims, &visited[&place]);
            if [&send, &receive].into_iter().flatten().any(|evidence| evidence.is_named) {
                outcome.culprits.push(Culprit { quantity, place, against, send, receive });
                continue;
            }
            for claim in claims {
                let evidence = if claim.way == Way::Send { &send } else { &receive };
                let effect = evidence.as_ref().and_then(|evidence| evidence.confirmed);
                outcome.cleared.push((*claim, effect.map_or(Why::NotMeasured, Why::Isolation)));
                if effect.is_some() {
                    elsewhere.extend(self.elsewhere(claim, &visited[&place].experiment));
                }
            }
        }
        elsewhere
    }

    /// Returns the slow pairs of a cleared host. If more than half of a host's pairs are slow, the
    /// screening takes them for a slow host. Isolation clears the host if most of its partners
    /// there are of the other half, and then says nothing of the slow pairs. If most of these
    /// partners were slow in the screening, isolation has examined such pairs: none is returned.
    fn elsewhere(&self, claim: &Claim, experiment: &Experiment) -> Vec<Claim> {
        let model = &self.models[claim.quantity];
        let (Place::Host(host), Against::Others, Some(bound)) =
            (claim.place, claim.against, model.pair_bound())
        else {
            return Vec::new();
        };
        let slow = |other: usize| {
            let [from, to] = if claim.way == Way::Send { [host, other] } else { [other, host] };
            let value = model.residual(from, to)? + model.effect(host, claim.way);
            let [from, to] = if model.directed { [from, to] } else { [from.min(to), from.max(to)] };
            let cell = Cell { from: from as u32, to: to as u32, value };
            (value < suspect(model) * bound).then_some(cell)
        };
        let of_host = experiment.steps().into_iter().filter(|pair| pair.contains(&host));
        let partners: BTreeSet<usize> = of_host.map(|[a, b]| a + b - host).collect();
        if 2 * partners.iter().filter(|other| slow(**other).is_some()).count() >= partners.len() {
            return Vec::new();
        }
        let cells = (0..model.count).filter(|other| *other != host).filter_map(slow);
        cells.filter_map(|cell| pair_claim(model, &cell, cell.value, bound)).collect()
    }

    /// What a visit measures: the steps of each experiment, and then those that give the levels.
    fn series<'e>(&self, ground: &Ground, experiments: impl Iterator<Item = &'e Experiment>) -> Vec<Steps> {
        let mut series: Vec<Steps> = experiments.map(Experiment::steps).collect();
        series.push(ground.level_pairs(series.iter().flatten()));
        series
    }

    /// Measures all places in each visit.
    fn visit(
        &self,
        ground: &Ground,
        experiments: BTreeMap<Place, Experiment>,
        probe: &mut AnyProbe<'_>,
        counts: &mut Measurements,
    ) -> Result<BTreeMap<Place, Visited>, Stopped> {
        let of = |(place, experiment)| (place, Visited { experiment, given: Vec::new() });
        let mut visited: BTreeMap<Place, Visited> = experiments.into_iter().map(of).collect();
        let series = self.series(ground, visited.values().map(|one| &one.experiment));
        let Some((level_pairs, of_places)) = series.split_last() else { return Ok(visited) };
        if of_places.iter().all(Vec::is_empty) {
            return Ok(visited);
        }
        let hosts: BTreeSet<usize> = series.iter().flatten().flatten().copied().collect();
        let hosts: Vec<usize> = hosts.into_iter().collect();
        let at_once = self.at_once();
        for visit in 0..VISITS {
            probe.visit(&hosts)?;
            let mut given = lanes::run(probe, &series, at_once, Purpose::Confirmation { visit }, counts)?;
            let levels = Levels::new(self.models, level_pairs, &given.pop().unwrap_or_default());
            let levels = Rc::new(levels);
            for (one, given) in visited.values_mut().zip(given) {
                one.given.push((given, Rc::clone(&levels)));
            }
        }
        Ok(visited)
    }

    fn experiment(&self, ground: &Ground, place: Place) -> Experiment {
        match place {
            Place::Host(host) => Experiment::host(host, ground.beside(host, PARTNERS_OF_HOST, |_| false)),
            Place::Pair { a, b } => {
                Experiment::pair([a, b], &ground.partners(&[a, b], PARTNERS_OF_PAIR, |_| false))
            }
            Place::Group { grouping, group } => {
                let groups = &self.hosts.groupings[grouping].of;
                let members = spread(self.hosts.groupings[grouping].members(group), MEMBERS);
                // A few members are measured more often.
                let repetitions = (MEMBERS / members.len().max(1)).clamp(1, REPETITIONS_OF_MEMBER);
                let partners = if repetitions > 1 { PARTNERS_OF_HOST } else { PARTNERS_OF_MEMBER };
                let part = |host: usize| {
                    let is_member = |partner: usize| groups[partner] == Some(group);
                    Part::host(host, ground.beside(host, partners, is_member), repetitions)
                };
                Experiment { parts: members.into_iter().map(part).collect() }
            }
            Place::Between { grouping, a, b } => {
                let groups = &self.hosts.groupings[grouping];
                let firsts = spread(groups.members(a), PAIRS_BETWEEN);
                let seconds = spread(groups.members(b), PAIRS_BETWEEN);
                let most = firsts.len().max(seconds.len());
                let pairs =
                    (0..most).map(|index| [firsts[index % firsts.len()], seconds[index % seconds.len()]]);
                let part = |pair: [usize; 2]| {
                    let is_of_either = |host: usize| [Some(a), Some(b)].contains(&groups.of[host]);
                    let partners = ground.partners(&[], PARTNERS_BETWEEN, is_of_either);
                    Part::pair(pair, &partners, 1)
                };
                Experiment { parts: pairs.map(part).collect() }
            }
            // Each network is examined as a fleet.
            Place::Network(_) => Experiment { parts: Vec::new() },
            Place::Fleet => {
                let hosts = spread((0..self.hosts.count).collect(), 2 * MEMBERS);
                // Both directions of each pair: a fleet has only one way.
                let pairs = hosts.chunks_exact(2).flat_map(|pair| [[pair[0], pair[1]], [pair[1], pair[0]]]);
                Experiment { parts: pairs.map(|pair| Part::pair(pair, &[], REPETITIONS_OF_FLEET)).collect() }
            }
        }
    }
}

/// What makes two claims the same question.
fn key(claim: &Claim) -> (usize, Place, Way, Against) {
    (claim.quantity, claim.place, claim.way, claim.against)
}

/// At most `most` of some hosts, evenly spread.
fn spread(hosts: Vec<usize>, most: usize) -> Vec<usize> {
    let count = hosts.len().min(most);
    (0..count).map(|index| hosts[index * hosts.len() / count]).collect()
}

/// The evidence of both ways. If one way is named, the other one is tested at the least deficit
/// worth saying: it is a single question, not one of many. A host that flips is slow in some
/// visits in both ways, so the other way must also have been slow in the screening.
fn evidence(
    hosts: &Hosts,
    model: &Model,
    against: Against,
    claims: &[&Claim],
    visited: &Visited,
) -> [Option<Evidence>; 2] {
    let of = |way: Way| {
        if !ways(model.directed).contains(&way) {
            return None;
        }
        let claim = claims.iter().find(|claim| claim.way == way);
        let effect = |(given, levels): &(Vec<Measured>, Rc<Levels>)| {
            visited.experiment.effect(model, way, against, given, levels)
        };
        let visits: Vec<Option<f64>> = visited.given.iter().map(effect).collect();
        let confirmed = middle(visits.iter().copied().flatten().collect());
        let bound =
            claim.map_or_else(|| least(model, against, claims[0].place), |claim| claim.named_below(model));
        Some(Evidence {
            screened: claim
                .map_or_else(|| screened(hosts, model, claims[0], way), |claim| Some(claim.screened)),
            visits,
            confirmed,
            bound,
            is_named: claim.is_some_and(|claim| is_screened(claim, bound))
                && confirmed.is_some_and(|effect| effect < bound),
            peers: claims[0].peers,
            partners: visited.experiment.partners(),
        })
    };
    let mut found = [of(Way::Send), of(Way::Receive)];
    if found.iter().flatten().any(|evidence| evidence.is_named) {
        for other in found.iter_mut().flatten().filter(|evidence| !evidence.is_named) {
            other.bound = least(model, against, claims[0].place);
            let was_slow = other.screened.is_some_and(|effect| effect <= other.bound * SLOW_BEFORE);
            other.is_named = was_slow && other.confirmed.is_some_and(|effect| effect < other.bound);
        }
    }
    found
}

/// Whether the screening suffices to name a place that is beyond its bound in isolation. What is
/// compared with others was suspect, and isolation decides. A stated expectation is missed only by
/// what missed it each time.
fn is_screened(claim: &Claim, bound: f64) -> bool {
    claim.against == Against::Others || claim.screened < bound
}

/// The middle of three visits. Of two, the better one: both have to be slow.
fn middle(visits: Vec<f64>) -> Option<f64> {
    match visits[..] {
        [] | [_] => None,
        [a, b] => Some(a.max(b)),
        _ => median(visits),
    }
}

/// Below which effect a place may be named at all.
fn least(model: &Model, against: Against, place: Place) -> f64 {
    match against {
        Against::Others => -model.level.least,
        Against::Floor => -model.margin(place),
    }
}

/// The effect in the screening of a way that was not suspect.
fn screened(hosts: &Hosts, model: &Model, claim: &Claim, way: Way) -> Option<f64> {
    match (claim.against, claim.place) {
        (Against::Others, Place::Host(host)) => Some(model.effect(host, way)),
        (Against::Others, Place::Group { grouping, group }) => {
            let members = hosts.groupings[grouping].members(group);
            median(members.into_iter().map(|host| model.effect(host, way)))
        }
        (Against::Others, Place::Between { grouping, a, b }) => {
            let [from, to] = if way == Way::Send { [a, b] } else { [b, a] };
            let members = |group| hosts.groupings[grouping].members(group);
            let receivers = members(to);
            let paths =
                members(from).into_iter().flat_map(|from| receivers.iter().map(move |to| (from, *to)));
            median(paths.filter_map(|(from, to)| model.residual(from, to)))
        }
        (Against::Others, Place::Pair { a, b }) if way == Way::Send => model.residual(a, b),
        (Against::Others, Place::Pair { a, b }) => model.residual(b, a),
        _ => None,
    }
}
