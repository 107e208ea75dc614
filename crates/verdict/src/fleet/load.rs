//! Congestion: what is slow while a round's pairs are measured together, again and again, and not
//! in isolation.

use std::collections::BTreeSet;

use super::budget::Budget;
use super::cells::Cell;
use super::claim::Claim;
use super::examined::{Against, Congestion, Measurements, Place, Reason, Way, Why};
use super::hosts::Hosts;
use super::model::Model;
use super::options::Options;
use super::probe::{AnyProbe, Measured, Purpose, Round, Stopped};
use super::relation::explains;
use super::robust::median;
use super::schedule::Pairs;

/// The most rounds in which suspects are compared with the others again, the most for one suspect,
/// and how often each is.
const ROUNDS: usize = 8;
const ROUNDS_OF_ONE: usize = 3;
const REPETITIONS: usize = 3;
/// A round of fewer pairs has no median of its own, so that it tells nothing about the others.
const PAIRS: usize = 4;
/// A round of one pair is not under load.
const PAIRS_FOR_FLOOR: usize = 2;

/// A measured pair of a round under load.
struct Again {
    pair: [usize; 2],
    measured: Measured,
    /// The number of pairs of the round.
    pairs: usize,
    /// What the whole round had in common, of each quantity.
    common: Vec<f64>,
}

/// What was found under load.
pub(super) struct Loaded {
    pub(super) congestion: Vec<Congestion>,
    /// What was below the expectation and was not measured again, or is too near to it, and why.
    pub(super) unknown: Vec<(Claim, Reason)>,
}

/// Measures rounds again in which cleared suspects were beyond their threshold. A missed
/// expectation decides the verdict: all of these are measured again.
pub(super) fn look(
    hosts: &Hosts,
    options: &Options,
    models: &[Model],
    cleared: &[(Claim, Why)],
    probe: &mut AnyProbe<'_>,
    counts: &mut Measurements,
    budget: &mut Budget,
) -> Result<Loaded, Stopped> {
    let Chosen { claims, rounds, mut unknown, has_floor } = choose(hosts, models, cleared, budget);
    let least = if has_floor { PAIRS_FOR_FLOOR } else { PAIRS };
    let schedule = |round: u32| {
        let mut rounds = options.schedule.rounds(hosts, &options.amounts, options.seed);
        Some((round as usize, rounds.nth(round as usize).filter(|pairs| pairs.len() >= least)?))
    };
    let rounds: Vec<(usize, Pairs)> = rounds.into_iter().filter_map(schedule).collect();
    let again = measure(models, &rounds, has_floor, probe, counts)?;
    let mut found: Vec<(Claim, Congestion)> = Vec::new();
    for (claim, why) in claims {
        let Some(effect) = effect(hosts, &models[claim.quantity], &claim, &again) else {
            let is_under_load =
                again.iter().any(|Again { pair: [a, b], .. }| is_of(hosts, claim.place, *a, *b).is_some());
            let is_floor = claim.against == Against::Floor;
            unknown.extend(match is_under_load {
                true => is_floor.then_some((claim, Reason::NotConfirmable)),
                false => open(&models[claim.quantity], &claim, why, None),
            });
            continue;
        };
        let Claim { quantity, place, way, against, screened, .. } = claim;
        let isolated = why.isolated();
        let congestion = Congestion { quantity, place, way, against, screened, again: effect, isolated };
        match screened.max(effect) < claim.named_below(&models[quantity]) {
            true => found.push((claim, congestion)),
            false => unknown.extend(open(&models[quantity], &claim, why, Some(effect))),
        }
    }
    let is_part = |claim: &Claim| {
        found.iter().any(|(other, _)| {
            (other.quantity, other.against) == (claim.quantity, claim.against)
                && explains(
                    hosts,
                    other.place,
                    models[claim.quantity].directed,
                    |way| way == other.way,
                    claim,
                )
        })
    };
    let congestion = found.iter().filter(|(claim, _)| !is_part(claim)).map(|(_, one)| one.clone()).collect();
    Ok(Loaded { congestion, unknown })
}

/// What is measured again.
struct Chosen {
    claims: Vec<(Claim, Why)>,
    /// The numbers of their rounds.
    rounds: BTreeSet<u32>,
    /// What is below the expectation, and for which no time is left.
    unknown: Vec<(Claim, Reason)>,
    /// Whether an expectation is among the claims: their rounds are measured in visits.
    has_floor: bool,
}

/// Chooses cleared suspects that were beyond their threshold, and rounds in which they were.
fn choose(hosts: &Hosts, models: &[Model], cleared: &[(Claim, Why)], budget: &mut Budget) -> Chosen {
    let is_slow = |claim: &Claim| claim.screened < claim.bound;
    let is_measured = |why: &Why| matches!(why, Why::Again(_) | Why::Isolation(_));
    let mut suspects: Vec<&(Claim, Why)> =
        cleared.iter().filter(|(claim, why)| is_slow(claim) && is_measured(why)).collect();
    // What contains pairs comes before them: the rounds of pairs alone would leave no room for it.
    suspects.sort_by(|(a, _), (b, _)| b.against.cmp(&a.against).then(a.order(b)));
    let mut rounds = BTreeSet::new();
    let mut unknown = Vec::new();
    let mut claims = Vec::new();
    let mut has_floor = false;
    for (claim, why) in suspects {
        let mut wanted = rounds.clone();
        wanted.extend(rounds_of(hosts, &models[claim.quantity], claim));
        let is_floor = claim.against == Against::Floor;
        let is_wanted = is_floor || wanted.len() <= ROUNDS;
        // An expectation decides the verdict: only what misses it at several times misses it.
        let pauses = if is_floor && !has_floor { REPETITIONS * budget.before_visit() } else { 0 };
        if is_wanted && budget.take(pauses + REPETITIONS * (wanted.len() - rounds.len())) {
            has_floor |= is_floor;
            rounds = wanted;
            claims.push((*claim, *why));
        } else if is_floor {
            unknown.push((*claim, Reason::NoTime));
        }
    }
    Chosen { claims, rounds, unknown, has_floor }
}

/// Returns the claim that a place is below the expectation, if it is in isolation or under load,
/// and so little that noise may explain it.
fn open(model: &Model, claim: &Claim, why: Why, effect: Option<f64>) -> Option<(Claim, Reason)> {
    let is_below = why.isolated().into_iter().chain(effect).any(|effect| effect < 0.0);
    let is_open = claim.against == Against::Floor && is_below;
    is_open.then(|| (*claim, Reason::WithinNoise(model.margin(claim.place))))
}

/// Measures rounds again, each with its number. With pauses, each repetition is a visit.
fn measure(
    models: &[Model],
    rounds: &[(usize, Pairs)],
    has_pauses: bool,
    probe: &mut AnyProbe<'_>,
    counts: &mut Measurements,
) -> Result<Vec<Again>, Stopped> {
    let mut again = Vec::new();
    let hosts: BTreeSet<usize> = rounds.iter().flat_map(|(_, pairs)| pairs).flatten().copied().collect();
    let hosts: Vec<usize> = hosts.into_iter().collect();
    for _ in 0..REPETITIONS {
        if has_pauses && !hosts.is_empty() {
            probe.visit(&hosts)?;
        }
        for (round, pairs) in rounds {
            let asked = Round { purpose: Purpose::UnderLoad { round: *round }, pairs: pairs.clone() };
            let measured = probe.round(&asked)?;
            counts.under_load += pairs.len();
            let common = |model: &Model| {
                let pairs = pairs.iter().zip(&measured);
                median(pairs.flat_map(|(&pair, measured)| both(model, pair, measured))).unwrap_or(0.0)
            };
            let common: Vec<f64> = models.iter().map(common).collect();
            again.extend(pairs.iter().zip(measured).map(|(&pair, measured)| Again {
                pair,
                measured,
                pairs: pairs.len(),
                common: common.clone(),
            }));
        }
    }
    Ok(again)
}

/// A pair's deviations from the model, in both directions.
fn both<'a>(model: &'a Model, [a, b]: [usize; 2], measured: &'a Measured) -> impl Iterator<Item = f64> + 'a {
    [(a, b), (b, a)].into_iter().filter_map(move |(from, to)| {
        Some(model.value([a, b], measured, from)? - model.fit.expected(from as u32, to as u32))
    })
}

/// Returns the first rounds in which cells of a claim were slow. In another round, what slows its
/// place under load may not happen.
fn rounds_of(hosts: &Hosts, model: &Model, claim: &Claim) -> BTreeSet<u32> {
    if let Place::Pair { a, b } = claim.place {
        return [(a, b), (b, a)].into_iter().filter_map(|(from, to)| model.round(from, to)).collect();
    }
    let is_slow = |index: &usize| {
        let Cell { from, to, .. } = model.table.fitted[*index];
        let [from, to] = [from, to].map(|host| host as usize);
        let above = match claim.against {
            Against::Floor => model.above([from, to], model.table.raw[*index]),
            Against::Others => {
                Some(model.fit.residuals[*index] + own_effect(model, claim, [from, to]) - claim.bound)
            }
        };
        is_of(hosts, claim.place, from, to) == Some(claim.way) && above.is_some_and(|above| above < 0.0)
    };
    let slow = (0..model.table.fitted.len()).filter(is_slow);
    let rounds: BTreeSet<u32> = slow.map(|index| model.table.rounds[index]).collect();
    rounds.into_iter().take(ROUNDS_OF_ONE).collect()
}

/// The effect in the screening of the host at which a cell has a claimed host or group: the model
/// has taken it out of the residual. 0 for other places.
fn own_effect(model: &Model, claim: &Claim, [from, to]: [usize; 2]) -> f64 {
    match claim.place {
        Place::Host(_) | Place::Group { .. } => {
            model.effect(if claim.way == Way::Send { from } else { to }, claim.way)
        }
        _ => 0.0,
    }
}

/// The way of a cell as its place sees it; `None` if it is not one of the place's cells.
fn is_of(hosts: &Hosts, place: Place, from: usize, to: usize) -> Option<Way> {
    let group = |grouping: usize, host: usize| hosts.groupings[grouping].of[host];
    let ends = match place {
        Place::Fleet => [true, false],
        Place::Network(_) => [false, false],
        Place::Host(host) => [host == from, host == to],
        Place::Pair { a, b } => [(a, b) == (from, to), (b, a) == (from, to)],
        Place::Group { grouping, group: one } => [from, to].map(|host| group(grouping, host) == Some(one)),
        Place::Between { grouping, a, b } => {
            let groups = (group(grouping, from), group(grouping, to));
            [groups == (Some(a), Some(b)), groups == (Some(b), Some(a))]
        }
    };
    match ends {
        [true, false] => Some(Way::Send),
        [false, true] => Some(Way::Receive),
        _ => None,
    }
}

/// The effect of a claim in the rounds that were measured again.
fn effect(hosts: &Hosts, model: &Model, claim: &Claim, again: &[Again]) -> Option<f64> {
    let least = if claim.against == Against::Floor { PAIRS_FOR_FLOOR } else { PAIRS };
    let effects = again.iter().filter(|one| one.pairs >= least).flat_map(|one| {
        let [a, b] = one.pair;
        [(a, b), (b, a)].into_iter().filter_map(move |(from, to)| {
            (is_of(hosts, claim.place, from, to)? == claim.way).then_some(())?;
            let own = own_effect(model, claim, [from, to]);
            if claim.against == Against::Floor {
                return model.above(one.pair, model.raw(one.pair, &one.measured, from)?);
            }
            let value = model.value(one.pair, &one.measured, from)?;
            Some(value - model.fit.expected(from as u32, to as u32) - one.common[model.quantity] + own)
        })
    });
    median(effects)
}
