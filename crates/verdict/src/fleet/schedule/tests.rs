//! Every schedule keeps the invariants of the registry.

use std::collections::BTreeSet;

use super::*;

fn grouped(count: usize, groups: usize) -> Hosts {
    let labels: Vec<String> = (0..count).map(|host| format!("leaf{}", host % groups)).collect();
    let labels: Vec<Option<&str>> = labels.iter().map(|label| Some(label.as_str())).collect();
    Hosts::new(count).grouped("group", &labels)
}

fn of(name: &str, hosts: &Hosts, amounts: &Amounts) -> Vec<Pairs> {
    Schedule::named(name).expect("a schedule").rounds(hosts, amounts, 7).collect()
}

fn covered(round: &Pairs) -> BTreeSet<usize> {
    round.iter().flatten().copied().collect()
}

#[test]
fn all_pairs_has_each_pair_once_in_disjoint_rounds() {
    for n in 2..40 {
        let hosts = Hosts::new(n);
        for name in ["all-pairs", "isolated"] {
            let rounds = of(name, &hosts, &Amounts::default());
            let pairs: Vec<[usize; 2]> =
                rounds.iter().flatten().map(|&[a, b]| [a.min(b), a.max(b)]).collect();
            let distinct: BTreeSet<[usize; 2]> = pairs.iter().copied().collect();
            assert_eq!(pairs.len(), n * (n - 1) / 2, "{name}, {n} hosts");
            assert_eq!(distinct.len(), pairs.len(), "{name}, {n} hosts");
            assert!(rounds.iter().all(|round| covered(round).len() == 2 * round.len()), "{name}, {n} hosts");
        }
    }
}

#[test]
fn any_prefix_covers_every_host() {
    let amounts = Amounts { rounds: 5, ..Amounts::default() };
    for n in 4..40 {
        for hosts in [Hosts::new(n), grouped(n, 3), grouped(n, 4)] {
            for name in ["all-pairs", "random", "bisection"] {
                let rounds = of(name, &hosts, &amounts);
                let least = if name == "bisection" { 2 } else { 1 };
                assert!(rounds.len() >= least, "{name}, {n} hosts");
                for round in &rounds {
                    assert_eq!(covered(round).len(), n - n % 2, "{name}, {n} hosts: {round:?}");
                    assert_eq!(covered(round).len(), 2 * round.len(), "{name}, {n} hosts: {round:?}");
                }
            }
        }
    }
}

#[test]
fn an_odd_fleet_rests_another_host_in_each_round() {
    let rounds = of("all-pairs", &Hosts::new(9), &Amounts::default());
    let resting: BTreeSet<usize> =
        rounds.iter().flat_map(|round| (0..9).filter(|host| !covered(round).contains(host))).collect();
    assert_eq!(resting.len(), 9);
}

#[test]
fn random_matchings_spread_evenly_over_pairs_of_groups() {
    let hosts = grouped(64, 8);
    let rounds = of("random", &hosts, &Amounts { rounds: 7, ..Amounts::default() });
    let mut counts = std::collections::BTreeMap::new();
    for [a, b] in rounds.into_iter().flatten() {
        let groups = [a % 8, b % 8];
        *counts.entry((groups[0].min(groups[1]), groups[0].max(groups[1]))).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 28, "every pair of groups, and none within a group: {counts:?}");
    assert!(counts.values().all(|&count| count == 8), "{counts:?}");
}

#[test]
fn bisection_alternates_across_and_within() {
    for hosts in [grouped(32, 4), Hosts::new(32)] {
        let group = |host: usize| if hosts.groupings.is_empty() { host / 16 } else { host % 4 };
        for (n, round) in
            of("bisection", &hosts, &Amounts { rounds: 3, ..Amounts::default() }).iter().enumerate()
        {
            let is_across = n % 2 == 0;
            assert!(round.iter().all(|&[a, b]| (group(a) != group(b)) == is_across), "round {n}: {round:?}");
        }
    }
}

#[test]
fn a_ring_has_each_edge_once() {
    for n in 2..20 {
        let rounds = of("ring", &Hosts::new(n), &Amounts::default());
        let edges: BTreeSet<[usize; 2]> = rounds.iter().flatten().copied().collect();
        let expected: BTreeSet<[usize; 2]> =
            (0..if n == 2 { 1 } else { n }).map(|host| [host, (host + 1) % n]).collect();
        assert_eq!(edges, expected, "{n} hosts");
        assert!(rounds.iter().all(|round| covered(round).len() == 2 * round.len()), "{n} hosts: {rounds:?}");
    }
}

#[test]
fn fans_share_their_root() {
    let amounts = Amounts { root: 2, ..Amounts::default() };
    assert_eq!(of("one-to-all", &Hosts::new(4), &amounts), [[[2, 0], [2, 1], [2, 3]]]);
    assert_eq!(of("all-to-one", &Hosts::new(4), &amounts), [[[0, 2], [1, 2], [3, 2]]]);
}

#[test]
fn a_limit_splits_rounds() {
    let all = of("all-pairs", &Hosts::new(10), &Amounts::default());
    let split = of("all-pairs", &Hosts::new(10), &Amounts { parallel: Some(2), ..Amounts::default() });
    assert!(split.iter().all(|round| round.len() <= 2));
    assert_eq!(split.concat(), all.concat());
}

#[test]
fn ten_thousand_hosts_are_matched_one_round_at_a_time() {
    let hosts = grouped(10_000, 250);
    let rounds = Schedule::named("random").expect("a schedule").rounds(&hosts, &Amounts::default(), 1);
    assert!(rounds.take(2).all(|round| covered(&round).len() == 10_000));
    assert_eq!(of("one-to-all", &hosts, &Amounts::default())[0].len(), 9_999);
}

#[test]
fn names_are_distinct_and_known() {
    let names: BTreeSet<&str> = SCHEDULES.iter().map(|schedule| schedule.name).collect();
    assert_eq!(names.len(), SCHEDULES.len());
    assert!(Schedule::named("pairs").is_none());
}
