//! Every kind of finding on made-up points: reproduced, contradicted, inconclusive, not measured.

use std::collections::BTreeMap;

use measure::record::{Latency, LatencyKind, OneWay, Timed};
use measure::stats;
use serde_json::json;

use super::*;
use crate::known;

/// A finding from its plan, as JSON.
fn finding(keys: &Value) -> Finding {
    let mut json = json!({"claim": "C", "experiments": ["e"], "quantity": "one_way.p50_ns"});
    json.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    serde_json::from_value(json).unwrap()
}

/// 1000 samples around a median, from 10 % below to 10 % above.
fn latency(kind: LatencyKind, p50_ns: u64) -> Latency {
    let samples: Vec<u64> = (0..1001).map(|i| p50_ns - 50 + i / 10).collect();
    stats::latency(kind, &samples, &[10_000]).unwrap()
}

fn point(axes: &[(&str, Value)], p50_ns: u64) -> Point {
    let json = json!({
        "id": p50_ns, "experiment": "e", "pattern": "one-way", "status": "measured", "repetition": 0, "wall_ns": 1,
        "axes": axes.iter().cloned().collect::<BTreeMap<_, _>>(),
    });
    let mut point: Point = serde_json::from_value(json).unwrap();
    let timed = |kind, ns| Timed { latency: latency(kind, ns), samples: None, histogram: None };
    point.kinds = vec![timed(LatencyKind::OneWay, p50_ns), timed(LatencyKind::Completion, p50_ns + 500)];
    point.latency = Some(point.kinds[0].latency.clone());
    point
}

fn answer<'a>(findings: &'a [Finding], points: &[Point]) -> Vec<Answer<'a>> {
    super::answer(findings, known(points), None)
}

fn only(finding: &Finding, points: &[Point]) -> Case {
    let mut answers = answer(std::slice::from_ref(finding), points);
    assert_eq!(answers[0].cases.len(), 1, "{answers:?}");
    answers.remove(0).cases.remove(0)
}

fn polls(busy: u64, event: u64) -> Vec<Point> {
    vec![point(&[("poll", json!("busy"))], busy), point(&[("poll", json!("event"))], event)]
}

fn change(holds: &str) -> Finding {
    finding(&json!({"kind": "change", "of": {"poll": "busy"}, "against": {"poll": "event"}, "holds": holds}))
}

/// Points over sizes of 8, 16, ... bytes.
fn over_sizes(service: &str, medians: &[u64]) -> Vec<Point> {
    let at = |(i, p50_ns): (usize, &u64)| {
        point(&[("service", json!(service)), ("size_bytes", json!(8u64 << i))], *p50_ns)
    };
    medians.iter().enumerate().map(at).collect()
}

#[test]
fn a_change_is_shown_if_all_of_its_interval_is_in_the_range() {
    let points = polls(1200, 3600);
    let case = only(&change("< -60 %"), &points);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert_eq!(case.figures, "-66.7 % [-66.8, -66.5]: 1200 ns (n 1,001) against 3600 ns (n 1,001)");
    assert_eq!(only(&change("> -60 %"), &points).verdict, Verdict::Contradicted(""));
    // The number is -66.667 %, and its interval ends at -66.5 %.
    assert_eq!(only(&change("< -66.6 %"), &points).verdict, Verdict::Inconclusive("within its error"));
    assert_eq!(only(&change("<= 0.34"), &points).verdict, Verdict::Reproduced);
    let case = only(&change("< -2 us"), &points);
    assert_eq!((case.verdict, &case.figures[..22]), (Verdict::Reproduced, "-2400 ns [-2407, -2393"));
}

#[test]
fn what_a_call_costs_decides_with_its_own_interval() {
    let value = |holds: &str| {
        let only = json!({"step": "poll_empty"});
        finding(&json!({"kind": "value", "quantity": "cost.ns", "where": only, "holds": holds}))
    };
    let mut polled = point(&[("step", json!("poll_empty"))], 202);
    let cost = |ci95_ns: Value| {
        let cost =
            json!({"step": "poll_empty", "calls": 64, "ns": 3.2, "ci95_ns": ci95_ns, "stamp_ns": 14.5});
        serde_json::from_value(cost).unwrap()
    };
    polled.cost = cost(json!([3.0, 3.5]));
    let case = only(&value("< 4 ns"), std::slice::from_ref(&polled));
    assert_eq!(
        (case.verdict, case.figures.as_str()),
        (Verdict::Reproduced, "3.20 ns (n 1,001) [3.00, 3.50 ns]")
    );
    let case = only(&value("< 3.3 ns"), std::slice::from_ref(&polled));
    assert_eq!(case.verdict, Verdict::Inconclusive("within its error"));
    // A number without an interval decides nothing.
    polled.cost = cost(Value::Null);
    assert!(matches!(only(&value("< 4 ns"), &[polled]).verdict, Verdict::Inconclusive(_)));
}

#[test]
fn a_change_within_noise_is_not_shown() {
    let case = only(&change("< 0 %"), &polls(1000, 1002));
    assert_eq!(case.verdict, Verdict::Inconclusive("within its error"), "{}", case.figures);
}

#[test]
fn each_value_of_an_axis_is_a_case_and_none_stands_in_for_another() {
    let mut points = Vec::new();
    for service in ["RC", "UD"] {
        for mut point in polls(1200, 3600) {
            point.axes.insert("service".to_owned(), json!(service));
            points.push(point);
        }
    }
    points[3].status = measure::record::Status::NotMeasured { reason: "UD has no events".to_owned() };
    (points[3].latency, points[3].kinds) = (None, Vec::new());
    let finding = Finding { each: vec!["service".to_owned()], ..change("< -60 %") };
    let answers = answer(std::slice::from_ref(&finding), &points);
    let [rc, ud] = &answers[0].cases[..] else { panic!("{answers:?}") };
    assert_eq!((rc.label.as_str(), &rc.verdict), ("RC", &Verdict::Reproduced));
    assert_eq!(ud.label, "UD");
    assert_eq!(ud.verdict.text(true), "not measured: UD has no events");
    assert_eq!(
        summary(&answers, true),
        "1 reproduced, 0 inconclusive, 0 contradicted, 1 not measured, of 2 cases"
    );
    let within = change("< -66.6 %");
    let answers = answer(std::slice::from_ref(&within), &polls(1200, 3600));
    assert_eq!(
        summary(&answers, true),
        "0 reproduced, 1 inconclusive, 0 contradicted, 0 not measured, of 1 case"
    );
    // Without `each`, the points would be mixed.
    let mixed = only(&change("< -60 %"), &points);
    assert_eq!(mixed.verdict.text(true), "not measured: its points differ in service");
    assert_eq!(only(&finding, &[]).verdict.text(true), "not measured: this run has no such point");
}

#[test]
fn repetitions_are_one_number_with_their_spread_and_doubts() {
    let mut points: Vec<Point> = [1200, 1300, 1250].into_iter().flat_map(|ns| polls(ns, 3600)).collect();
    points[2].unstable = Some("it moved".to_owned());
    let case = only(&change("< -60 %"), &points);
    assert_eq!(
        case.figures,
        "-65.3 % [-66.8, -63.8]: 1250 ns (n 3,003 in 3 repetitions) against 3600 ns (n 3,003 in 3 repetitions)"
    );
    assert_eq!(case.doubts.text().as_deref(), Some("1 of 6 repetitions unstable"));
    assert_eq!(case.doubts.first.as_deref(), Some("it moved"));
}

#[test]
fn a_line_is_as_good_as_its_r2() {
    let linear =
        |holds: &str| finding(&json!({"kind": "linear", "x": "size_bytes", "to": 256, "holds": holds}));
    let straight = over_sizes("RC", &[1008, 1016, 1032, 1065, 1128, 1256, 9999]);
    let case = only(&linear(">= 0.9"), &straight);
    assert_eq!(case.verdict, Verdict::Reproduced, "{}", case.figures);
    let line = "R^2 1.000 [1.000, 1.000]: the line from 1008.2 ns at 8 B to 1256.1 ns at 256 B (6 x, n at least 1,001 each)";
    assert_eq!(case.figures, line);
    let bent = over_sizes("RC", &[1008, 1900, 1032, 1800, 1128, 1256]);
    let case = only(&linear(">= 0.9"), &bent);
    assert_eq!(case.verdict, Verdict::Contradicted(""), "{}", case.figures);
    let case = only(&linear(">= 0.9"), &straight[..3]);
    assert_eq!(case.verdict.text(true), "not measured: this run has 3 of the 4 points needed");
    let case = only(&linear(">= 0.9"), &over_sizes("RC", &[1000, 1000, 1000, 1000]));
    let why = "not measured: all 4 numbers are 1000 ns (n 1,001): a line explains nothing";
    assert_eq!(case.verdict.text(true), why);
}

#[test]
fn the_least_over_x_is_where_no_other_is_surely_below() {
    let argmin =
        |holds: &str| finding(&json!({"kind": "argmin", "x": "size_bytes", "unit": "us", "holds": holds}));
    let points = over_sizes("RC", &[2000, 1500, 1003, 1000, 1800]);
    let case = only(&argmin("32 .. 64"), &points);
    assert_eq!(case.verdict, Verdict::Reproduced);
    let text = "smallest at 64 B [32 B, 64 B] of 5 x: 1 us (n 1,001); 2 us (n 1,001) at 8 B, 1.800 us (n 1,001) at 128 B";
    assert_eq!(case.figures, text);
    assert_eq!(only(&argmin("64 .. 128"), &points).verdict, Verdict::Inconclusive("within its error"));
    assert_eq!(only(&argmin(">= 128"), &points).verdict, Verdict::Contradicted(""));
    let mut shared = points.clone();
    shared
        .iter_mut()
        .for_each(|point| point.unstable = Some("oversubscribed: 16 ranks share 2 CPUs".to_owned()));
    let case = only(&argmin("32 .. 64"), &shared);
    assert_eq!(case.doubts.text().as_deref(), Some("5 of 5 repetitions unstable"));
    let finding = argmin("32 .. 64");
    let of = |points: &[Point]| summary(&answer(std::slice::from_ref(&finding), points), true);
    let usual = of(&points);
    assert_eq!(of(&shared), format!("{usual}; 1 answered only by unstable runs"));
    shared[0].unstable = None;
    assert_eq!(of(&shared), usual);
    assert!(matches!(only(&argmin("> 1"), &points[..1]).verdict, Verdict::NotMeasured(_)));
}

#[test]
fn an_extreme_of_one_run_decides_nothing() {
    let runs = |busy: &[u64], quantity: &str, holds: &str| {
        let points: Vec<Point> = busy.iter().flat_map(|ns| polls(*ns, 3600)).collect();
        only(&Finding { quantity: Some(quantity.to_owned()), ..change(holds) }, &points)
    };
    for (quantity, holds) in
        [("one_way.max_ns", "< 0 %"), ("one_way.min_ns", "> 0 %"), ("one_way.p99_ns", "< 0 ns")]
    {
        let case = runs(&[1200], quantity, holds);
        assert_eq!(case.verdict.text(true), "inconclusive: one run has no interval", "{quantity}");
        assert!(case.figures.contains(" (n 1,001) against 3"), "the number is there: {}", case.figures);
    }
    // Runs that differ give an interval; the median and shares have one within a run.
    let case = runs(&[1200, 1300], "one_way.max_ns", "< 0 %");
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert!(case.figures.starts_with("-64.4 % [-65.8, -63.0]: "), "{}", case.figures);
    assert_eq!(
        runs(&[1200, 3700], "one_way.max_ns", "< 0 %").verdict,
        Verdict::Inconclusive("within its error")
    );
    assert_eq!(runs(&[1200], "one_way.p50_ns", "< 0 %").verdict, Verdict::Reproduced);
    assert_eq!(runs(&[1200], "one_way.count", "0.5 .. 1.5").verdict, Verdict::Reproduced);
    // A run that failed is not a second run.
    let mut points: Vec<Point> = [1200, 1300].into_iter().flat_map(|ns| polls(ns, 3600)).collect();
    points[0].status = measure::record::Status::Failed { error: "gone".to_owned() };
    let max = Finding { quantity: Some("one_way.max_ns".to_owned()), ..change("< 0 %") };
    let case = only(&max, &points);
    assert_eq!(case.verdict, Verdict::Inconclusive("one run has no interval"));
    let answers = answer(std::slice::from_ref(&max), &points);
    assert_eq!(
        summary(&answers, true),
        "0 reproduced, 1 inconclusive, 0 contradicted, 0 not measured, of 1 case"
    );
}

#[test]
fn series_of_extremes_decide_nothing_either() {
    let points = [over_sizes("UC", &[900, 905, 1400]), over_sizes("RC", &[1260, 1260, 1260])].concat();
    for keys in [
        json!({"kind": "flat", "where": {"service": "UC"}, "holds": "< 1 %"}),
        json!({"kind": "step", "where": {"service": "UC"}, "between": [16, 32], "holds": "> 20 %"}),
        json!({"kind": "falls", "where": {"service": "UC"}, "at": 16, "holds": "< 0 %"}),
        json!({"kind": "order", "order": [{"service": "UC"}, {"service": "RC"}], "holds": ">= 60 %"}),
        json!({"kind": "crossover", "of": {"service": "UC"}, "against": {"service": "RC"}, "holds": "<= 32"}),
    ] {
        let of = |quantity: &str| {
            let mut finding = finding(&over_x(&keys));
            finding.quantity = Some(quantity.to_owned());
            only(&finding, &points).verdict
        };
        assert_eq!(of("one_way.max_ns"), Verdict::Inconclusive("one run has no interval"), "{keys}");
        assert!(!matches!(of("one_way.p50_ns"), Verdict::Inconclusive(_)), "{keys}");
    }
}

/// The same over sizes.
fn over_x(keys: &Value) -> Value {
    let mut keys = keys.clone();
    keys["x"] = json!("size_bytes");
    keys
}

#[test]
fn a_wide_interval_is_said_in_as_many_digits_as_it_has() {
    let points: Vec<Point> = [100, 400_000_000].into_iter().flat_map(|ns| polls(ns, 1000)).collect();
    let case = only(&change("< 0 %"), &points[..2]);
    assert!(case.figures.starts_with("-90.0 % [-90.4, -89.7]: "), "{}", case.figures);
    let case = only(&change("< 0 %"), &points);
    assert!(case.figures.starts_with("+19,999,905 % [-90, +40,160,543]: "), "{}", case.figures);
}

#[test]
fn two_quantities_of_one_point_are_compared() {
    let finding = finding(&json!({
        "kind": "change", "of": {"quantity": "completion.p50_ns"}, "against": {"quantity": "one_way.p50_ns"},
        "holds": "> 30 %",
    }));
    let case = only(&finding, &[point(&[], 1000)]);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert!(case.figures.ends_with(": 1500 ns (n 1,001) against 1000 ns (n 1,001)"), "{}", case.figures);
}

#[test]
fn shares_have_an_interval_of_their_count() {
    let mut point = point(&[], 1000);
    let clocks = measure::record::Clocks::One;
    point.one_way = Some(OneWay {
        clocks,
        first: Some(latency(LatencyKind::OneWay, 4000)),
        with_first: None,
        completed_first_share: Some(0.55),
        negative: 0,
        gaps: Vec::new(),
        largest: None,
        above_explained: BTreeMap::new(),
    });
    let value = |quantity: &str, holds: &str| {
        only(&finding(&json!({"kind": "value", "quantity": quantity, "holds": holds})), &[point.clone()])
    };
    let case = value("completed_first_share", "> 50 %");
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert_eq!(case.figures, "55 % (n 1,001) [51.9, 58.1 %]");
    assert_eq!(value("completed_first_share", "> 52 %").verdict, Verdict::Inconclusive("within its error"));
    // None of 1001 is above 10 us: the share may be up to 0.38 %.
    assert_eq!(value("one_way.share_above.10000", "< 1 %").verdict, Verdict::Reproduced);
    let case = value("one_way.share_above.10000", "< 0.1 %");
    assert_eq!(
        (case.verdict, case.figures.as_str()),
        (Verdict::Inconclusive("within its error"), "0 % (n 1,001) [0.000, 0.382 %]")
    );
    assert_eq!(value("first.p50_ns", "> 3 us").verdict, Verdict::Reproduced);
    assert_eq!(
        value("with_first.p50_ns", "> 3 us").verdict.text(true),
        "not measured: the record has no with_first.p50_ns of this point"
    );
}

/// Numbers of other tools have no interval within a run: repetitions decide.
#[test]
fn programs_agree_as_far_as_their_numbers_do() {
    let reported = |tool: &str, repetition: u32, mean_ns: f64| {
        let json = json!({
            "id": repetition, "experiment": "e", "pattern": "ping-pong", "status": "measured", "repetition": repetition,
            "wall_ns": 1, "axes": {"tool": tool},
            "reported": {"program": format!("{tool} 1.0"), "command": tool, "mean_ns": mean_ns},
        });
        serde_json::from_value::<Point>(json).unwrap()
    };
    let agree = |holds: &str| {
        finding(&json!({"kind": "agree", "quantity": "half_mean_ns", "x": "tool", "holds": holds}))
    };
    let runs = [("qperf", 0, 1000.0), ("sockperf", 0, 1100.0), ("qperf", 1, 1010.0), ("sockperf", 1, 1120.0)];
    let points: Vec<Point> = runs.into_iter().map(|(tool, run, ns)| reported(tool, run, ns)).collect();
    let case = only(&agree("<= 13 %"), &points);
    assert_eq!(case.verdict, Verdict::Reproduced);
    let expected = "+10.4 % [+8.9, +12.0] between 2: from 1005 ns (2 repetitions) of qperf \
                    to 1110 ns (2 repetitions) of sockperf";
    assert_eq!(case.figures, expected);
    assert_eq!(only(&agree("<= 11 %"), &points).verdict, Verdict::Inconclusive("within its error"));
    assert!(matches!(only(&agree("<= 13 %"), &points[..2]).verdict, Verdict::Inconclusive(_)));
    // A missing one is named next to the others, or is the reason if there are no others.
    let mut missing = reported("iperf3", 0, 1.0);
    missing.reported = None;
    missing.status = measure::record::Status::NotMeasured { reason: "no iperf3 here".to_owned() };
    let all: Vec<Point> = points.iter().cloned().chain([missing.clone()]).collect();
    let figures = only(&agree("<= 13 %"), &all).figures;
    assert_eq!(figures, format!("{expected}; iperf3 not measured: no iperf3 here"));
    let verdict = only(&agree("<= 13 %"), &[points[0].clone(), missing]).verdict;
    assert_eq!(verdict.text(true), "not measured: iperf3: no iperf3 here");
}

#[test]
fn flat_is_the_largest_relative_to_the_least() {
    let points = over_sizes("UC", &[1250, 1260, 1255, 1250, 1290, 1265, 1900]);
    let flat = |holds: &str, to: u64| {
        only(&finding(&json!({"kind": "flat", "x": "size_bytes", "to": to, "holds": holds})), &points)
    };
    let case = flat("< 5 %", 256);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert_eq!(
        case.figures,
        "+3.20 % [+2.63, +3.77]: from 1250 ns (n 1,001) at 8 B to 1290 ns (n 1,001) at 128 B (6 x, n at least 1,001 each)"
    );
    assert_eq!(flat("< 5 %", 512).verdict, Verdict::Contradicted(""));
    assert_eq!(flat("< 5 %", 8).verdict.text(true), "not measured: this run has 1 of the 2 points needed");
}

#[test]
fn a_step_has_to_be_where_it_was_found() {
    let step = |points: &[Point]| {
        let keys = json!({"kind": "step", "x": "size_bytes", "between": [32, 64], "holds": "> 20 %"});
        only(&finding(&keys), points)
    };
    let case = step(&over_sizes("UC", &[900, 905, 910, 1260, 1400]));
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert!(case.figures.contains(" from 32 B to 64 B: 910 ns (n 1,001) to 1260 ns"), "{}", case.figures);
    let case = step(&over_sizes("UC", &[900, 905, 910, 1260, 2400]));
    assert_eq!(case.verdict.text(true), "contradicted: the largest step is elsewhere");
    assert!(case.figures.contains(" from 64 B to 128 B: "), "{}", case.figures);
    assert_eq!(step(&over_sizes("UC", &[900, 905, 910, 920])).verdict, Verdict::Contradicted(""));
    let case = step(&over_sizes("UC", &[900, 1905]));
    assert_eq!(case.verdict.text(true), "not measured: at 32 B: this run has no such point");
}

#[test]
fn a_crossover_is_at_an_x_or_nowhere() {
    let crossover = |inline: &[u64], holds: &str| {
        let points = [over_sizes("UC", inline), over_sizes("RC", &[1260, 1260, 1265, 1270])].concat();
        let keys = json!({
            "kind": "crossover", "x": "size_bytes", "of": {"service": "UC"}, "against": {"service": "RC"}, "holds": holds,
        });
        only(&finding(&keys), &points)
    };
    let case = crossover(&[900, 1000, 1400], "<= 32");
    assert_eq!(
        (case.verdict, case.figures.as_str()),
        (Verdict::Reproduced, "at 32 B: 1400 ns (n 1,001) against 1265 ns (n 1,001)")
    );
    assert_eq!(crossover(&[900, 1000, 1400], "<= 16").verdict, Verdict::Contradicted(""));
    let case = crossover(&[900, 1000, 1100], "<= 64");
    assert_eq!(case.verdict.text(true), "contradicted: the series do not cross");
    assert!(
        case.figures.starts_with("not above by more than the errors from 8 B to 32 B"),
        "{}",
        case.figures
    );
    let case = crossover(&[1400], "<= 64");
    assert_eq!(case.verdict.text(true), "contradicted: the series do not cross");
    assert!(case.figures.starts_with("above from the first x on, 8 B"), "{}", case.figures);
}

#[test]
fn an_order_holds_at_a_share_of_x() {
    let points =
        [over_sizes("UC", &[1000, 1000, 1000, 1300]), over_sizes("RC", &[1100, 1100, 1003, 1200])].concat();
    let order = |holds: &str| {
        let keys = json!({
            "kind": "order", "x": "size_bytes", "order": [{"service": "UC"}, {"service": "RC"}], "holds": holds,
        });
        only(&finding(&keys), &points)
    };
    let case = order(">= 50 %");
    assert_eq!(case.figures, "75 % [50, 75] of 4 x, not at 64 B, n at least 1,001 each");
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert_eq!(order(">= 60 %").verdict, Verdict::Inconclusive("within its error"));
    assert_eq!(order(">= 90 %").verdict, Verdict::Contradicted(""));
    let row = json!({"kind": "order", "order": [{"poll": "busy"}, {"poll": "event"}], "holds": ">= 100 %"});
    let case = only(&finding(&row), &polls(1200, 3600));
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert_eq!(case.figures, "1200 ns (n 1,001), then 3600 ns (n 1,001)");
}

#[test]
fn a_fall_compares_both_sides_of_a_border() {
    let points = over_sizes("UC", &[1000, 2000, 3000, 800, 900]);
    let falls = |at: u64| {
        let keys = json!({"kind": "falls", "x": "size_bytes", "at": at, "holds": "< 0 %"});
        only(&finding(&keys), &points)
    };
    let case = falls(64);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert_eq!(
        case.figures,
        "-57.5 % [-57.8, -57.3]: 2 x with 800 ns (n 1,001) at 64 B on, 3 x with 3000 ns (n 1,001) at 32 B before"
    );
    assert_eq!(falls(8).verdict.text(true), "not measured: this run has no x below 8 B");
}

#[test]
fn times_between_two_clocks_are_known_to_within_their_bound() {
    let mut points = polls(1200, 3600);
    for point in &mut points {
        let known = json!({"clocks": {
            "kind": "two", "offset_ns": 5.0, "bound_ns": 99.5, "drift_ppm": [0.0, 0.1], "exchanges": 100,
        }});
        point.one_way = serde_json::from_value(known).unwrap();
    }
    let case = only(&change("< -60 %"), &points);
    assert_eq!(case.verdict, Verdict::Reproduced);
    // (1197 - 99.5) / (3603 + 99.5) to (1203 + 99.5) / (3597 - 99.5)
    assert_eq!(
        case.figures,
        "-66.7 % [-70.4, -62.7]: 1200 ns ± 100 ns (n 1,001) against 3600 ns ± 100 ns (n 1,001)"
    );
    let completion = Finding { quantity: Some("completion.p50_ns".to_owned()), ..change("< -50 %") };
    assert!(only(&completion, &points).figures.contains(": 1700 ns (n 1,001)"), "one clock took both stamps");
    let spread = Finding { quantity: Some("one_way.spread_ns".to_owned()), ..change("-5 % .. 5 %") };
    assert_eq!(only(&spread, &points).figures, "+0 %: 80 ns (n 1,001) against 80 ns (n 1,001)");
}

/// The outcome of a technique: rank, technique, value, outcome, before, reason.
type Became = (u32, &'static str, &'static str, &'static str, Option<&'static str>, Option<&'static str>);

/// A point in an environment, with the outcomes of its techniques.
fn in_environment(name: &str, p50_ns: u64, became: &[Became]) -> Point {
    let mut point = point(&[("environment", json!(name))], p50_ns);
    let condition = |(rank, technique, asked, outcome, before, reason): &Became| {
        json!({
            "rank": rank, "technique": technique, "asked": asked, "outcome": outcome, "before": before, "reason": reason,
        })
    };
    point.conditions = serde_json::from_value(became.iter().map(condition).collect()).unwrap();
    point
}

#[test]
fn what_was_not_applied_is_the_cause_of_nothing() {
    let compared = |became: &[Became]| {
        let points = [in_environment("as_is", 1000, &[]), in_environment("other", 1001, became)];
        let finding = finding(&json!({
            "kind": "change", "of": {"environment": "other"}, "against": {"environment": "as_is"}, "holds": "-5 % .. 5 %",
        }));
        only(&finding, &points)
    };
    let none = (0, "aspm", "performance", "not_applied", None, Some("the kernel manages no links"));
    let case = compared(&[none, (1, none.1, none.2, none.3, none.4, none.5)]);
    assert_eq!(
        case.verdict.text(true),
        "not measured: other did not differ from as_is: aspm not applied (the kernel manages no links)"
    );
    let case = compared(&[(0, "aspm", "performance", "applied", Some("performance"), None)]);
    assert_eq!(
        case.verdict.text(true),
        "not measured: other did not differ from as_is: aspm was performance before"
    );
    let case = compared(&[(0, "aspm", "performance", "applied", Some("default"), None)]);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert!(case.figures.ends_with("against 1000 ns (n 1,001)"), "{}", case.figures);
    // A rank finds settings that other ranks hold, still or already.
    let held = |rank, before| (rank, "cpu_dma_latency", "0 us", "applied", Some(before), None);
    let case = compared(&[held(0, "0 us"), held(1, "0 us")]);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert!(case.figures.ends_with("against 1000 ns (n 1,001)"), "{}", case.figures);
    let case = compared(&[held(0, "2000 us"), none]);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert!(case.figures.ends_with("(n 1,001); without aspm, see the environments"), "{}", case.figures);
}

#[test]
fn environments_are_compared_by_what_sets_them_apart() {
    let memory = (0, "memory", "locked", "applied", Some("not locked"), None);
    let shield = (0, "cpuset", "shield", "not_permitted", None, Some("it takes root"));
    let points =
        [in_environment("event", 1000, &[memory]), in_environment("optimised", 1001, &[memory, shield])];
    let finding = finding(&json!({
        "kind": "change", "of": {"environment": "optimised"}, "against": {"environment": "event"}, "holds": "> 0 %",
    }));
    assert_eq!(
        only(&finding, &points).verdict.text(true),
        "not measured: optimised did not differ from event: cpuset not permitted (it takes root)"
    );
}

#[test]
fn a_gap_in_a_series_is_said() {
    let mut points = over_sizes("UC", &[1250, 1260, 1255]);
    points[1].status = measure::record::Status::Failed { error: "gone".to_owned() };
    (points[1].latency, points[1].kinds) = (None, Vec::new());
    let case = only(&finding(&json!({"kind": "flat", "x": "size_bytes", "holds": "< 5 %"})), &points);
    assert_eq!(case.verdict, Verdict::Reproduced);
    assert!(case.figures.ends_with("; not measured at 1 of 3 x: it failed: gone"), "{}", case.figures);
    assert_eq!(case.doubts.text(), None, "a failed point is not part of the number");
}

/// The published size decides between a reproduction and another effect of the same direction.
#[test]
fn a_direction_alone_is_no_reproduction_of_a_size() {
    let sized = |matches: &str| Finding {
        matches: Some(measure::finding::Range::parse(matches).unwrap()),
        ..change("< 0 %")
    };
    let points = polls(1200, 3600);
    // The number is -66.7 %, from -66.8 % to -66.5 %.
    assert_eq!(only(&sized("-80 % .. -50 %"), &points).verdict, Verdict::Reproduced);
    assert_eq!(only(&sized("-66.6 % .. -50 %"), &points).verdict, Verdict::Reproduced);
    assert_eq!(only(&sized("-40 % .. -10 %"), &points).verdict, Verdict::OtherSize);
    assert_eq!(only(&sized("-40 % .. -10 %"), &polls(3600, 1200)).verdict, Verdict::Contradicted(""));
    let sized = [sized("-40 % .. -10 %")];
    assert_eq!(
        summary(&answer(&sized, &points), true),
        "0 reproduced, 1 same direction, other size, 0 inconclusive, 0 contradicted, 0 not measured, of 1 case"
    );
}

#[test]
fn claims_about_networks_need_one() {
    let run = |devices: Value, hosts: [&str; 2]| -> Run {
        let environments = hosts.map(|hostname| json!({"rank": 0, "hostname": hostname, "facts": {}}));
        serde_json::from_value(json!({
            "schema_version": 1, "program": {"name": "rdmascope", "version": "0"}, "command": [], "started": "",
            "title": "", "quick": false, "plan": {}, "points_planned": 0, "figures": [], "findings": [],
            "devices": devices, "environments": environments, "overheads": [], "warnings": [],
        }))
        .unwrap()
    };
    let device = |name: &str, provider: &str| json!([{"rank": 0, "name": name, "provider": provider, "attributes": {}}]);
    let softdev = run(device("softdev0", "softdev (software device in user space)"), ["a", "a"]);
    assert_eq!(no_network(&softdev), Some("the software device is no network"));
    assert_eq!(no_network(&run(device("mlx5_0", "libibverbs"), ["a", "a"])), None);
    assert!(no_network(&run(json!([]), ["a", "a"])).is_some());
    assert_eq!(no_network(&run(json!([]), ["a", "b"])), None);
    let network = Finding { scope: Some(Scope::Network), ..change("< 0 %") };
    let host = Finding { scope: Some(Scope::Host), ..change("< 0 %") };
    // Claims of papers are about networks, others about the host, unless the plan says otherwise.
    let of_paper = Finding { source: Some("a paper".to_owned()), ..change("< 0 %") };
    assert_eq!([of_paper.scope(), change("< 0 %").scope()], [Scope::Network, Scope::Host]);
    let both = [network, host];
    let points = polls(1200, 3600);
    let answers = super::answer(&both, known(&points), no_network(&softdev));
    assert_eq!(
        answers.iter().map(|answer| answer.judges(&answer.cases[0])).collect::<Vec<_>>(),
        [false, true]
    );
    // Where nothing was measured, there is nothing to judge.
    assert!(answers[0].judges(&Case::without_figure(String::new(), "no point".to_owned())));
    assert_eq!(
        summary(&answers, true),
        "1 reproduced, 0 inconclusive, 0 contradicted, 1 not judged, 0 not measured, of 2 cases; claims about networks \
         are not judged: the software device is no network"
    );
}
