//! Rails that do not reach each other: several networks of the same hosts.

use super::*;

/// The rails of hosts, which have their devices one after the other: member 2 r + d is device d of
/// host r.
fn rails(hosts: usize, devices: usize) -> Hosts {
    let names: Vec<String> =
        (0..hosts * devices).map(|member| format!("mlx5_{}", member % devices)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Hosts::new(hosts * devices).apart("rail", &names)
}

/// A world in which no pair of two rails has a value, and the first of `devices` rails is 30 %
/// slower than the others.
fn on_rails(asked: &Asked, devices: usize, slow: impl Fn(&Asked) -> f64) -> Option<f64> {
    let rail = asked.from % devices;
    let own = if rail == 0 { 0.7f64.ln() } else { 0.0 };
    (asked.to % devices == rail).then(|| own + slow(asked))
}

#[test]
fn each_rail_is_measured_and_compared_by_itself() {
    for (hosts, devices) in [(4, 2), (8, 3), (20, 2), (6, 8)] {
        let fleet = rails(hosts, devices);
        for schedule in ["all-pairs", "isolated"] {
            let mut world = World::new(|asked: &Asked| on_rails(asked, devices, |_| 0.0));
            let Ok(healthy) = examine(&fleet, &options(schedule), &mut world);
            assert_eq!(healthy.verdict, Verdict::Healthy, "{hosts} hosts, {devices} rails: {healthy:?}");
            let screened: BTreeSet<[usize; 2]> =
                world.asked.iter().flat_map(|round| round.pairs.clone()).collect();
            assert_eq!(screened.len(), devices * hosts * (hosts - 1) / 2);
            let most = if schedule == "isolated" { 1 } else { devices * (hosts / 2) };
            assert_eq!(world.asked[0].pairs.len(), most, "{schedule}, {hosts} hosts, {devices} rails");
        }
        let slow = devices * (hosts - 1);
        let host = run(&fleet, &options("all-pairs"), |asked| {
            on_rails(
                asked,
                devices,
                |asked| if asked.quantity == 0 && asked.from == slow { -0.3 } else { 0.0 },
            )
        });
        assert_eq!(
            named(&host),
            [(0, Place::Host(slow), true, false)].into(),
            "{hosts} hosts, {devices} rails"
        );
        let pair = run(&fleet, &options("all-pairs"), |asked| {
            let is_slow = asked.quantity == 0 && [asked.from, asked.to] == [1, slow + 1];
            on_rails(asked, devices, |_| if is_slow { -0.4 } else { 0.0 })
        });
        let place = Place::Pair { a: 1, b: slow + 1 };
        assert_eq!(named(&pair), [(0, place, true, false)].into(), "{hosts} hosts, {devices} rails");
    }
}

#[test]
fn random_partners_are_of_one_rail() {
    let fleet = rails(24, 2);
    let mut world = World::new(|asked: &Asked| {
        on_rails(asked, 2, |asked| if asked.quantity == 0 && asked.to == 7 { -0.3 } else { 0.0 })
    });
    let Ok(found) = examine(&fleet, &options("random"), &mut world);
    assert_eq!(named(&found), [(0, Place::Host(7), false, true)].into());
    assert!(world.asked[0].pairs.iter().all(|[a, b]| a % 2 == b % 2), "{:?}", world.asked[0]);
    assert_eq!(world.asked[0].pairs.len(), 24);
}

#[test]
fn a_group_has_members_on_all_rails() {
    let leaf = |member: usize| member / 8;
    let fleet = leaves(rails(16, 2), leaf);
    let group = run(&fleet, &options("all-pairs"), |asked| {
        let leaves = [leaf(asked.from), leaf(asked.to)];
        let is_slow = asked.quantity == 0 && leaves[0] == 2 && leaves[1] != 2;
        on_rails(asked, 2, |_| if is_slow { -0.3 } else { 0.0 })
    });
    assert_eq!(named(&group), [(0, Place::Group { grouping: 0, group: 2 }, true, false)].into());
    let between = run(&fleet, &options("all-pairs"), |asked| {
        let is_slow = asked.quantity == 0 && [leaf(asked.from), leaf(asked.to)] == [3, 1];
        on_rails(asked, 2, |_| if is_slow { -0.4 } else { 0.0 })
    });
    assert_eq!(named(&between), [(0, Place::Between { grouping: 0, a: 1, b: 3 }, false, true)].into());
}

#[test]
fn four_hosts_of_each_rail_have_one_culprit_each() {
    let slow = |hosts: [usize; 2]| {
        run(&rails(4, 2), &options("all-pairs"), move |asked| {
            let is_slow = asked.quantity == 0 && hosts.contains(&asked.from);
            on_rails(asked, 2, |_| if is_slow { -0.4 } else { 0.0 })
        })
    };
    let two = slow([2, 5]);
    assert_eq!(named(&two), [2, 5].map(|host| (0, Place::Host(host), true, false)).into());
    let of_one = slow([2, 4]);
    assert!(of_one.culprits.is_empty(), "{:?}", of_one.culprits);
    assert_eq!(of_one.verdict, Verdict::Undecided);
    let three = run(&rails(3, 2), &options("all-pairs"), |asked| on_rails(asked, 2, |_| 0.0));
    assert!(three.undecided.iter().any(|one| one.reason == Reason::TooFewHosts), "{:?}", three.undecided);
}

#[test]
fn a_rail_that_misses_a_limit_as_a_whole_is_named() {
    let limited = |value: fn(usize) -> f64| {
        let quantities = vec![
            Quantity { floor: Some(vec![0.8f64.ln(); 12]), ..Quantity::directed("throughput") },
            Quantity::symmetric("latency"),
        ];
        let options = Options::new(quantities, &SCHEDULES[0]);
        run(&rails(6, 2), &options, |asked| (asked.from % 2 == asked.to % 2).then(|| value(asked.from % 2)))
    };
    assert_eq!(limited(|_| 0.0).verdict, Verdict::Healthy);
    let rail = |index: usize| (0, Place::Network(index), true, false);
    assert_eq!(named(&limited(|_| -0.5)), [rail(0), rail(1)].into());
    assert_eq!(named(&limited(|rail| if rail == 1 { -0.5 } else { 0.0 })), [rail(1)].into());
}

#[test]
fn a_rail_that_is_slower_than_before_is_not_decided() {
    let hosts = rails(6, 2);
    let mut options = options("all-pairs");
    let healthy = |asked: &Asked| on_rails(asked, 2, |_| 0.0);
    let Ok((cells, passes)) = lasting(&hosts, &options, &mut World::new(healthy));
    assert_eq!((passes, cells[0].len()), (3, 2 * 6 * 5));
    for (quantity, cells) in options.quantities.iter_mut().zip(cells) {
        quantity.baseline = Some(cells);
    }
    assert_eq!(run(&hosts, &options, healthy).verdict, Verdict::Healthy);
    let slower = run(&hosts, &options, |asked| {
        on_rails(asked, 2, |asked| if asked.quantity == 0 && asked.from % 2 == 1 { -0.3 } else { 0.0 })
    });
    assert_eq!(slower.verdict, Verdict::Undecided);
    let [Undecided { quantity: Some(0), place: Some(Place::Network(1)), reason }] = slower.undecided[..]
    else {
        panic!("{:?}", slower.undecided);
    };
    assert!(
        matches!(reason, Reason::SlowerThanBaseline(change) if (change + 0.3).abs() < 0.02),
        "{reason:?}"
    );
}

#[test]
fn rails_have_members_of_their_own() {
    // 20 members of the first rail, 9 of the second, 3 of the third, and 1 of the fourth.
    let names: Vec<&str> = [("a", 20), ("b", 9), ("c", 3), ("d", 1)]
        .into_iter()
        .flat_map(|(name, count)| std::iter::repeat_n(name, count))
        .collect();
    let hosts = Hosts::new(names.len()).apart("rail", &names);
    let value = |slow: [usize; 2]| {
        let names = names.clone();
        move |asked: &Asked| {
            let is_slow = asked.quantity == 0 && slow.contains(&asked.from);
            (names[asked.from] == names[asked.to]).then_some(if is_slow { -0.3 } else { 0.0 })
        }
    };
    let mut world = World::new(value([3, 25]));
    let Ok(found) = examine(&hosts, &options("all-pairs"), &mut world);
    assert_eq!(named(&found), [3, 25].map(|host| (0, Place::Host(host), true, false)).into());
    let few = |one: &Undecided| (one.place, one.reason) == (Some(Place::Network(2)), Reason::TooFewHosts);
    assert!(found.undecided.iter().any(few), "{:?}", found.undecided);
    assert_eq!(found.measurements.screening, 3 * (190 + 36 + 3));
    // All rails are measured in the same rounds, of which the longest has most.
    assert_eq!(found.measurements.rounds, 3 * 19);
    assert_eq!(world.asked[0].pairs.len(), 10 + 4 + 1);
    // A round beyond a limit is measured later: no rail waits for the end of another one.
    let limited =
        Options { amounts: Amounts { parallel: Some(10), ..Amounts::default() }, ..options("all-pairs") };
    let mut world = World::new(value([99; 2]));
    let Ok(_) = examine(&hosts, &limited, &mut world);
    let rounds: Vec<usize> = world.asked.iter().take(4).map(|round| round.pairs.len()).collect();
    assert!(rounds.iter().all(|pairs| *pairs <= 10), "{rounds:?}");
    let rails = world.asked[..4].iter().flat_map(|round| &round.pairs).map(|[a, _]| names[*a]);
    assert_eq!(rails.collect::<BTreeSet<_>>().len(), 3, "{:?}", &world.asked[..4]);
}

#[test]
fn a_rail_without_numbers_leaves_the_others_as_they_are() {
    let found = run(&rails(8, 3), &options("all-pairs"), |asked| {
        let value = on_rails(asked, 3, |_| if asked.quantity == 0 && asked.from == 4 { -0.3 } else { 0.0 });
        value.filter(|_| asked.from % 3 != 2)
    });
    assert_eq!(named(&found), [(0, Place::Host(4), true, false)].into());
    let of_rail = |one: &Undecided| (one.place, one.reason) == (Some(Place::Network(2)), Reason::TooFewHosts);
    assert!(found.undecided.iter().any(of_rail), "{:?}", found.undecided);
}

#[test]
fn a_probe_that_fails_ends_all_rails() {
    struct Failing(usize);
    impl Probe for Failing {
        type Error = usize;

        fn round(&mut self, round: &Round) -> Result<Vec<Measured>, usize> {
            self.0 = self.0.checked_sub(1).ok_or(7_usize)?;
            Ok(vec![vec![Reading::directed(0.0, 0.0), Reading::symmetric(0.0)]; round.pairs.len()])
        }

        fn visit(&mut self, _: &[usize]) -> Result<(), usize> {
            Ok(())
        }
    }
    for rounds in [0, 1, 20] {
        assert_eq!(examine(&rails(8, 2), &options("all-pairs"), &mut Failing(rounds)), Err(7));
    }
}

#[test]
fn a_resumed_examination_of_rails_asks_the_same() {
    let fleet = rails(8, 3);
    let value = |asked: &Asked| {
        on_rails(asked, 3, |asked| match (asked.quantity, asked.from) {
            (0, 4 | 9) => -0.3,
            _ => 0.0,
        })
    };
    let mut first = World::new(value);
    let Ok(examined) = examine(&fleet, &options("all-pairs"), &mut first);
    let mut second = World::new(value);
    let Ok(again) = examine(&fleet, &options("all-pairs"), &mut second);
    assert_eq!((first.asked, examined), (second.asked, again));
    assert_eq!((first.visits, second.visits), (3, 3), "suspects of two rails are in the same visits");
}

#[test]
fn suspects_of_all_rails_are_in_the_same_visits() {
    let mut world = World::new(|asked: &Asked| {
        on_rails(asked, 2, |asked| match (asked.quantity, asked.from, asked.to) {
            (0, 4, _) => -0.3,
            (0, 3, 9) => -0.4,
            _ => 0.0,
        })
    });
    let Ok(found) = examine(&rails(12, 2), &options("all-pairs"), &mut world);
    let pair = Place::Pair { a: 3, b: 9 };
    assert_eq!(named(&found), [(0, Place::Host(4), true, false), (0, pair, true, false)].into());
    assert_eq!(world.visits, 3);
    let visits = world.asked.iter().filter_map(|round| match round.purpose {
        Purpose::Confirmation { visit } => Some(visit),
        _ => None,
    });
    assert!(visits.is_sorted(), "no visit begins before the one before it has ended");
}

#[test]
fn a_rail_that_the_baseline_does_not_have_is_examined_without_it() {
    let hosts = rails(6, 2);
    let mut options = options("all-pairs");
    options.quantities[0].baseline = Some(
        (0..12)
            .step_by(2)
            .flat_map(|from| (0..12).step_by(2).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .map(|(from, to)| Cell::from((from, to, 0.7f64.ln())))
            .collect(),
    );
    let found = run(&hosts, &options, |asked| {
        on_rails(asked, 2, |asked| if asked.quantity == 0 && asked.from == 5 { -0.3 } else { 0.0 })
    });
    assert_eq!(named(&found), [(0, Place::Host(5), true, false)].into());
    assert_eq!(found.undecided, []);
}
