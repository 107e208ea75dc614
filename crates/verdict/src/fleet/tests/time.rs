//! Examinations of fleets in a limited time (`--time`).

use super::*;

#[test]
fn time_cuts_rounds_and_too_little_is_refused() {
    let value = |asked: &Asked| Some(if asked.from == 4 { -0.3 } else { 0.0 });
    let cut = |count: usize, rounds: usize| {
        let mut world = World { rounds, ..World::new(value) };
        let Ok(examined) = examine(&Hosts::new(count), &options("all-pairs"), &mut world);
        assert!(examined.measurements.is_cut);
        assert_eq!(examined.measurements.rounds, rounds);
        examined
    };
    let reasons = |examined: &Examined| -> Vec<Reason> {
        examined.undecided.iter().map(|undecided| undecided.reason).collect()
    };
    // A third of a pass of 64 hosts is enough for hosts; so is one pass and a half of 8 hosts not.
    assert_eq!(named(&cut(64, 20)).into_iter().filter(|culprit| culprit.0 == 0).count(), 1);
    assert_eq!(reasons(&cut(64, 3)), [Reason::TooFewCells(3); 2]);
    assert_eq!(reasons(&cut(8, 10)), [Reason::OnePass; 2]);
    assert_eq!(named(&cut(8, 14)).into_iter().filter(|culprit| culprit.0 == 0).count(), 1);
}

#[test]
fn suspects_for_which_no_time_is_left_stay_undecided() {
    let value = |asked: &Asked| {
        let slow = if asked.from == 4 {
            -0.3
        } else if asked.from == 7 {
            -0.2
        } else {
            0.0
        };
        Some(if asked.quantity == 0 { slow } else { 0.0 })
    };
    let in_time = |rounds: usize, before_visit: usize| {
        let left = Some(TimeLeft { rounds, before_visit });
        let mut world = World { left, ..World::new(value) };
        let Ok(examined) = examine(&Hosts::new(12), &options("all-pairs"), &mut world);
        let open = examined.undecided.iter().map(|open| (open.place, open.reason)).collect::<Vec<_>>();
        (named(&examined), open, examined.measurements.confirmation)
    };
    let host = |host: usize| (0, Place::Host(host), true, false);
    let open = |host: usize| (Some(Place::Host(host)), Reason::NoTime);
    // Each suspect is measured 144 times. The pairs of good hosts that give the level serve both
    // suspects.
    let level = in_time(usize::MAX, 0).2 - 288;
    assert_eq!(in_time(level + 143, 0), (BTreeSet::new(), vec![open(4), open(7)], 0));
    // The worst first.
    assert_eq!(in_time(level + 144, 0), ([host(4)].into(), vec![open(7)], level + 144));
    assert_eq!(in_time(level + 288, 0), ([host(4), host(7)].into(), vec![], level + 288));
    // The time before a visit passes once for all suspects.
    assert_eq!(in_time(level + 144 + 29, 10).0, BTreeSet::new());
    assert_eq!(in_time(level + 144 + 30, 10).0, [host(4)].into());
    assert_eq!(in_time(level + 288 + 30, 10).0, [host(4), host(7)].into());
}

/// Examines a fleet with so much time after the schedule, and checks that it takes no more.
fn in_time(
    hosts: &Hosts,
    left: TimeLeft,
    value: impl FnMut(&Asked) -> Option<f64>,
) -> (Examined, Vec<Round>) {
    let mut world = World { left: Some(left), ..World::new(value) };
    let Ok(examined) = examine(hosts, &options("all-pairs"), &mut world);
    let of_schedule = |round: &Round| matches!(round.purpose, Purpose::Screening { .. });
    let further = world.asked.into_iter().skip_while(of_schedule).collect::<Vec<_>>();
    let used = further.len() + world.visits * left.before_visit;
    assert!(used <= left.rounds, "{used} of {left:?}");
    (examined, further)
}

/// A leaf costs more than its host, which is slow because the leaf is.
#[test]
fn members_of_a_group_for_which_no_time_is_left_are_not_named_in_its_place() {
    let leaf = |host: usize| host / 4;
    let hosts = leaves(Hosts::new(16), leaf);
    let value = |asked: &Asked| {
        let is_slow = leaf(asked.from) != leaf(asked.to) && [leaf(asked.from), leaf(asked.to)].contains(&1);
        Some(if is_slow && asked.quantity == 0 { -0.3 } else { 0.0 })
    };
    let group = (0, Place::Group { grouping: 0, group: 1 }, true, true);
    let mut enough = Vec::new();
    for rounds in (0..1000).step_by(100) {
        let (examined, _) = in_time(&hosts, TimeLeft { rounds, before_visit: 10 }, value);
        let named = named(&examined);
        let is_open = examined.undecided.iter().any(|open| open.reason == Reason::NoTime);
        assert!(named == [group].into() || (named.is_empty() && is_open), "{rounds}: {named:?}");
        enough.push(!named.is_empty());
    }
    assert!(!enough[0] && enough[9] && enough.is_sorted(), "{enough:?}");
}

/// Of a large fleet, several pairs are measured at the same time.
#[test]
fn no_more_is_measured_than_time_is_left_for() {
    let hosts = leaves(Hosts::new(128), |host| host / 4);
    let [host, pair] = [(0, Place::Host(9), true, false), (0, Place::Pair { a: 30, b: 77 }, true, true)];
    let value = |asked: &Asked| {
        let is_pair = [asked.from, asked.to] == [30, 77] || [asked.from, asked.to] == [77, 30];
        let slow = if asked.from == 9 { -0.2 } else { 0.0 } + if is_pair { -0.5 } else { 0.0 };
        Some(if asked.quantity == 0 { slow } else { 0.0 })
    };
    let mut found = BTreeSet::new();
    for rounds in (0..600).step_by(60) {
        let (examined, _) = in_time(&hosts, TimeLeft { rounds, before_visit: 20 }, value);
        found.insert(named(&examined));
    }
    // The host comes first, however slow the pair is.
    assert_eq!(found, [BTreeSet::new(), [host].into(), [host, pair].into()].into());
}

/// Pairs that noise has made suspect, and that a second look has not cleared, are many and cost
/// much in isolation.
#[test]
fn where_time_is_short_suspect_pairs_are_looked_at_more_often() {
    let hosts = Hosts::new(32);
    let noisy = |asked: &Asked| {
        // A look takes 9 rounds.
        let is_looked_at_later = asked.number > 93 + 9;
        let is_confirmed = matches!(asked.round.purpose, Purpose::Confirmation { .. });
        let is_noisy = asked.from.is_multiple_of(8) && asked.to == asked.from + 1;
        Some(if is_noisy && !is_looked_at_later && !is_confirmed { -0.4 } else { 0.0 })
    };
    let looks = |further: &[Round]| {
        further.iter().filter(|round| matches!(round.purpose, Purpose::Again { repetition: 2 })).count()
    };
    let (enough, once) = in_time(&hosts, TimeLeft { rounds: 10_000, before_visit: 10 }, noisy);
    assert!(enough.measurements.confirmation > 0 && looks(&once) == 1, "{:?}", enough.measurements);
    let (short, often) = in_time(&hosts, TimeLeft { rounds: 140, before_visit: 10 }, noisy);
    assert_eq!((short.verdict, short.measurements.confirmation), (Verdict::Healthy, 0));
    assert_eq!(looks(&often), 2);
}
