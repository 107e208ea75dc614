//! Synthetic round trips with known parameters.

use measure::random::Random;
use measure::record::{LatencyKind, Point};
use measure::stats;
use serde_json::{Value, json};

use super::super::{loggp_text, rounds};
use super::*;
use crate::known;

/// L, o, g in ns and G in ns/B.
const TRUTH: [f64; 4] = [600.0, 80.0, 200.0, 0.2];
const BURST: u64 = 16;
const SIZES: [u64; 7] = [1, 64, 256, 1024, 4096, 16384, 65536];

fn gap(size: u64) -> f64 {
    TRUTH[2] + (size - 1) as f64 * TRUTH[3]
}

fn single(size: u64) -> f64 {
    2.0 * (TRUTH[0] + 2.0 * TRUTH[1] + (size - 1) as f64 * TRUTH[3])
}

/// The median of rounds that scatter by 1 %.
fn round(messages: u64, pause: u64, size: u64, truth: f64, random: &mut Random) -> Round {
    let samples: Vec<u64> =
        (0..200).map(|_| (1000.0 * truth * (0.01 * random.normal()).exp()).round() as u64).collect();
    let latency = stats::latency(LatencyKind::Prtt, &samples, &[]).unwrap();
    let [low, high] = latency.p50_ci95_ns.unwrap().map(|ns| ns as f64 / 1000.0);
    Round { messages, pause, size, ns: Estimate { value: latency.p50_ns as f64 / 1000.0, low, high } }
}

/// Rounds of all sizes; the limit of a burst scatters by 1 % from one size to the next.
fn synthetic(random: &mut Random) -> Rounds {
    let mut all = Vec::new();
    for size in SIZES {
        let pause = if size < 4096 { 2000 } else { 50_000 };
        let further = (BURST - 1) as f64;
        let burst = single(size) + further * gap(size) * (0.01 * random.normal()).exp();
        let paused = single(size) + further * (TRUTH[1] + pause as f64);
        all.push(round(1, 0, size, single(size), random));
        all.push(round(BURST, 0, size, burst, random));
        all.push(round(BURST, pause, size, paused, random));
    }
    Rounds { title: "synthetic".to_owned(), way: Vec::new(), rounds: all, steps: Vec::new(), unstable: 0 }
}

#[test]
fn the_truth_lies_in_95_of_100_intervals() {
    let mut random = Random(1);
    let mut inside = [0; 4];
    let mut unlikely = 0;
    for _ in 0..1000 {
        let model = LogGp::of(&synthetic(&mut random)).unwrap();
        let found = [model.latency.unwrap(), model.overhead.unwrap(), model.gap, model.gap_per_byte];
        for ((inside, truth), found) in inside.iter_mut().zip(TRUTH).zip(found) {
            *inside += u32::from((found.low..=found.high).contains(&truth));
        }
        unlikely += u32::from(model.chance < 0.05);
    }
    assert!(inside.iter().all(|inside| (930..=970).contains(inside)), "{inside:?}");
    assert!((30..=70).contains(&unlikely), "{unlikely}");
}

/// A point of a round trip, or of a call, over RC.
fn point(axes: &Value, pattern: &str, rest: &Value) -> Point {
    let mut point = json!({
        "id": 0, "experiment": "e", "pattern": pattern, "status": "measured", "repetition": 0, "wall_ns": 0, "axes": axes,
    });
    point.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    serde_json::from_value(point).unwrap()
}

fn points(ns: impl Fn(u64, u64, u64) -> f64) -> Vec<Point> {
    let mut points = Vec::new();
    for (messages, pause) in [(1, 0), (1, 2000), (16, 0), (16, 2000), (16, 50_000)] {
        for size in SIZES {
            let axes = json!({ "service": "RC", "burst": messages, "pause_ns": pause, "size_bytes": size });
            let ns = ns(messages, pause, size) as u64;
            let latency = stats::latency(LatencyKind::Prtt, &[ns; 10], &[]).unwrap();
            points.push(point(&axes, "prtt", &json!({ "latency": latency })));
        }
    }
    for (step, ns) in [("post_send", 70.0), ("poll_receive", 30.0), ("post_receive", 12.0)] {
        let latency = stats::latency(LatencyKind::Call, &[100; 10], &[]).unwrap();
        let cost = json!({ "step": step, "calls": 10, "ns": ns, "ci95_ns": [ns, ns], "stamp_ns": 1.0 });
        let axes = json!({ "service": "RC", "step": step, "size_bytes": 1 });
        points.push(point(&axes, "overhead", &json!({ "latency": latency, "cost": cost })));
    }
    points
}

fn truth(messages: u64, pause: u64, size: u64) -> f64 {
    single(size) + (messages - 1) as f64 * (TRUTH[1] + pause as f64).max(gap(size))
}

#[test]
fn what_is_printed_says_both_ways_and_what_is_missed() {
    let said = |points: &[Point]| super::super::text(&[], known(points), &[]).unwrap();
    let text = said(&points(truth));
    for part in [
        "LogGP from PRTT(n, d, s), n = 16",
        "   L           600.",
        "   o            80.",
        "   g           200.",
        "0.2000 ns/B",
        "40.0 Gb/s",
        "   o_s          70.0 ns",
        "   o_r          42.0 ns",
        "   L           648.0 ns    [648.0, 648.0]     with o_s + o_r instead of 2o",
        "n=16 d=50us",
        " No point is missed by more than 10 %.",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!text.contains("lack of fit") && !text.contains("Hockney"), "{text}");
    // A pause that ends late.
    let late = |messages, pause, size| {
        truth(messages, pause, size) + if pause > 0 { (messages - 1) as f64 * 500.0 } else { 0.0 }
    };
    assert!(said(&points(late)).contains(" L is negative: o, which includes the overshoot of pauses"));
    // Another protocol from 4 KiB on: three times the time for a byte, and bursts are not on the
    // line.
    let changed = |messages, pause, size| {
        let later = if size >= 4096 && pause == 0 && messages > 1 { 3.0 } else { 1.0 };
        later * truth(messages, pause, size)
    };
    let text = said(&points(changed));
    for part in ["lack of fit", " Missed by more than 10 %:\n", "   n=16 "] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}

#[test]
fn what_does_not_determine_it_is_said() {
    let none = |keep: &dyn Fn(&Round) -> bool| {
        let mut rounds = synthetic(&mut Random(3));
        rounds.rounds.retain(keep);
        loggp_text::rounds(&rounds)
    };
    assert!(none(&|round| round.messages == 1).contains("were measured at 0 sizes, and three are needed"));
    assert!(none(&|round| round.size < 100).contains("were measured at 2 sizes"));
    let text = none(&|round| round.pause == 0);
    assert!(text.contains("No pause is as long as a round") && !text.contains("\n   L  "), "{text}");
    let mut flat = synthetic(&mut Random(3));
    let first = flat.rounds[0].ns;
    flat.rounds[1].ns = first;
    let text = loggp_text::rounds(&flat);
    assert!(text.contains("a burst of 16 messages of 1 B takes no longer than one of them"), "{text}");
}

#[test]
fn rounds_are_apart_by_all_but_n_d_and_s() {
    let mut points = points(truth);
    let other: Vec<Point> = points
        .iter()
        .cloned()
        .map(|mut point| {
            point.axes.insert("service".to_owned(), json!("UC"));
            point
        })
        .collect();
    points.extend(other);
    let all = rounds::measured(&points);
    let titles: Vec<&str> = all.iter().map(|rounds| rounds.title.as_str()).collect();
    assert_eq!(titles, ["e: service RC", "e: service UC"]);
    assert!(all.iter().all(|rounds| rounds.rounds.len() == 4 * SIZES.len() && rounds.steps.len() == 3));
}
