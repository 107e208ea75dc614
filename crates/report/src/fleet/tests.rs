//! Sentences about small fleets.

use std::convert::Infallible;

use measure::record::{Fleet, FleetMember, FleetQuantity, Point, Run};
use serde_json::json;
use verdict::fleet::{Examined, Measured, Probe, Purpose, Reading, Round, Verdict, examine};

use super::replay::scheduled;
use super::{Question, Tails, Words, json as object, stated, text};

/// A fleet that measures a latency and a throughput.
pub(crate) fn fleet(count: usize, schedule: &str, expected: Option<f64>) -> Fleet {
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

pub(crate) fn examined(fleet: &Fleet, value: impl Fn(usize, usize, &Round) -> f64) -> (Question, Examined) {
    let question = Question::of(fleet).expect("a question");
    let Ok(examined) = examine(&question.hosts, &question.options, &mut World(value, 1));
    (question, examined)
}

/// The record of a run.
fn run() -> Run {
    let run = json!({
        "schema_version": 1, "program": { "name": "rdmascope", "version": "0.2.0" }, "command": [],
        "started": "2026-01-01T00:00:00Z", "title": "Fleet of 8 members, tcp", "quick": false, "plan": {},
        "points_planned": 0, "figures": [], "findings": [], "devices": [], "environments": [], "overheads": [],
        "warnings": [],
    });
    serde_json::from_value(run).unwrap()
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
    assert_eq!(stated(&words), ["limit: throughput at least 858 MiB/s: missed"]);
    // Under load alone.
    let (question, found) = examined(&fleet, |_, _, round| if round.pairs.len() >= 4 { 0.8 } else { 1.0 });
    let words = Words::new(&fleet, &question, &found);
    assert_eq!(found.verdict, Verdict::Culprits);
    assert_eq!(words.verdict(), "the expectation is missed under load, and not in isolation");
    assert_eq!(stated(&words), ["limit: throughput at least 858 MiB/s: missed"]);
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
    let words = Words::new(&fleet, &question, &found);
    assert_eq!(words.verdict(), "no culprit among 10 members");
    assert_eq!(stated(&words), ["limit: throughput at least 858 MiB/s: met"]);
}

#[test]
fn a_culprit_is_an_object() {
    let culprits = |expected: Option<f64>, value: fn(usize, usize) -> f64| {
        let fleet = fleet(10, "all-pairs", expected);
        let (question, examined) = examined(&fleet, |from, to, _| value(from, to));
        let found = object(&fleet, &question, &examined, &Tails::default());
        assert_eq!(found["verdict"], "culprits", "{found}");
        found["culprits"].as_array().unwrap().clone()
    };
    let is = |culprit: &serde_json::Value, kind: &str, name: &str, against: &str| {
        let told = ["kind", "name", "against", "quantity"].map(|key| culprit[key].as_str().unwrap());
        assert_eq!(told, [kind, name, against, "throughput"], "{culprit}");
        let behind = ["sends_behind_percent", "receives_behind_percent"].map(|key| culprit[key].as_f64());
        behind.map(|percent| percent.map(f64::round))
    };
    let host = culprits(None, |from, _| if from == 3 { 0.6 } else { 1.0 });
    assert_eq!((host.len(), is(&host[0], "member", "n3", "others")), (1, [Some(40.0), None]));
    let pair = culprits(None, |from, to| if [from, to] == [5, 2] { 0.5 } else { 1.0 });
    assert_eq!((pair.len(), is(&pair[0], "pair", "n2 - n5", "others")), (1, [None, Some(50.0)]));
    let all = culprits(Some(0.9e9), |_, _| 0.45);
    assert_eq!(is(&all[0], "fleet", "the whole fleet", "expectation")[0], Some(50.0));
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

#[test]
fn pairs_across_groups_are_compared_with_those_within() {
    let said = |fleet: &Fleet| {
        let value = |from: usize, to: usize, _: &Round| if (from < 4) == (to < 4) { 1.0 } else { 0.6 };
        let (question, examined) = examined(fleet, value);
        text(&run(), fleet, &question, &examined, &Tails::default(), None)
    };
    let halves = said(&fleet(8, "bisection", None));
    assert!(halves.contains("\n across halves: throughput: median 57"), "{halves}");
    assert!(halves.contains(" % below that within halves, 95"), "{halves}");
    let mut grouped = fleet(8, "all-pairs", None);
    for (index, member) in grouped.members.iter_mut().enumerate() {
        let leaf = if index < 4 { "leaf1" } else { "leaf2" };
        member.groups.insert("group".to_owned(), leaf.to_owned());
    }
    let groups = said(&grouped);
    let rows: Vec<&str> = groups
        .lines()
        .skip_while(|line| !line.starts_with(" of pairs"))
        .take_while(|line| !line.is_empty())
        .collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row.trim_start().split('[').next()).collect();
    let parts = ["within groups", "across groups"];
    assert_eq!(names[1..], [&["latency"][..], &parts, &["throughput"], &parts].concat(), "{groups}");
    let widths: Vec<usize> = rows.iter().map(|row| row.chars().count()).collect();
    assert_eq!(widths, [79; 7], "{groups}");
    let alone = said(&fleet(8, "all-pairs", None));
    assert!(!alone.contains("across"), "{alone}");
}

#[test]
fn what_noise_may_explain_is_said_with_its_size() {
    let fleet = fleet(8, "all-pairs", Some(9.8e8));
    let (question, found) = examined(&fleet, |from, to, _| if [from, to] == [1, 6] { 0.975 } else { 1.0 });
    assert_eq!(found.verdict, Verdict::Undecided);
    let line = Words::new(&fleet, &question, &found).undecided(&found.undecided[0]);
    let start = "n1 - n6: throughput: it is nearer to the limit than noise can tell, which is 2.";
    assert!(line.starts_with(start), "{line}");
    assert!(
        line.ends_with(" %: measure for longer (-D, -n), or state a limit that is not as near"),
        "{line}"
    );
}

#[test]
fn what_is_expected_of_members_is_a_number_for_each() {
    let mut fleet = fleet(4, "ring", None);
    fleet.quantities[1].expected_of = vec![1e9, 5e8, 1e9, 1e9];
    let question = Question::of(&fleet).unwrap();
    let floor = question.options.quantities[1].floor.clone().unwrap();
    assert_eq!(floor.iter().map(|log| log.exp().round()).collect::<Vec<_>>(), [1e9, 5e8, 1e9, 1e9]);
    assert!(question.has_suspects());
    fleet.baseline = Some("nights/one".to_owned());
    let (_, slow) = examined(&fleet, |from, to, _| if [from, to].contains(&1) { 0.6 } else { 1.1 });
    assert_eq!(slow.verdict, Verdict::Healthy, "{:?}", slow.undecided);
    let lines = stated(&Words::new(&fleet, &question, &slow));
    assert_eq!(
        lines,
        ["limit: throughput at least 477 MiB/s to 954 MiB/s, by their links: met", "baseline: nights/one"]
    );
    for wrong in [vec![1e9; 3], vec![1e9, 0.0, 1e9, 1e9]] {
        fleet.quantities[1].expected_of = wrong;
        let Err(why) = Question::of(&fleet) else { panic!("it is not a number for each") };
        assert_eq!(why, "what is expected of members is a number above 0 for each of them");
    }
    fleet.quantities.clear();
    assert_eq!(Question::of(&fleet).err().as_deref(), Some("a fleet compares at least one quantity"));
}

#[test]
fn a_fleet_that_was_killed_has_no_more_points_than_its_schedule() {
    // Three passes of three rounds; what is measured later is of suspects.
    let mut killed = fleet(4, "all-pairs", None);
    let point = |round: u64| {
        let shape = json!({
            "id": round, "experiment": "throughput", "pattern": "stream", "axes": { "pair": "n0 -> n1" },
            "status": "measured", "repetition": 0, "wall_ns": 0, "fleet": { "round": round, "members": [0, 1] },
        });
        Point::of_json(&shape).unwrap()
    };
    let points: Vec<Point> = (0..12).map(point).collect();
    let counted = |fleet: &Fleet| scheduled(fleet, &points).len();
    assert_eq!(counted(&killed), 9);
    killed.rounds_in_time = Some(4);
    assert_eq!(counted(&killed), 4);
    killed.examined = Some(json!({ "measurements": { "rounds": 6 } }));
    assert_eq!(counted(&killed), 6);
}

#[test]
fn the_matrix_of_a_terminal_has_members_of_a_group_together_and_as_many_rows_as_fit() {
    let run = run();
    let matrix = |count: usize, line: usize| {
        let mut fleet = fleet(count, "all-pairs", None);
        for (index, member) in fleet.members.iter_mut().enumerate() {
            member.groups.insert("group".to_owned(), ["even", "odd"][index % 2].to_owned());
        }
        let value = |from: usize, to: usize, _: &Round| if from == 3 && to != 0 { 0.6 } else { 1.0 };
        let (question, found) = examined(&fleet, value);
        let said = text(&run, &fleet, &question, &found, &Tails::default(), Some(line));
        let (_, matrix) = said.split_once("\n throughput, from row to column").expect("a matrix");
        matrix.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    // Sender 3 is 40 % below the others to all but n0, and its own place is empty.
    let small = matrix(6, 80);
    assert!(small[0].contains(" MiB/s; 1 is 10 % below it, 9 is 90 %"), "{small:?}");
    let rows = [" n0   .....", " n2  . ....", " n4  .. ...", " n1  ... ..", " n3  .444 4", " n5  ..... "];
    let expected: Vec<String> = rows.iter().map(|row| format!("{row:<10}")).collect();
    assert_eq!(small[1..].iter().map(|row| format!("{row:<10}")).collect::<Vec<_>>(), expected);
    // Ten members in five columns: each is two members, by their worst pair.
    let large = matrix(10, 10);
    assert!(large[0].ends_with("; each row is 2 members, shown by their worst pair"), "{large:?}");
    let names: Vec<&str> = large[1..].iter().map(|row| &row[1..3]).collect();
    assert_eq!(names, ["n0", "n4", "n8", "n3", "n7"]);
    assert_eq!(&large[4][5..], "44444", "{large:?}");
}
