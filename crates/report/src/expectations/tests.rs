//! Judgements of made-up points, each with the reason that a reader sees.

use std::collections::BTreeMap;

use measure::record::{Clocks, Device, LatencyKind, OneWay};
use measure::stats;
use serde_json::json;

use super::line as line_of;
use super::*;
use crate::known;

/// A point with 1001 latencies from 10 % below a median to 10 % above it.
fn point(experiment: &str, size: u64, p50_ns: u64) -> Point {
    let json = json!({
        "id": p50_ns, "experiment": experiment, "pattern": "ping-pong", "status": "measured", "repetition": 0,
        "wall_ns": 1, "axes": { "size_bytes": size, "service": "RC", "operation": "send", "mtu_bytes": 4096 },
    });
    let mut point: Point = serde_json::from_value(json).unwrap();
    let samples: Vec<u64> = (0..1001).map(|i| p50_ns * 9 / 10 + p50_ns * i / 5000).collect();
    point.latency = stats::latency(LatencyKind::RttHalf, &samples, &[]);
    point
}

/// A point with a throughput over a modelled link of 40 Gb/s.
fn stream(bytes_per_s: f64) -> Point {
    let mut point = point("bw", 65536, 1000);
    point.pattern = "stream".to_owned();
    point.latency = None;
    point.link_model = Some("40Gb/s".to_owned());
    point.throughput = serde_json::from_value(json!({
        "bytes_per_s": bytes_per_s, "messages_per_s": bytes_per_s / 65536.0, "direction": "uni",
    }))
    .unwrap();
    point
}

fn judged(text: &str, points: &[Point]) -> Vec<Case> {
    let expectation = Expectation::parse(text).unwrap();
    judge(std::slice::from_ref(&expectation), &Value::Null, known(points)).remove(0).cases
}

fn line(text: &str, points: &[Point]) -> String {
    let cases = judged(text, points);
    assert_eq!(cases.len(), 1, "{cases:?}");
    line_of(&cases[0])
}

#[test]
fn a_bound_is_met_where_the_whole_interval_keeps_it() {
    let points = [point("lat", 8, 1000)];
    assert_eq!(line("p50 <= 1.1 us", &points), "met; 1 us [0.993 us, 1.006 us] (n 1,001)");
    assert_eq!(line("p50 <= 990 ns", &points), "not met; 1000 ns [993 ns, 1006 ns] (n 1,001)");
    let why = "not decided: the 95 % interval reaches over the bound";
    assert_eq!(line("p50 <= 1 us", &points), format!("{why}; 1 us [0.993 us, 1.006 us] (n 1,001)"));
    assert_eq!(line("p50 > 999 ns", &points), format!("{why}; 1000 ns [993 ns, 1006 ns] (n 1,001)"));
}

#[test]
fn a_number_without_an_interval_decides_alone_until_there_are_repetitions() {
    let mut points = vec![point("lat", 8, 1000)];
    assert_eq!(line("p99 <= 1.1 us", &points), "met; 1.098 us (n 1,001)");
    // Two repetitions have an interval, of which the bound is a part.
    points.push(Point { repetition: 1, ..point("lat", 8, 900) });
    let text = line("p99 <= 1.05 us", &points);
    assert!(text.starts_with("not decided: the 95 % interval reaches over the bound; 1.043 us ["), "{text}");
}

#[test]
fn a_disturbed_number_decides_nothing() {
    let mut points = vec![point("lat", 8, 1000), point("lat", 8, 1000)];
    points[0].unstable = Some("the level shifted".to_owned());
    assert_eq!(judged("p50 <= 2 us", &points)[0].judgement, Judgement::Met);
    points[1].unstable = Some("the CPU was taken".to_owned());
    let text = line("p50 <= 2 us", &points);
    assert!(text.starts_with("not decided: unstable: the level shifted; "), "{text}");
    // A count is a fact, whatever disturbed the times.
    assert_eq!(line("no_loss", &points), "met; 0 (the most of 2 repetitions)");
    points[1].unstable = None;
    points[1].status = Status::Failed { error: "the peer is gone".to_owned() };
    let text = line("p50 <= 2 us", &points);
    assert!(text.starts_with("not decided: 1 of 2 repetitions failed: the peer is gone"), "{text}");
    // A repetition that was not measured says nothing about the other one.
    points[1].status = Status::NotMeasured { reason: "UD has no write".to_owned() };
    let text = line("p50 <= 2 us", &points);
    assert!(text.starts_with("not decided: unstable: the level shifted; "), "{text}");
}

#[test]
fn a_point_that_was_not_measured_is_not_decided() {
    let mut missing = point("lat", 16, 1000);
    missing.status = Status::NotMeasured { reason: "UD has no write".to_owned() };
    missing.latency = None;
    let cases = judged("p50 <= 2 us", &[point("lat", 8, 1000), missing]);
    let words: Vec<_> = cases.iter().map(|case| (case.label.as_str(), line_of(case))).collect();
    assert_eq!(words[0].0, "lat, 8 B");
    assert_eq!(words[1], ("lat, 16 B", "not decided: not measured: UD has no write".to_owned()));
}

#[test]
fn an_experiment_without_the_number_is_judged_only_if_it_is_named() {
    let points = [point("lat", 8, 1000), stream(1e9)];
    assert_eq!(judged("p50 <= 2 us", &points).len(), 1);
    assert_eq!(line("missed <= 1 %", &points), "not decided: no point of this run has pipeline.missed_share");
    let mut named = Expectation::parse("p50 <= 2 us").unwrap();
    named.experiments = vec!["bw".to_owned()];
    let judged = judge(std::slice::from_ref(&named), &Value::Null, known(&points)).remove(0);
    let why = "not decided: not measured: the record has no latency.p50_ns of this point";
    assert_eq!(line_of(&judged.cases[0]), why);
    named.experiments = vec!["other".to_owned()];
    let judged = judge(std::slice::from_ref(&named), &Value::Null, known(&points)).remove(0);
    assert_eq!(line_of(&judged.cases[0]), "not decided: this run has no such point");
}

#[test]
fn a_part_of_the_link_is_a_number_where_the_link_is_known() {
    let softdev: Device = serde_json::from_value(json!({
        "rank": 0, "name": "d", "provider": "p",
        "attributes": { "link_layer": "Ethernet", "gid_type": "RoCE v2", "gid": "fe80::2f4" },
    }))
    .unwrap();
    let expectation = Expectation::parse("throughput >= 90 % of link").unwrap();
    let of = |point: Point| {
        let run = Points { devices: std::slice::from_ref(&softdev), ..known(std::slice::from_ref(&point)) };
        line_of(&judge(std::slice::from_ref(&expectation), &Value::Null, run)[0].cases[0])
    };
    // Of 16 packets with 82 B around their 4096 B, the payload is 65536 of 66848 B: 39.215 Gb/s.
    assert_eq!(of(stream(4.9e9)), "met; 39.2 Gb/s, limit 35.3 Gb/s");
    assert_eq!(of(stream(4.0e9)), "not met; 32 Gb/s, limit 35.3 Gb/s");
    let unknown = Point { link_model: None, ..stream(4.9e9) };
    assert_eq!(of(unknown), "not decided: the rate of the link is not known; 39.2 Gb/s");
}

#[test]
fn no_loss_counts_and_a_lost_message_is_not_met() {
    let mut lossy = point("lat", 8, 1000);
    assert_eq!(line("no_loss", &[lossy.clone()]), "met; 0");
    lossy.counters.insert("messages_lost".to_owned(), 3);
    assert_eq!(line("no_loss", &[lossy.clone()]), "not met; 3");
    // Datagrams that nobody counted may be lost.
    lossy.counters.clear();
    lossy.axes.insert("service".to_owned(), json!("UD"));
    assert_eq!(line("no_loss", &[lossy]), "not decided: no point of this run has messages_lost");
}

#[test]
fn the_repetition_with_the_most_losses_decides() {
    let mut points: Vec<Point> =
        (0..9).map(|repetition| Point { repetition, ..point("lat", 8, 1000) }).collect();
    assert_eq!(line("no_loss", &points), "met; 0 (the most of 9 repetitions)");
    points[4].counters.insert("messages_lost".to_owned(), 500);
    assert_eq!(line("no_loss", &points), "not met; 500 (the most of 9 repetitions)");
    points[8].status = Status::Failed { error: "the peer is gone".to_owned() };
    assert_eq!(line("no_loss", &points), "not met; 500 (the most of 8 repetitions)");
    points[4].counters.clear();
    let text = line("no_loss", &points);
    assert!(text.starts_with("not decided: 1 of 9 repetitions failed: the peer is gone; 0"), "{text}");
}

#[test]
fn a_share_without_samples_has_a_number_and_none_of_it_can_be_expected() {
    let mut fair = point("lat", 8, 1000);
    fair.fairness = serde_json::from_value(json!({ "jain": 0.9, "least_share": 0.75 })).unwrap();
    assert_eq!(line("fairness.least_share >= 70 %", &[fair.clone()]), "met; 75 %");
    assert_eq!(line("fairness.least_share >= 80 %", &[fair]), "not met; 75 %");
    let mut one_way = point("one-way", 8, 1000);
    let mut seen = |share: f64| {
        one_way.one_way = Some(OneWay {
            clocks: Clocks::One,
            first: None,
            with_first: None,
            completed_first_share: Some(share),
            negative: 0,
            gaps: Vec::new(),
            largest: None,
            above_explained: BTreeMap::new(),
        });
        line("completed_first_share <= 0", &[one_way.clone()])
    };
    assert!(seen(0.0).starts_with("met; 0 % [0 %, "), "{}", seen(0.0));
    assert!(seen(0.01).starts_with("not met; 1 % ["), "{}", seen(0.01));
}

#[test]
fn judgements_are_printed_with_their_counts() {
    let mut expectations = ["p50 <= 1.1 us", "p50 <= 100 ns"].map(|text| Expectation::parse(text).unwrap());
    expectations[1].reason = Some("a <step> takes 1 us".to_owned());
    let points = [point("lat", 8, 1000), point("lat", 16, 2000)];
    let judged = judge(&expectations, &Value::Null, known(&points));
    assert!(is_any_not_met(&judged) && !is_any_not_met(&[]));
    let lines = |with_cases| {
        text(&judged, with_cases)
            .lines()
            .filter(|l| !l.starts_with('-'))
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines(false),
        [
            " expectations: 1 met, 3 not met",
            " 1. latency.p50_ns <= 1.1 us: 1 met, 1 not met",
            "    lat, 16 B  not met; 2 us [1.987 us, 2.012 us] (n 1,001)",
            " 2. latency.p50_ns <= 100 ns (a <step> takes 1 us): 2 not met",
            "    lat, 8 B   not met; 1000 ns [993 ns, 1006 ns] (n 1,001)",
            "    lat, 16 B  not met; 2000 ns [1987 ns, 2012 ns] (n 1,001)",
        ]
    );
    assert_eq!(lines(true).len(), 7);
    assert_eq!(text(&[], true), "");
}

#[test]
fn a_number_without_samples_has_its_interval_too() {
    let points = [4.9e9, 5.0e9, 5.1e9].map(stream);
    let [case] = &judged("throughput >= 32 Gb/s", &points)[..] else { panic!("one case") };
    assert_eq!(line_of(case), "met; 40 Gb/s [39.2 Gb/s, 40.8 Gb/s] (3 repetitions)");
}

#[test]
fn a_run_that_ended_early_names_its_cases_as_a_whole_one() {
    let expectation = Expectation::parse("p50 <= 2 us").unwrap();
    let plan =
        json!({ "experiments": [{ "name": "lat", "axes": { "size_bytes": [8, 16], "service": ["RC"] } }] });
    let points = [point("lat", 8, 1000)];
    let judged = judge(std::slice::from_ref(&expectation), &plan, known(&points));
    assert_eq!(judged[0].cases[0].label, "lat, 8 B");
}
