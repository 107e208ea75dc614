//! Random perfect matchings.

use measure::random::Random;

use super::amounts::{Amounts, Pairs, Rounds};
use super::circle;
use crate::fleet::hosts::{Grouping, Hosts};

/// Random partners in each round. With groups, hosts are dealt out so that every pair of groups
/// gets the same number of pairs: the k-th hosts of all groups form a tournament of groups, and
/// each k plays another round of it.
pub(super) fn random<'a>(hosts: &'a Hosts, amounts: &Amounts, seed: u64) -> Rounds<'a> {
    let mut random = Random(seed);
    let mut played = 0;
    Box::new((0..amounts.rounds).map(move |_| match hosts.several_groups() {
        Some(grouping) => across(hosts.count, grouping, &mut played, &mut random),
        None => matched(&shuffled((0..hosts.count).collect(), &mut random)),
    }))
}

/// Rounds across groups and rounds within groups by turns. Without groups, the two halves of the
/// list are the groups.
pub(super) fn bisection<'a>(hosts: &'a Hosts, amounts: &Amounts, seed: u64) -> Rounds<'a> {
    let grouping = hosts.bisected();
    let mut random = Random(seed);
    let mut played = 0;
    Box::new((0..2 * amounts.rounds).map(move |round| match round.is_multiple_of(2) {
        true => across(hosts.count, &grouping, &mut played, &mut random),
        false => within(hosts.count, &grouping, &mut random),
    }))
}

/// A matching in which partners are of different groups, as far as the groups' sizes allow.
/// `played` counts the tournament's rounds over all matchings.
fn across(count: usize, grouping: &Grouping, played: &mut usize, random: &mut Random) -> Pairs {
    let groups: Vec<Vec<usize>> =
        groups(count, grouping).into_iter().map(|group| shuffled(group, random)).collect();
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let mut pairs = Pairs::new();
    let mut left = Vec::new();
    for k in 0..longest {
        let row: Vec<usize> = groups.iter().filter_map(|group| group.get(k).copied()).collect();
        let round = *played % (row.len().next_multiple_of(2) - 1);
        *played += 1;
        left.extend(circle::resting(row.len(), round).map(|place| row[place]));
        pairs.extend(circle::pairs(row.len(), round).into_iter().map(|[a, b]| [row[a], row[b]]));
    }
    pairs.extend(matched(&apart(left, grouping)));
    pairs
}

/// A matching in which partners are of one group. A host that an odd group leaves over gets a
/// partner from another group, so that every round covers every host.
fn within(count: usize, grouping: &Grouping, random: &mut Random) -> Pairs {
    let mut left = Vec::new();
    let mut pairs = Pairs::new();
    for group in groups(count, grouping) {
        let group = shuffled(group, random);
        pairs.extend(matched(&group));
        left.extend(group.chunks_exact(2).remainder());
    }
    pairs.extend(matched(&left));
    pairs
}

/// Orders hosts so that neighbours are of different groups where possible: the second half of the
/// hosts, sorted by group, goes between those of the first half.
fn apart(mut hosts: Vec<usize>, grouping: &Grouping) -> Vec<usize> {
    hosts.sort_by_key(|&host| grouping.of[host]);
    let (first, second) = hosts.split_at(hosts.len() / 2);
    let rest = second.get(first.len()..).unwrap_or_default();
    first.iter().zip(second).flat_map(|(&a, &b)| [a, b]).chain(rest.iter().copied()).collect()
}

/// The members of each group; the last one has those without a group.
fn groups(count: usize, grouping: &Grouping) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); grouping.labels.len() + 1];
    for host in 0..count {
        groups[grouping.of[host].unwrap_or(grouping.labels.len())].push(host);
    }
    groups
}

/// Neighbours become partners; the last one of an odd number rests.
fn matched(hosts: &[usize]) -> Pairs {
    hosts.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
}

/// In random order (Fisher and Yates).
fn shuffled(mut hosts: Vec<usize>, random: &mut Random) -> Vec<usize> {
    for last in (1..hosts.len()).rev() {
        let other = (random.fraction() * (last + 1) as f64) as usize;
        hosts.swap(last, other.min(last));
    }
    hosts
}
