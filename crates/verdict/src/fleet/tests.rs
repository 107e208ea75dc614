//! Whole examinations of small worlds.

mod baseline;
mod floors;
mod rails;
mod time;

use std::collections::BTreeSet;
use std::convert::Infallible;

use measure::random::Random;

use super::*;

/// A world whose values are a function of the pair, with normal noise of 0.3 %.
struct World<F> {
    value: F,
    random: Random,
    asked: Vec<Round>,
    visits: usize,
    /// The rounds for which time is left.
    rounds: usize,
    /// The rounds beside the schedule for which time is left.
    left: Option<TimeLeft>,
}

/// What a value is asked for: from, to, the number of the quantity, the round, its number.
struct Asked<'a> {
    from: usize,
    to: usize,
    quantity: usize,
    round: &'a Round,
    number: usize,
}

const QUANTITIES: usize = 2;

impl<F: FnMut(&Asked) -> Option<f64>> World<F> {
    fn new(value: F) -> Self {
        Self { value, random: Random(11), asked: Vec::new(), visits: 0, rounds: usize::MAX, left: None }
    }
}

impl<F: FnMut(&Asked) -> Option<f64>> Probe for World<F> {
    type Error = Infallible;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Infallible> {
        let number = self.asked.len();
        self.asked.push(round.clone());
        let mut value = |from: usize, to: usize, quantity: usize| {
            let noise = 0.003 * self.random.normal();
            (self.value)(&Asked { from, to, quantity, round, number }).map(|value| value + noise)
        };
        let mut reading =
            |a, b, quantity| Reading { there: value(a, b, quantity), back: value(b, a, quantity) };
        let measured = round.pairs.iter().map(|&[a, b]| (0..QUANTITIES).map(|q| reading(a, b, q)).collect());
        Ok(measured.collect())
    }

    fn visit(&mut self, _: &[usize]) -> Result<(), Infallible> {
        self.visits += 1;
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        self.asked.len() < self.rounds
    }

    fn time_left(&mut self) -> Option<TimeLeft> {
        self.left
    }
}

fn options(schedule: &str) -> Options {
    let schedule = Schedule::named(schedule).expect("a schedule");
    Options::new(vec![Quantity::directed("throughput"), Quantity::symmetric("latency")], schedule)
}

fn run(hosts: &Hosts, options: &Options, value: impl FnMut(&Asked) -> Option<f64>) -> Examined {
    let Ok(examined) = examine(hosts, options, &mut World::new(value));
    examined
}

/// Each culprit: quantity, place, slow sending, slow receiving.
fn named(examined: &Examined) -> BTreeSet<(usize, Place, bool, bool)> {
    let of = |culprit: &Culprit| {
        (culprit.quantity, culprit.place, culprit.is_slow(Way::Send), culprit.is_slow(Way::Receive))
    };
    examined.culprits.iter().map(of).collect()
}

/// Hosts with a leaf switch for each, as groups.
fn leaves(hosts: Hosts, leaf: impl Fn(usize) -> usize) -> Hosts {
    let labels: Vec<String> = (0..hosts.count).map(|host| format!("leaf{}", leaf(host))).collect();
    let labels: Vec<Option<&str>> = labels.iter().map(|label| Some(label.as_str())).collect();
    hosts.grouped("group", &labels)
}

fn touches(asked: &Asked, host: usize) -> bool {
    asked.from == host || asked.to == host
}

#[test]
fn a_healthy_fleet_has_no_culprit_and_no_visit() {
    let mut world = World::new(|_| Some(1.0));
    let Ok(examined) = examine(&Hosts::new(10), &options("all-pairs"), &mut world);
    assert_eq!(examined.verdict, Verdict::Healthy);
    assert_eq!(examined.measurements.rounds, 27);
    assert_eq!(examined.measurements.screening, 3 * 45);
    assert_eq!(world.visits, 0);
    let cells: Vec<usize> = examined.quantities.iter().map(|judged| judged.cells.len()).collect();
    assert_eq!(cells, [90, 45], "a quantity without direction has one cell for each pair");
    let thresholds = examined.quantities[0].thresholds.expect("thresholds");
    assert!(thresholds.host_deficit() >= 0.05 && thresholds.host_deficit() < 0.08, "{thresholds:?}");
}

#[test]
fn each_quantity_names_its_own_culprit_and_direction() {
    let examined = run(&Hosts::new(12), &options("all-pairs"), |asked| match asked.quantity {
        0 => Some(if asked.from == 4 { -0.3 } else { 0.0 }),
        _ => Some(if [asked.from, asked.to] == [2, 7] || [asked.from, asked.to] == [7, 2] {
            -0.4
        } else {
            0.0
        }),
    });
    let expected = [(0, Place::Host(4), true, false), (1, Place::Pair { a: 2, b: 7 }, true, false)];
    assert_eq!(named(&examined), expected.into());
    let host = examined.culprits.iter().find(|culprit| culprit.quantity == 0).expect("the host");
    assert!((host.deficit() - deficit(-0.3)).abs() < 0.02, "{}", host.deficit());
    assert_eq!(
        host.send.as_ref().map(|evidence| (evidence.peers, evidence.partners, evidence.visits.len())),
        Some((11, 8, 3))
    );
    assert!(host.receive.as_ref().is_some_and(|evidence| !evidence.is_named), "{:?}", host.receive);
}

#[test]
fn a_group_is_named_before_its_members_and_the_paths_between_two_before_their_pairs() {
    let hosts = leaves(Hosts::new(24), |host| host / 4);
    let group = run(&hosts, &options("all-pairs"), |asked| {
        let leaves = [asked.from / 4, asked.to / 4];
        Some(if asked.quantity == 0 && leaves.contains(&2) && leaves[0] != leaves[1] { -0.2 } else { 0.0 })
    });
    assert_eq!(named(&group), [(0, Place::Group { grouping: 0, group: 2 }, true, true)].into());
    let between = run(&hosts, &options("all-pairs"), |asked| {
        Some(if asked.quantity == 0 && [asked.from / 4, asked.to / 4] == [5, 1] { -0.2 } else { 0.0 })
    });
    assert_eq!(named(&between), [(0, Place::Between { grouping: 0, a: 1, b: 5 }, false, true)].into());
}

/// Three quarters of the hosts are on one leaf switch, and paths between the two are 30 % slower.
#[test]
fn a_distance_is_no_culprit_and_a_slow_host_behind_it_is_one() {
    let labels: Vec<Option<&str>> =
        (0..32).map(|host| Some(if host < 24 { "large" } else { "small" })).collect();
    let hosts = Hosts::new(32).grouped("group", &labels);
    let across = |asked: &Asked| if (asked.from < 24) == (asked.to < 24) { 0.0 } else { -0.35 };
    let healthy = run(&hosts, &options("all-pairs"), |asked| Some(across(asked)));
    assert_eq!(healthy.verdict, Verdict::Healthy, "{:?}", healthy.culprits);
    // Nothing is suspect: nothing is measured twice.
    assert_eq!(healthy.measurements.confirmation + healthy.measurements.again, 0);
    let slow = run(&hosts, &options("all-pairs"), |asked| {
        let own = if asked.quantity == 0 && asked.from == 28 { -0.2 } else { 0.0 };
        // In isolation, the distance is another one.
        let is_loaded = asked.round.pairs.len() > 8;
        Some(own + across(asked) * if is_loaded { 1.0 } else { 0.3 })
    });
    assert_eq!(named(&slow), [(0, Place::Host(28), true, false)].into());
    let pair = run(&hosts, &options("all-pairs"), |asked| {
        let own = if asked.quantity == 0 && [asked.from, asked.to] == [28, 3] { -0.2 } else { 0.0 };
        let is_loaded = asked.round.pairs.len() > 8;
        Some(own + across(asked) * if is_loaded { 1.0 } else { 0.3 })
    });
    assert_eq!(named(&pair), [(0, Place::Pair { a: 3, b: 28 }, false, true)].into());
}

/// A clock of 5 ns: the latencies of one host are 100 ns and the others 95 ns, which is 5.1 %.
#[test]
fn one_step_of_the_clock_is_no_deficit() {
    let stepped = |slow: f64| {
        let mut options = options("all-pairs");
        options.quantities.remove(0);
        let mut world = Stepped(slow);
        let Ok(examined) = examine(&Hosts::new(12), &options, &mut world);
        (named(&examined), examined.quantities[0].thresholds.expect("thresholds").host_deficit())
    };
    let (names, deficit) = stepped(100.0);
    assert_eq!(names, BTreeSet::new());
    assert!(deficit > 0.095 && deficit < 0.1, "{deficit}");
    assert_eq!(stepped(110.0).0, [(0, Place::Host(3), true, false)].into());
}

/// Host 3 has this latency. One pair in ten of the others is a step slower.
struct Stepped(f64);

impl Probe for Stepped {
    type Error = Infallible;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Infallible> {
        let latency = |&[a, b]: &[usize; 2]| {
            let other: f64 = if (a * b) % 10 == 1 { 100.0 } else { 95.0 };
            vec![Reading::symmetric(-(if a == 3 || b == 3 { self.0 } else { other }).ln())]
        };
        Ok(round.pairs.iter().map(latency).collect())
    }

    fn visit(&mut self, _: &[usize]) -> Result<(), Infallible> {
        Ok(())
    }
}

#[test]
fn what_is_slow_under_load_only_is_congestion() {
    let examined = run(&Hosts::new(16), &options("all-pairs"), |asked| {
        let is_slow = asked.quantity == 0 && [asked.from, asked.to] == [3, 9] && asked.round.pairs.len() > 2;
        Some(if is_slow { -0.3 } else { 0.0 })
    });
    assert_eq!(named(&examined), BTreeSet::new());
    assert_eq!(examined.verdict, Verdict::Healthy);
    let congestion: Vec<(Place, Way)> =
        examined.congestion.iter().map(|found| (found.place, found.way)).collect();
    assert_eq!(congestion, [(Place::Pair { a: 3, b: 9 }, Way::Send)]);
}

#[test]
fn paths_between_groups_that_are_slow_under_load_only_are_congestion() {
    let hosts = leaves(Hosts::new(24), |host| host / 4);
    let is_across = |[from, to]: [usize; 2]| [from / 4, to / 4] == [1, 5];
    let examined = run(&hosts, &options("all-pairs"), |asked| {
        let is_slow = asked.quantity == 0 && is_across([asked.from, asked.to]) && asked.round.pairs.len() > 2;
        Some(if is_slow { -0.4 } else { 0.0 })
    });
    assert_eq!(named(&examined), BTreeSet::new());
    let congestion: Vec<(Place, Way)> =
        examined.congestion.iter().map(|found| (found.place, found.way)).collect();
    assert_eq!(
        congestion,
        [(Place::Between { grouping: 0, a: 1, b: 5 }, Way::Send)],
        "{:?}",
        examined.cleared
    );
}

#[test]
fn a_pair_that_was_slow_once_is_neither_culprit_nor_congestion() {
    let examined = run(&Hosts::new(16), &options("all-pairs"), |asked| {
        let is_screening = matches!(asked.round.purpose, Purpose::Screening { .. });
        Some(if is_screening && [asked.from, asked.to] == [3, 9] { -0.3 } else { 0.0 })
    });
    assert_eq!((examined.verdict, examined.congestion.len()), (Verdict::Healthy, 0));
    assert!(
        examined.cleared.iter().any(|cleared| matches!(cleared.why, Why::Again(_))),
        "{:?}",
        examined.cleared
    );
}

#[test]
fn a_host_that_dies_loses_its_own_pairs_alone() {
    for rounds in [1, 5, 14, 30] {
        let examined = run(&Hosts::new(12), &options("all-pairs"), |asked| {
            let is_dead = touches(asked, 5) && asked.number >= rounds;
            let value = if asked.quantity == 0 && asked.to == 8 { -0.3 } else { 0.0 };
            (!is_dead).then_some(value)
        });
        assert_eq!(named(&examined), [(0, Place::Host(8), false, true)].into(), "dead from round {rounds}");
        // One pair of each later round, and those of a confirmation with it.
        assert!(examined.measurements.missing >= 33 - rounds, "{:?}", examined.measurements);
        let unknown = examined.undecided.iter().filter(|undecided| undecided.place == Some(Place::Host(5)));
        // With less than half of its cells it cannot be judged, in either quantity.
        assert_eq!(unknown.count(), if rounds < 6 { 2 } else { 0 }, "dead from round {rounds}");
        assert_eq!(
            examined.undecided.iter().filter(|undecided| undecided.place != Some(Place::Host(5))).count(),
            0
        );
    }
}

#[test]
fn a_suspect_that_dies_before_its_confirmation_stays_undecided() {
    let examined = run(&Hosts::new(12), &options("all-pairs"), |asked| {
        let is_confirmation = matches!(asked.round.purpose, Purpose::Confirmation { .. });
        let value = if asked.from == 5 { -0.3 } else { 0.0 };
        (!(is_confirmation && touches(asked, 5))).then_some(value)
    });
    assert_eq!(examined.verdict, Verdict::Undecided);
    assert!(examined.undecided.iter().all(|undecided| undecided.reason == Reason::NotConfirmable));
    assert!(!examined.undecided.is_empty());
}

#[test]
fn a_missing_visit_leaves_two_that_both_have_to_be_slow() {
    let with = |visits: [Option<f64>; 3]| {
        run(&Hosts::new(12), &options("all-pairs"), |asked| match asked.round.purpose {
            Purpose::Confirmation { visit } if touches(asked, 5) => {
                visits[visit].map(|value| if asked.from == 5 && asked.quantity == 0 { value } else { 0.0 })
            }
            _ => Some(if asked.from == 5 && asked.quantity == 0 { -0.3 } else { 0.0 }),
        })
    };
    let slow = [(0, Place::Host(5), true, false)].into();
    assert_eq!(named(&with([Some(-0.3), None, Some(-0.3)])), slow);
    assert_eq!(named(&with([Some(-0.3), None, Some(0.0)])), BTreeSet::new());
    assert_eq!(with([Some(-0.3), None, None]).verdict, Verdict::Undecided);
}

#[test]
fn the_same_answers_give_the_same_questions_and_the_same_result() {
    let value =
        |asked: &Asked| Some(if asked.from == 4 || [asked.from, asked.to] == [1, 9] { -0.2 } else { 0.0 });
    let hosts = Hosts::new(17);
    let mut first = World::new(value);
    let Ok(examined) = examine(&hosts, &options("all-pairs"), &mut first);
    let mut second = World::new(value);
    let Ok(again) = examine(&hosts, &options("all-pairs"), &mut second);
    assert_eq!(first.asked, second.asked);
    assert_eq!(examined, again);
    let text = serde_json::to_string(&examined).expect("JSON");
    assert_eq!(serde_json::from_str::<Examined>(&text).expect("a result"), examined);
}

#[test]
fn an_answer_that_fails_ends_the_examination_and_can_be_replayed() {
    struct Killed<P>(P, usize);
    impl<P: Probe<Error = Infallible>> Probe for Killed<P> {
        type Error = &'static str;
        fn round(&mut self, round: &Round) -> Result<Vec<Measured>, &'static str> {
            self.1 = self.1.checked_sub(1).ok_or("killed")?;
            let Ok(measured) = self.0.round(round);
            Ok(measured)
        }
        fn visit(&mut self, hosts: &[usize]) -> Result<(), &'static str> {
            let Ok(()) = self.0.visit(hosts);
            Ok(())
        }
    }
    let value = |asked: &Asked| Some(if asked.from == 4 { -0.2 } else { 0.0 });
    let hosts = Hosts::new(8);
    let mut whole = World::new(value);
    let Ok(expected) = examine(&hosts, &options("all-pairs"), &mut whole);
    for answers in [0, 1, 20, 21, 60, whole.asked.len() - 1] {
        let mut killed = Killed(World::new(value), answers);
        assert_eq!(examine(&hosts, &options("all-pairs"), &mut killed), Err("killed"));
        assert_eq!(killed.0.asked, whole.asked[..answers]);
    }
    let mut enough = Killed(World::new(value), whole.asked.len());
    assert_eq!(examine(&hosts, &options("all-pairs"), &mut enough), Ok(expected));
}

#[test]
fn a_schedule_without_blame_gives_cells_and_a_reason() {
    for name in ["ring", "bisection", "one-to-all", "all-to-one"] {
        let examined = run(&Hosts::new(8), &options(name), |_| Some(0.0));
        assert_eq!(examined.verdict, Verdict::Undecided, "{name}");
        assert!(examined.undecided.iter().all(|undecided| undecided.reason == Reason::Schedule), "{name}");
        assert!(examined.quantities.iter().all(|judged| judged.thresholds.is_none()), "{name}");
        assert!(examined.quantities.iter().all(|judged| !judged.cells.is_empty()), "{name}");
    }
}

#[test]
fn two_culprits_of_four_hosts_are_undecided() {
    let examined = run(&Hosts::new(4), &options("all-pairs"), |asked| {
        let slow = usize::from(asked.from == 0) + usize::from(asked.to == 3);
        Some(if asked.quantity == 0 { -0.4 * slow as f64 } else { 0.0 })
    });
    assert_eq!(named(&examined), BTreeSet::new());
    assert_eq!(examined.verdict, Verdict::Undecided);
    assert!(
        examined.undecided.iter().any(|undecided| undecided.reason == Reason::TwoOfFour),
        "{:?}",
        examined.undecided
    );
    let three = run(&Hosts::new(3), &options("all-pairs"), |_| Some(0.0));
    assert!(three.undecided.iter().all(|undecided| undecided.reason == Reason::TooFewHosts));
}

#[test]
fn ten_thousand_hosts_are_judged_from_random_rounds() {
    let hosts = Hosts::new(10_000);
    let mut options = options("random");
    options.quantities.pop();
    let examined = run(&hosts, &options, |asked| Some(if asked.from == 4711 { -0.2 } else { 0.0 }));
    assert_eq!(named(&examined), [(0, Place::Host(4711), true, false)].into());
    assert_eq!(examined.measurements.screening, 16 * 5_000);
    assert_eq!(examined.quantities[0].thresholds.expect("thresholds").cells, 16);
}

#[test]
fn too_many_suspect_pairs_raise_the_printed_deficit() {
    // A tenth of all pairs of 64 hosts is slow in the rounds: 403 pairs of one way, of which 256
    // are looked at again.
    let mut slow = Random(3);
    let slow: Vec<f64> =
        (0..64 * 64).map(|_| if slow.fraction() < 0.1 { slow.between(0.06, 0.4) } else { 0.0 }).collect();
    let mut options = options("all-pairs");
    options.quantities.pop();
    let examined = run(&Hosts::new(64), &options, |asked| {
        let is_screening = matches!(asked.round.purpose, Purpose::Screening { .. });
        Some(if is_screening { -slow[asked.from * 64 + asked.to] } else { 0.0 })
    });
    let left = examined.cleared.iter().filter(|cleared| cleared.why == Why::TooMany);
    let worst = left.clone().map(|cleared| cleared.screened).fold(0.0, f64::min);
    assert!(left.count() > 50 && worst < -0.06, "{worst}");
    let thresholds = examined.quantities[0].thresholds.expect("thresholds");
    assert!((thresholds.pair + worst / 0.75).abs() < 1e-12, "{thresholds:?} {worst}");
    assert_eq!(examined.culprits, []);
}

/// The places that are not decided, with the reason.
fn undecided(examined: &Examined) -> Vec<(Option<usize>, Option<Place>, Reason)> {
    examined.undecided.iter().map(|one| (one.quantity, one.place, one.reason)).collect()
}

#[test]
fn a_path_that_is_never_measured_is_not_decided() {
    let is_lost = |asked: &Asked| [asked.from.min(asked.to), asked.from.max(asked.to)] == [2, 5];
    for schedule in ["all-pairs", "isolated"] {
        let never = run(&Hosts::new(8), &options(schedule), |asked| (!is_lost(asked)).then_some(0.0));
        let pair = Some(Place::Pair { a: 2, b: 5 });
        let expected = [0, 1].map(|quantity| (Some(quantity), pair, Reason::PairWithoutCells));
        assert_eq!((never.verdict, undecided(&never)), (Verdict::Undecided, expected.into()), "{schedule}");
    }
    let one_way = run(&Hosts::new(8), &options("all-pairs"), |asked| {
        (asked.quantity != 0 || [asked.from, asked.to] != [5, 2]).then_some(0.0)
    });
    let expected = (Some(0), Some(Place::Pair { a: 2, b: 5 }), Reason::PairWithoutCells);
    assert_eq!((one_way.verdict, undecided(&one_way)), (Verdict::Undecided, vec![expected]));
    // It is measured again, and judged like any other.
    for later in [0.0, -0.4] {
        let once = run(&Hosts::new(8), &options("all-pairs"), |asked| {
            let is_screening = matches!(asked.round.purpose, Purpose::Screening { .. });
            (!is_screening || !is_lost(asked)).then_some(if is_lost(asked) { later } else { 0.0 })
        });
        let culprits = if later < 0.0 { 2 } else { 0 };
        assert_eq!((once.culprits.len(), undecided(&once)), (culprits, vec![]), "{:?}", once.cleared);
    }
}

/// The screening takes a host for slow if more than half of its pairs are. Isolation measures pairs
/// of the other half.
#[test]
fn a_host_that_is_slow_to_half_of_the_others_leaves_its_pairs_suspect() {
    let examined = run(&Hosts::new(16), &options("all-pairs"), |asked| {
        let is_slow = asked.from == 0 && asked.to >= 8;
        // The others seem better partners.
        let natural = if asked.from.max(asked.to) >= 8 && asked.from != 0 { 0.004 } else { 0.0 };
        Some(if asked.quantity == 0 && is_slow { -0.8 } else { natural })
    });
    let is_isolated = |cleared: &&Cleared| matches!(cleared.why, Why::Isolation(_));
    let cleared: Vec<Place> = examined.cleared.iter().filter(is_isolated).map(|one| one.place).collect();
    assert_eq!(cleared, [Place::Host(0)], "{:?}", examined.cleared);
    let pairs = (8..16).map(|other| (0, Place::Pair { a: 0, b: other }, true, false)).collect();
    assert_eq!(named(&examined), pairs);
}

/// In the list of hosts, those of one leaf switch do not follow each other. So it is with the rails
/// of a file of hosts.
#[test]
fn slow_paths_between_two_leaves_explain_all_of_their_latencies() {
    let hosts = leaves(Hosts::new(24), |host| host % 6);
    let between = run(&hosts, &options("all-pairs"), |asked| {
        let leaves = [asked.from % 6, asked.to % 6];
        Some(if asked.quantity == 1 && [[1, 5], [5, 1]].contains(&leaves) { -0.2 } else { 0.0 })
    });
    assert_eq!(named(&between), [(1, Place::Between { grouping: 0, a: 1, b: 5 }, true, false)].into());
}

/// The screening has few cells of a pair, and noise hides a part of what is slow there.
#[test]
fn a_suspect_within_its_threshold_is_named_if_isolation_shows_it() {
    let pair = |screened: f64| {
        let examined = run(&Hosts::new(12), &options("all-pairs"), |asked| {
            let is_screening = matches!(asked.round.purpose, Purpose::Screening { .. });
            let is_slow = asked.quantity == 0 && [asked.from, asked.to] == [2, 7];
            Some(if !is_slow {
                0.0
            } else if is_screening {
                screened
            } else {
                -0.1
            })
        });
        let bound = -examined.quantities[0].thresholds.expect("thresholds").pair;
        (named(&examined), screened / bound)
    };
    let (found, share) = pair(-0.045);
    assert!((0.8..0.95).contains(&share), "of the threshold: {share}");
    assert_eq!(found, [(0, Place::Pair { a: 2, b: 7 }, true, false)].into());
    let (found, share) = pair(-0.03);
    assert!(share < 0.7 && found.is_empty(), "of the threshold: {share}, {found:?}");
}

/// Paths that touch the slow one of three leaves are most paths between leaves, so that their
/// median is slow.
#[test]
fn a_slow_leaf_of_three_is_named_and_not_taken_for_the_usual_distance() {
    for (count, leaf) in [(12, 4), (9, 3), (48, 16)] {
        let hosts = leaves(Hosts::new(count), |host| host / leaf);
        for ways in [[true, true], [true, false], [false, true]] {
            let examined = run(&hosts, &options("all-pairs"), |asked| {
                let [a, b] = [asked.from, asked.to].map(|host| host / leaf == 1);
                let is_slow = a != b && if a { ways[0] } else { ways[1] };
                Some(if is_slow && asked.quantity == 0 { -0.3 } else { 0.0 })
            });
            let group = (0, Place::Group { grouping: 0, group: 1 }, ways[0], ways[1]);
            assert_eq!(named(&examined), [group].into(), "{count} hosts, {ways:?}");
        }
        let examined = run(&hosts, &options("all-pairs"), |asked| {
            let [a, b] = [asked.from, asked.to].map(|host| host / leaf);
            Some(if a != b { -0.3 } else { 0.0 })
        });
        assert_eq!(examined.verdict, Verdict::Healthy, "{count} hosts: all paths between leaves are longer");
    }
}
