//! Sentences about small fleets.

use std::convert::Infallible;

use measure::record::{Fleet, FleetMember, FleetQuantity};
use verdict::fleet::{Examined, Measured, Probe, Purpose, Reading, Round, Verdict, examine};

use super::{Question, Words};

/// A fleet that measures a latency and a throughput.
fn fleet(count: usize, schedule: &str, expected: Option<f64>) -> Fleet {
    let quantity =
        |name: &str, expected| FleetQuantity { name: name.to_owned(), expected, ..Default::default() };
    let member = |index| FleetMember { name: format!("n{index}"), ..FleetMember::default() };
    Fleet {
        members: (0..count).map(member).collect(),
        quantities: vec![quantity("latency", None), quantity("throughput", expected)],
        schedule: schedule.to_owned(),
        passes: 3,
        rounds: 4,
        least: 0.05,
        tolerance: 0.01,
        alpha: 0.01,
        seed: 1,
        ..Fleet::default()
    }
}

/// Throughputs by sender, receiver and purpose, with a ripple of a few thousandths.
struct World<F>(F, u32);

impl<F: Fn(usize, usize, &Round) -> f64> Probe for World<F> {
    type Error = Infallible;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Infallible> {
        let mut ripple = || {
            self.1 = (self.1 * 37 + 11) % 101;
            1.0 + f64::from(self.1) / 30_000.0
        };
        let mut measured = Vec::new();
        for &[a, b] in &round.pairs {
            let mut throughput = |from, to| (1e9 * (self.0)(from, to, round) * ripple()).ln();
            let there = throughput(a, b);
            let back = throughput(b, a);
            measured
                .push(vec![Reading::symmetric(-(2000.0 * ripple()).ln()), Reading::directed(there, back)]);
        }
        Ok(measured)
    }

    fn visit(&mut self, _: &[usize]) -> Result<(), Infallible> {
        Ok(())
    }
}

fn examined(fleet: &Fleet, value: impl Fn(usize, usize, &Round) -> f64) -> (Question, Examined) {
    let question = Question::of(fleet).expect("a question");
    let Ok(examined) = examine(&question.hosts, &question.options, &mut World(value, 1));
    (question, examined)
}

#[test]
fn a_host_is_said_with_both_ways() {
    let fleet = fleet(10, "all-pairs", None);
    let said = |receive: f64| {
        let (question, examined) = examined(&fleet, |from, to, _| match (from, to) {
            (3, _) => 0.6,
            (_, 3) => receive,
            _ => 1.0,
        });
        let words = Words::new(&fleet, &question, &examined);
        let lines = words.evidence(&examined.culprits[0]);
        assert!(lines.last().is_some_and(|line| line.contains("behind more switches")), "{lines:?}");
        words.culprit(&examined.culprits[0])
    };
    let even = said(1.0);
    assert!(
        even.starts_with("n3: throughput: sends 40 % below the others to 9 members; receives as they do (")
    );
    let little = said(0.96);
    assert!(little.ends_with("; receives 4.0 % below them, too little to be named"), "{little}");
}

#[test]
fn what_is_below_an_expectation_is_compared_with_it() {
    let fleet = fleet(10, "all-pairs", Some(0.9e9));
    let (question, found) = examined(&fleet, |from, _, _| if from == 3 { 0.45 } else { 1.0 });
    let words = Words::new(&fleet, &question, &found);
    let lines: Vec<String> = found.culprits.iter().map(|culprit| words.culprit(culprit)).collect();
    let own = lines.iter().find(|line| line.contains("the expectation")).expect("a line");
    assert!(own.contains("sends 50 % below the expectation to 9 members; receives 11 % above it"), "{own}");
    // Under load alone.
    let (question, found) = examined(&fleet, |_, _, round| if round.pairs.len() >= 4 { 0.8 } else { 1.0 });
    let words = Words::new(&fleet, &question, &found);
    assert_eq!(found.verdict, Verdict::Culprits);
    assert_eq!(words.verdict(), "the expectation is missed under load, and not in isolation");
    let line = words.congestion(&found.congestion[0]);
    assert!(
        line.contains("11 % below the expectation under load, and not in isolation (11 % above there)"),
        "{line}"
    );
    let line = words.cleared(&found.cleared[0]);
    assert!(
        line.ends_with("11 % below the expectation at first; in isolation, 11 % above the expectation"),
        "{line}"
    );
    // In the screening alone.
    let (question, found) = examined(&fleet, |from, to, round| {
        let is_screening = matches!(round.purpose, Purpose::Screening { .. });
        if is_screening && [from, to] == [1, 2] { 0.8 } else { 1.0 }
    });
    assert_eq!(Words::new(&fleet, &question, &found).verdict(), "no culprit among 10 members");
}

#[test]
fn what_is_not_decided_says_why_and_how_much_was_measured() {
    let ring = fleet(6, "ring", None);
    let (question, found) = examined(&ring, |_, _, _| 1.0);
    let said = Words::new(&ring, &question, &found).verdict();
    let expected = "not decided: latency: the schedule ring names no culprit: each host has only two partners, so a slow \
                    host and a slow partner look alike, and 1 more";
    assert_eq!(said, expected);
    let random = fleet(32, "random", None);
    let (question, found) = examined(&random, |_, _, _| 1.0);
    let words = Words::new(&random, &question, &found);
    let thresholds = found.quantities[1].thresholds.expect("thresholds");
    let line = words.detectable(&found.quantities[1], &thresholds);
    assert!(line.ends_with(" % below, of the 12 % of pairs that were measured"), "{line}");
}
