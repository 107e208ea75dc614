//! The procedure, from the first round to the verdict.

use std::collections::BTreeSet;

use super::again;
use super::budget::Budget;
use super::cells::Cell;
use super::claim::{Claim, ways};
use super::claims;
use super::confirm::{Case, Outcome};
use super::examined::{
    Against, Cleared, Culprit, Examined, Measurements, Place, Reason, Undecided, Verdict, Way, Why,
};
use super::hosts::Hosts;
use super::load::{self, Loaded};
use super::model::Model;
use super::options::Options;
use super::probe::{AnyProbe, Stopped};
use super::screening::{Asked, Screening};

/// The most suspect pairs that are looked at again, as a multiple of the number of hosts.
const PAIRS_PER_HOST: usize = 4;

/// What a fleet of one network showed before suspects are measured again.
struct Screened {
    screening: Screening,
    models: Vec<Model>,
    /// What is left of the time.
    budget: Budget,
    counts: Measurements,
    /// The most pairs that are measured again.
    most: usize,
}

impl Screened {
    fn of(hosts: &Hosts, options: &Options, probe: &mut AnyProbe<'_>) -> Result<Self, Stopped> {
        let mut counts = Measurements::default();
        let mut screening = Screening::run(hosts, options, probe, &mut counts)?;
        counts.passes = screening.passes;
        let mut budget = Budget(probe.time_left());
        let mut lost = screening.lost_pairs();
        let most = PAIRS_PER_HOST * hosts.count;
        lost.truncate(most);
        let at_once = again::at_once(hosts.count);
        if !lost.is_empty() && budget.take(lost.len().div_ceil(at_once)) {
            screening.again(&lost, options, at_once, probe, &mut counts)?;
        }
        let models = 0..options.quantities.len();
        let models = models.map(|index| Model::of(index, hosts, options, &screening)).collect();
        Ok(Self { screening, models, budget, counts, most })
    }
}

/// Measures what [`lasting()`](super::lasting()) returns of a fleet of one network.
pub(super) fn lasting(
    hosts: &Hosts,
    options: &Options,
    probe: &mut AnyProbe<'_>,
) -> Result<(Vec<Vec<Cell>>, usize), Stopped> {
    let screened = Screened::of(hosts, options, probe)?;
    Ok((screened.models.iter().map(Model::lasting).collect(), screened.counts.passes))
}

/// Examines a fleet of one network ([`examine()`](super::examine())).
pub(super) fn examine(
    hosts: &Hosts,
    options: &Options,
    probe: &mut AnyProbe<'_>,
) -> Result<Examined, Stopped> {
    let Screened { screening, mut models, mut budget, mut counts, most } =
        Screened::of(hosts, options, probe)?;
    let mut undecided = Vec::new();
    let mut claims = Vec::new();
    let has_floor = models.iter().any(|model| model.has_floor());
    for model in &models {
        undecided.extend(unjudged(model, has_floor));
        undecided.extend(model.behind_baseline().map(|change| Undecided {
            quantity: Some(model.quantity),
            place: None,
            reason: Reason::SlowerThanBaseline(change),
        }));
        claims.extend(claims::of(hosts, model));
    }
    let unknown = unmeasured(&models, &screening.lost(), &undecided);
    undecided.extend(unknown);
    let mut too_many = Vec::new();
    let claims = limited(claims, most, &mut models, &mut too_many);
    undecided.extend(too_many.iter().filter(|claim| claim.against == Against::Floor).map(|claim| {
        Undecided {
            quantity: Some(claim.quantity),
            place: Some(claim.place),
            reason: Reason::TooManySuspects,
        }
    }));
    let case = Case { hosts, models: &models };
    let mut outcome = case.settle(claims, probe, &mut counts, &mut budget)?;
    outcome.cleared.extend(too_many.into_iter().map(|claim| (claim, Why::TooMany)));
    undecided.extend(two_of_four(&models, &mut outcome));
    let Loaded { congestion, unknown } =
        load::look(hosts, options, &models, &outcome.cleared, probe, &mut counts, &mut budget)?;
    let not_measured = outcome.cleared.iter().filter_map(|(claim, why)| match why {
        Why::NotMeasured => Some((*claim, Reason::NotConfirmable)),
        Why::NoTime => Some((*claim, Reason::NoTime)),
        _ => None,
    });
    undecided.extend(not_measured.chain(unknown).map(|(claim, reason)| Undecided {
        quantity: Some(claim.quantity),
        place: Some(claim.place),
        reason,
    }));
    let Outcome { mut culprits, cleared } = outcome;
    culprits.sort_by(|a, b| b.deficit().total_cmp(&a.deficit()));
    let is_missed = congestion.iter().any(|one| one.against == Against::Floor);
    let verdict = match (culprits.is_empty() && !is_missed, undecided.is_empty()) {
        (false, _) => Verdict::Culprits,
        (true, false) => Verdict::Undecided,
        (true, true) => Verdict::Healthy,
    };
    let names = options.quantities.iter().map(|quantity| quantity.name.as_str());
    Ok(Examined {
        verdict,
        culprits,
        congestion,
        cleared: cleared.into_iter().map(|(claim, why)| shown(claim, why)).collect(),
        undecided,
        quantities: models.into_iter().zip(names).map(|(model, name)| model.judged(name)).collect(),
        measurements: counts,
    })
}

/// Why a quantity, or some of its hosts, cannot be judged. Where an expectation is stated, it is
/// the question: a comparison with the others is then made if the schedule and the number of hosts
/// allow it.
fn unjudged(model: &Model, has_floor: bool) -> Vec<Undecided> {
    let of = |place, reason| Undecided { quantity: Some(model.quantity), place, reason };
    let is_optional = |reason| {
        let of_comparison = matches!(
            reason,
            Reason::Schedule
                | Reason::TooFewHosts
                | Reason::OnePass
                | Reason::TooFewCells(_)
                | Reason::TooNoisy
        );
        has_floor && of_comparison
    };
    if let Some(reason) = model.scales.err().filter(|reason| !is_optional(*reason)) {
        return vec![of(None, reason)];
    }
    let is_unknown = |host: &usize| match model.scales {
        Ok(_) => ways(model.directed).iter().any(|&way| model.host_bound(*host, way).is_none()),
        Err(_) => model.cells_of(*host, Way::Send) + model.cells_of(*host, Way::Receive) == 0,
    };
    let hosts = (0..model.count).filter(is_unknown);
    hosts.map(|host| of(Some(Place::Host(host)), Reason::HostWithoutCells)).collect()
}

/// The pairs of hosts that can be judged, of which a quantity was asked for and never measured:
/// nothing is known of these paths.
fn unmeasured(models: &[Model], lost: &[Asked], undecided: &[Undecided]) -> Vec<Undecided> {
    let is_open = |quantity: usize, host: usize| {
        let model = &models[quantity];
        let is_known = model.cells_of(host, Way::Send) + model.cells_of(host, Way::Receive) > 0;
        let place = Some(Place::Host(host));
        let is_listed = undecided.iter().any(|one| (one.quantity, one.place) == (Some(quantity), place));
        is_known && !is_listed
    };
    let of_both = lost.iter().filter(|asked| asked.pair.iter().all(|&host| is_open(asked.quantity, host)));
    // A pair may be lost in both directions.
    let places: BTreeSet<(usize, Place)> = of_both
        .map(|&Asked { quantity, pair: [a, b], .. }| (quantity, Place::Pair { a: a.min(b), b: a.max(b) }))
        .collect();
    let unknown = places.into_iter().map(|(quantity, place)| Undecided {
        quantity: Some(quantity),
        place: Some(place),
        reason: Reason::PairWithoutCells,
    });
    unknown.collect()
}

/// All claims, but only the worst pairs. A pair that is left out was not measured again, so only
/// deficits larger than its own could have been seen: the threshold of pairs becomes the one for
/// which it would not have been suspect.
fn limited(claims: Vec<Claim>, most: usize, models: &mut [Model], too_many: &mut Vec<Claim>) -> Vec<Claim> {
    let (mut pairs, mut others): (Vec<Claim>, Vec<Claim>) = claims.into_iter().partition(Claim::is_pair);
    pairs.sort_by(|a, b| b.severity().total_cmp(&a.severity()));
    too_many.extend(pairs.split_off(most.min(pairs.len())));
    for left in too_many.iter().filter(|claim| claim.against == Against::Others) {
        let share = claims::suspect(&models[left.quantity]);
        if let Ok(scales) = &mut models[left.quantity].scales {
            scales.raise_pair(-left.screened / share);
        }
    }
    for kept in pairs.iter_mut().filter(|claim| claim.against == Against::Others) {
        kept.bound = models[kept.quantity].pair_bound().unwrap_or(kept.bound);
    }
    others.extend(pairs);
    others
}

/// Two culprits of four hosts cannot be separated: nothing of that quantity is named.
fn two_of_four(models: &[Model], outcome: &mut Outcome) -> Vec<Undecided> {
    let mut undecided = Vec::new();
    for model in models {
        let measured = (0..model.count).filter(|&host| model.cells_of(host, Way::Send) > 0).count();
        let is_own =
            |culprit: &Culprit| culprit.quantity == model.quantity && culprit.against == Against::Others;
        let places: BTreeSet<Place> =
            outcome.culprits.iter().filter(|culprit| is_own(culprit)).map(|culprit| culprit.place).collect();
        if measured <= 4 && places.len() >= 2 {
            outcome.culprits.retain(|culprit| !is_own(culprit));
            let quantity = Some(model.quantity);
            undecided.extend(places.into_iter().map(|place| Undecided {
                quantity,
                place: Some(place),
                reason: Reason::TwoOfFour,
            }));
        }
    }
    undecided
}

fn shown(claim: Claim, why: Why) -> Cleared {
    let Claim { quantity, place, way, against, screened, .. } = claim;
    Cleared { quantity, place, way, against, screened, why }
}
