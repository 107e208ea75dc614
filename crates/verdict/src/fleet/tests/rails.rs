//! Rails that do not reach each other: several networks of the same hosts.

use super::*;

/// The rails of hosts, which have their devices one after the other: member 2 r + d is device d of
/// host r.
fn rails(hosts: usize, devices: usize) -> Hosts {
    let names: Vec<String> =
        (0..hosts * devices).map(|member| format!("mlx5_{}", member % devices)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Hosts::new(hosts * devices).apart(&names)
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
    let labels: Vec<String> = (0..32).map(|member| format!("leaf{}", member / 8)).collect();
    let labels: Vec<Option<&str>> = labels.iter().map(|label| Some(label.as_str())).collect();
    let fleet = rails(16, 2).grouped("group", &labels);
    let leaf = |member: usize| member / 8;
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
fn the_whole_fleet_misses_a_limit_on_all_rails() {
    let limited = |value: f64| {
        let quantities = vec![
            Quantity { floor: Some(vec![0.8f64.ln(); 12]), ..Quantity::directed("throughput") },
            Quantity::symmetric("latency"),
        ];
        let options = Options::new(quantities, &SCHEDULES[0]);
        run(&rails(6, 2), &options, |asked| (asked.from % 2 == asked.to % 2).then_some(value))
    };
    assert_eq!(limited(0.0).verdict, Verdict::Healthy);
    let missed = limited(-0.5);
    assert_eq!(named(&missed), [(0, Place::Fleet, true, false)].into());
}
