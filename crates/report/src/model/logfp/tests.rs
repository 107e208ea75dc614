//! Synthetic rounds with known parameters.

use measure::random::Random;
use measure::record::{LatencyKind, Point};
use measure::stats;
use serde_json::json;

use super::*;
use crate::known;

/// R(1) in ns, o_min in ns, f and g in ns.
const TRUTH: [f64; 4] = [4000.0, 120.0, 5.4, 400.0];

/// Rounds of up to n peers that scatter by 1 % from one n to the next, each the median of exact
/// samples.
fn synthetic(truth: &[f64], most: u64, random: &mut Random) -> Vec<(u64, Estimate)> {
    let half = |n| Estimate::exact(round(truth, n as f64) / 2.0 * (0.01 * random.normal()).exp());
    (1..=most).zip((1..=most).map(half)).collect()
}

#[test]
fn the_truth_lies_in_95_of_100_intervals() {
    let mut random = Random(1);
    let mut inside = [0; 4];
    for _ in 0..1000 {
        let model = LogfP::of(&synthetic(&TRUTH, 15, &mut random)).unwrap();
        let (free, gap) = model.gap.unwrap();
        let found = [model.single, model.overhead_min, free, gap];
        for ((inside, truth), found) in inside.iter_mut().zip(TRUTH).zip(found) {
            *inside += u32::from((found.low..=found.high).contains(&truth));
        }
    }
    assert!(inside.iter().all(|inside| (930..=970).contains(inside)), "{inside:?}");
}

#[test]
fn where_all_messages_are_free_there_is_no_f() {
    let mut random = Random(2);
    let mut inside = [0; 2];
    let mut bent = 0;
    for _ in 0..400 {
        let model = LogfP::of(&synthetic(&TRUTH[..2], 15, &mut random)).unwrap();
        bent += u32::from(model.gap.is_some());
        for ((inside, truth), found) in inside.iter_mut().zip(TRUTH).zip([model.single, model.overhead_min]) {
            *inside += u32::from((found.low..=found.high).contains(&truth));
        }
    }
    assert!(bent <= 20, "{bent}");
    assert!(inside.iter().all(|inside| (365..=392).contains(inside)), "{inside:?} {bent}");
}

/// Points of fan-out, and of bursts of a LogGP model that has the same rounds up to f.
fn points(most: u64) -> Vec<Point> {
    let mut points: Vec<serde_json::Value> = Vec::new();
    let mut add = |pattern: &str, kind: LatencyKind, axes: serde_json::Value, ns: f64| {
        let latency = stats::latency(kind, &[ns as u64; 10], &[]).unwrap();
        points.push(json!({
            "id": points.len(), "experiment": pattern, "pattern": pattern, "status": "measured", "repetition": 0,
            "wall_ns": 0, "axes": axes, "latency": latency,
        }));
    };
    for n in 1..=most {
        let ns = round(&TRUTH, n as f64) / 2.0;
        add("fan-out", LatencyKind::FanHalf, json!({ "service": "RC", "peers": n, "size_bytes": 1 }), ns);
        add("fan-out", LatencyKind::FanHalf, json!({ "service": "RC", "peers": n, "size_bytes": 64 }), ns);
    }
    for (messages, pause) in [(1u64, 0u64), (16, 0), (16, 20_000)] {
        for size in [1u64, 1001, 10_001] {
            let gap = 120.0 + 0.2 * (size - 1) as f64;
            let single = 4000.0 + 0.4 * (size - 1) as f64;
            let ns =
                single + (messages - 1) as f64 * gap.max(if pause > 0 { 100.0 + pause as f64 } else { 0.0 });
            let axes = json!({ "service": "RC", "burst": messages, "pause_ns": pause, "size_bytes": size });
            add("prtt", LatencyKind::Prtt, axes, ns);
        }
    }
    points.into_iter().map(|point| serde_json::from_value(point).unwrap()).collect()
}

#[test]
fn what_is_printed_stands_beside_what_bursts_say() {
    let text = crate::model::text(&[], known(&points(15)), &[]).unwrap();
    for part in [
        "fan-out\nmeasured, rounds of one to n at 1 B\n",
        "   L+2 o_max    2000.0 ns",
        "   o_max         100.0 ns",
        "   L            1800.0 ns",
        "   o_min         120.0 ns",
        "   f               5.4",
        "   g             400.0 ns",
        "     7          2.680       2.360     -11.9       2.680 ",
        " Missed by more than 10 %:\n   LogGP n=7: -",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!text.contains("   LogfP n=") && !text.contains("at 64 B"), "{text}");
}

#[test]
fn what_does_not_determine_it_is_said() {
    let said = |most, keep: fn(&Point) -> bool| {
        let points: Vec<Point> = points(most).into_iter().filter(keep).collect();
        crate::model::text(&[], known(&points), &[]).unwrap()
    };
    assert!(!said(2, |_| true).contains("LogfP"), "any two n are on a line");
    assert!(said(4, |_| true).contains(" f and g need rounds of 6 n; there are 4."));
    let text = said(15, |point| point.pattern == "fan-out");
    assert!(text.contains("LogGP does not apply") && !text.contains("   o_max "), "{text}");
}
