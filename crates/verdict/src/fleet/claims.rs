//! Who is suspect after the screening.

use std::collections::BTreeMap;

use super::cells::Cell;
use super::claim::{Claim, claim, pair_claim, ways};
use super::examined::{Against, Place, Way};
use super::floors;
use super::hosts::{Grouping, Hosts};
use super::model::Model;
use super::robust::median;

/// Suspects are what lies beyond this share of a threshold: the confirmation decides.
const SUSPECT: f64 = 0.75;
/// Fleets of fewer hosts than this have few cells for the effect of a host, which are easily
/// disturbed. With [`SUSPECT`], 3.7 % of the slow hosts of four were not suspect while another host
/// flipped.
const FEW_HOSTS: usize = 8;
/// This share of a threshold takes the place of [`SUSPECT`] in these fleets.
const SUSPECT_OF_FEW: f64 = 0.5;
/// A group is suspect if this share of its members is, and the paths between two groups if this
/// share of their cells is.
const SHARE_OF_GROUP: f64 = 0.7;
/// The least cells of the paths between two groups.
const CELLS_BETWEEN: usize = 4;

/// All suspects of one quantity: fleet, groups, paths between groups, hosts, then pairs.
pub(super) fn of(hosts: &Hosts, model: &Model) -> Vec<Claim> {
    let mut claims = host_claims(model);
    claims.extend(floors::of(model));
    let groups = group_claims(hosts, model, &claims);
    let pairs = pair_claims(model);
    let between = between_claims(hosts, model, &pairs);
    claims.extend(groups);
    claims.extend(between);
    claims.extend(pairs);
    claims
}

/// The share of a threshold beyond which something is suspect.
pub(super) fn suspect(model: &Model) -> f64 {
    if model.count < FEW_HOSTS { SUSPECT_OF_FEW } else { SUSPECT }
}

fn host_claims(model: &Model) -> Vec<Claim> {
    let mut claims = Vec::new();
    for &way in ways(model.directed) {
        for host in 0..model.count {
            let peers = model.cells_of(host, way);
            let Some(bound) = model.host_bound(host, way) else { continue };
            let screened = model.effect(host, way);
            if screened < suspect(model) * bound {
                claims.push(claim(model, Place::Host(host), way, screened, bound, peers));
            }
        }
    }
    claims
}

/// Groups of which enough members are suspect in one way: as hosts, or beside the paths that do not
/// touch the group.
fn group_claims(hosts: &Hosts, model: &Model, claims: &[Claim]) -> Vec<Claim> {
    let mut found = Vec::new();
    for (grouping, groups) in hosts.groupings.iter().enumerate() {
        let beside = beside_others(model, groups);
        let claims = claims.iter().chain(&beside);
        let mut members: BTreeMap<(usize, Way, Against), Vec<&Claim>> = BTreeMap::new();
        for claim in claims {
            let Place::Host(host) = claim.place else { continue };
            let Some(group) = groups.of[host] else { continue };
            let own = members.entry((group, claim.way, claim.against)).or_default();
            match own.iter_mut().find(|other| other.place == claim.place) {
                Some(other) if claim.screened < other.screened => *other = claim,
                Some(_) => {}
                None => own.push(claim),
            }
        }
        for ((group, ..), suspects) in members {
            let size = groups.members(group).len();
            if !is_one_of_several(size, hosts.count) || (suspects.len() as f64) < SHARE_OF_GROUP * size as f64
            {
                continue;
            }
            let middle = median(suspects.iter().map(|claim| claim.screened)).unwrap_or(0.0);
            let peers = suspects.iter().map(|claim| claim.peers).sum();
            found.push(Claim {
                place: Place::Group { grouping, group },
                screened: middle,
                peers,
                ..*suspects[0]
            });
        }
    }
    found
}

/// Whether a group of so many hosts can be told from the others.
fn is_one_of_several(size: usize, count: usize) -> bool {
    size >= 2 && 2 * size < count
}

/// Hosts that are slow to members of other groups, beside the paths of the same distance between
/// members of other groups. In the model, a slow group moves the effect of its paths' distance: of
/// three groups, it touches most paths between groups.
fn beside_others(model: &Model, groups: &Grouping) -> Vec<Claim> {
    let distances = model.fit.distances.count();
    // Of one distance, all hosts are in one group.
    if distances < 2 {
        return Vec::new();
    }
    let mut claims = Vec::new();
    let several = |group: &usize| is_one_of_several(groups.members(*group).len(), model.count);
    for group in (0..groups.labels.len()).filter(several) {
        let is_own = |host: u32| groups.of[host as usize] == Some(group);
        let distance = |cell: &Cell| model.fit.distances.between(cell.from as usize, cell.to as usize);
        let cells = &model.table.fitted;
        let mut others: Vec<Vec<f64>> = vec![Vec::new(); distances];
        for cell in cells.iter().filter(|cell| !is_own(cell.from) && !is_own(cell.to)) {
            others[distance(cell)].push(cell.value);
        }
        let usual =
            others.into_iter().map(|values| (values.len() >= CELLS_BETWEEN).then(|| median(values))?);
        let usual: Vec<Option<f64>> = usual.collect();
        for &way in ways(model.directed) {
            let mut effects: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
            for cell in cells {
                let [own, other] = if way == Way::Send { [cell.from, cell.to] } else { [cell.to, cell.from] };
                if is_own(own)
                    && !is_own(other)
                    && let Some(usual) = usual[distance(cell)]
                {
                    effects.entry(own as usize).or_default().push(cell.value - usual);
                }
            }
            for (host, effects) in effects {
                let peers = effects.len();
                let (Some(bound), Some(screened)) = (model.host_bound(host, way), median(effects)) else {
                    continue;
                };
                if screened < suspect(model) * bound {
                    claims.push(claim(model, Place::Host(host), way, screened, bound, peers));
                }
            }
        }
    }
    claims
}

fn pair_claims(model: &Model) -> Vec<Claim> {
    let Some(bound) = model.pair_bound() else { return Vec::new() };
    let cells = model.table.fitted.iter().zip(&model.fit.residuals);
    let suspect = cells.filter(|(_, residual)| **residual < suspect(model) * bound);
    suspect.filter_map(|(cell, &residual)| pair_claim(model, cell, residual, bound)).collect()
}

/// Pairs of groups most of whose cells are suspect in one way.
fn between_claims(hosts: &Hosts, model: &Model, pairs: &[Claim]) -> Vec<Claim> {
    let mut found = Vec::new();
    if pairs.is_empty() {
        return found;
    }
    for (grouping, groups) in hosts.groupings.iter().enumerate() {
        let of = |from: usize, to: usize| groups.of[from].zip(groups.of[to]).filter(|(a, b)| a != b);
        let mut totals: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for cell in &model.table.fitted {
            if let Some(groups) = of(cell.from as usize, cell.to as usize) {
                *totals.entry(groups).or_default() += 1;
            }
        }
        let mut suspects: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for claim in pairs.iter().filter(|claim| claim.against == Against::Others) {
            let Place::Pair { a, b } = claim.place else { continue };
            let ends = if claim.way == Way::Send { (a, b) } else { (b, a) };
            if let Some(groups) = of(ends.0, ends.1) {
                suspects.entry(groups).or_default().push(claim.screened);
                if !model.directed {
                    suspects.entry((groups.1, groups.0)).or_default().push(claim.screened);
                }
            }
        }
        for ((from, to), effects) in suspects {
            let total = totals.get(&(from, to)).copied().unwrap_or(0);
            let is_enough = total >= CELLS_BETWEEN && effects.len() as f64 >= SHARE_OF_GROUP * total as f64;
            if !is_enough || (!model.directed && from > to) {
                continue;
            }
            let place = Place::Between { grouping, a: from.min(to), b: from.max(to) };
            let way = if from < to { Way::Send } else { Way::Receive };
            let middle = median(effects).unwrap_or(0.0);
            let bound = model.pair_bound().unwrap_or(0.0);
            found.push(claim(model, place, way, middle, bound, total));
        }
    }
    found
}
