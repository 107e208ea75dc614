//! Worlds that are compared with an earlier examination.

use super::*;

/// Options that compare with an earlier examination of ten hosts.
fn since(earlier: impl FnMut(&Asked) -> Option<f64>) -> Options {
    let mut options = options("all-pairs");
    let Ok((cells, passes)) = lasting(&Hosts::new(10), &options, &mut World::new(earlier));
    assert_eq!(passes, 3);
    for (quantity, cells) in options.quantities.iter_mut().zip(cells) {
        quantity.baseline = Some(cells);
    }
    options
}

#[test]
fn with_a_baseline_only_what_changed_is_named() {
    let before = |asked: &Asked| Some(if asked.from == 2 { -0.5 } else { 0.0 } + asked.to as f64 / 3.0);
    let hosts = Hosts::new(10);
    let options = since(before);
    let same = run(&hosts, &options, before);
    assert_eq!(same.verdict, Verdict::Healthy, "{:?}", same.culprits);
    let changed = run(&hosts, &options, |asked| {
        before(asked)
            .map(|value| if asked.quantity == 0 && asked.to == 7 { value - 0.3 } else { value - 0.1 })
    });
    assert_eq!(named(&changed), [(0, Place::Host(7), false, true)].into());
    let level = changed.quantities[0].effects.as_ref().expect("effects").level;
    assert!((level - -0.1).abs() < 0.02, "the change of the whole fleet: {level}");
    let slower = run(&hosts, &options, |asked| before(asked).map(|value| value - 0.3));
    let reasons: BTreeSet<_> = slower.undecided.iter().map(|undecided| undecided.quantity).collect();
    assert_eq!((slower.verdict, reasons), (Verdict::Undecided, [Some(0), Some(1)].into()));
    let is_slower =
        |one: &Undecided| matches!(one.reason, Reason::SlowerThanBaseline(change) if change < -0.25);
    assert!(slower.undecided.iter().all(is_slower), "{:?}", slower.undecided);
    let faster = run(&hosts, &options, |asked| before(asked).map(|value| value + 0.3));
    assert_eq!(faster.verdict, Verdict::Healthy, "{:?}", faster.undecided);
}

#[test]
fn a_pair_that_was_fast_by_chance_is_no_culprit_later() {
    let hosts = Hosts::new(10);
    let pair = |asked: &Asked| [asked.from, asked.to] == [3, 8];
    let passes = |fast: usize| {
        move |asked: &Asked| match asked.round.purpose {
            Purpose::Screening { pass, .. } if pass < fast && pair(asked) => Some(0.2),
            _ => Some(0.0),
        }
    };
    for fast in [1, 2, 3] {
        let now = run(&hosts, &since(passes(fast)), |_| Some(0.0));
        assert_eq!(now.verdict, Verdict::Healthy, "{fast} passes: {:?}", now.culprits);
    }
}

#[test]
fn a_pair_is_as_slow_as_in_the_best_pass_before() {
    let hosts = Hosts::new(10);
    let slow_in = |passes: usize, effect: f64| {
        move |asked: &Asked| match asked.round.purpose {
            Purpose::Screening { pass, .. } if pass >= passes => Some(0.0),
            _ => Some(if [asked.from, asked.to] == [3, 8] { effect } else { 0.0 }),
        }
    };
    let always = since(slow_in(3, -0.3));
    assert_eq!(run(&hosts, &always, slow_in(3, -0.3)).verdict, Verdict::Healthy);
    let place = Place::Pair { a: 3, b: 8 };
    let slower = run(&hosts, &always, slow_in(3, -0.6));
    assert_eq!(named(&slower), [0, 1].map(|quantity| (quantity, place, true, false)).into());
    let slow = run(&hosts, &since(slow_in(2, -0.3)), slow_in(3, -0.3));
    assert_eq!(named(&slow), [0, 1].map(|quantity| (quantity, place, true, false)).into());
}
