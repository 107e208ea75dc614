//! A second look at suspect pairs, before they cost a confirmation.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::Claim;
use super::examined::{Against, Measurements, Place, Way, Why};
use super::ground::{Ground, Levels};
use super::lanes::{self, Steps};
use super::model::Model;
use super::probe::{AnyProbe, Measured, Purpose, Stopped};
use super::robust::median;

/// How often a pair is measured.
const REPETITIONS: usize = 3;
/// A pair leaves if its median is above this share of the threshold.
const LEAVES: f64 = 0.5;
/// One of this number of hosts is busy at most: few enough that the pairs do not slow each other.
const HOSTS_PER_PAIR: usize = 8;

/// The number of rounds of a second look at places: 0 unless some are pairs.
pub(super) fn cost(models: &[Model], ground: &Ground, places: &[Place]) -> usize {
    let at_once = at_once(models[0].count);
    let pairs: BTreeSet<[usize; 2]> = places.iter().copied().filter_map(pair).collect();
    let levels = alone(ground.level_pairs(pairs.iter()));
    lanes::rounds(&levels, at_once) + REPETITIONS * lanes::rounds(&alone(pairs), at_once)
}

/// How many pairs are measured at the same time.
pub(super) fn at_once(hosts: usize) -> usize {
    (hosts / HOSTS_PER_PAIR).max(1)
}

/// Measures suspect pairs again. Returns why each claim leaves; `None` if it stays.
pub(super) fn look(
    models: &[Model],
    ground: &Ground,
    claims: &[Claim],
    probe: &mut AnyProbe<'_>,
    counts: &mut Measurements,
) -> Result<Vec<Option<Why>>, Stopped> {
    let places: BTreeSet<[usize; 2]> = claims.iter().filter_map(|claim| pair(claim.place)).collect();
    if places.is_empty() {
        return Ok(vec![None; claims.len()]);
    }
    let at_once = at_once(models[0].count);
    let level_pairs = ground.level_pairs(places.iter());
    let purpose = Purpose::Again { repetition: 0 };
    let given = lanes::run(probe, &alone(level_pairs.iter().copied()), at_once, purpose, counts)?;
    let levels = Levels::new(models, &level_pairs, &given.concat());
    let series = alone(places.iter().copied());
    let mut measured: BTreeMap<[usize; 2], Vec<Measured>> = BTreeMap::new();
    for repetition in 0..REPETITIONS {
        let given = lanes::run(probe, &series, at_once, Purpose::Again { repetition }, counts)?;
        for (&pair, given) in places.iter().zip(given) {
            measured.entry(pair).or_default().extend(given);
        }
    }
    let why = |claim: &Claim| {
        let pair = pair(claim.place)?;
        let model = &models[claim.quantity];
        let level = levels.of(model, pair).unwrap_or(model.fit.level + model.fit.apart(pair[0], pair[1]));
        let effects =
            measured[&pair].iter().filter_map(|measured| effect(model, claim, pair, measured, level));
        let middle = median(effects)?;
        (middle > LEAVES * claim.bound).then_some(Why::Again(middle))
    };
    Ok(claims.iter().map(why).collect())
}

/// A series of one step for each pair: they have no order.
fn alone(pairs: impl IntoIterator<Item = [usize; 2]>) -> Vec<Steps> {
    pairs.into_iter().map(|pair| vec![pair]).collect()
}

/// The hosts of a pair.
fn pair(place: Place) -> Option<[usize; 2]> {
    match place {
        Place::Pair { a, b } => Some([a, b]),
        _ => None,
    }
}

fn effect(model: &Model, claim: &Claim, [a, b]: [usize; 2], measured: &Measured, level: f64) -> Option<f64> {
    let ends = if claim.way == Way::Send { [a, b] } else { [b, a] };
    match claim.against {
        Against::Others => {
            // A host that was slow for a while in the screening must not hide its slow pair: a host
            // that is not named excuses a pair by no more than a natural difference.
            let natural = |effect: f64| effect.max(-model.level.tolerance);
            let expected = level + natural(model.fit.send[ends[0]]) + natural(model.fit.receive[ends[1]]);
            Some(model.value([a, b], measured, ends[0])? - expected)
        }
        Against::Floor => model.above([a, b], model.raw([a, b], measured, ends[0])?),
    }
}
