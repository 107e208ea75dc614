//! How much more the slower of several modes cost than the best one: the rows of a figure of the
//! kind `costs`, computed from the points.
//!
//! The best mode is the one with the best number of all that were measured. The cost of another
//! mode is a factor of 1 or more: of times its number divided by the best, of throughputs the best
//! divided by its number. A mode that was not measured has no cost, and a reason.

use measure::figure::{Better, CostRow};
use measure::record::Point;
use measure::selection;
use measure::stats::shape::Estimate;
use serde_json::Value;

use crate::folded::{Doubts, Measured, NO_POINT, digits, fold};
use crate::list::grouped;
use crate::reason::{self, Merged};
use crate::{Points, environments, value};

/// The modes of a row for one value of the axes that split it.
#[derive(Debug, PartialEq)]
pub(crate) struct Case {
    /// The values of these axes, e.g. `allgather, ranks 2`; empty without any.
    pub(crate) label: String,
    /// The best first, modes that were not measured last.
    pub(crate) modes: Vec<Mode>,
}

/// One of the modes.
#[derive(Debug, PartialEq)]
pub(crate) struct Mode {
    /// The values of its axes; empty for all modes that were not measured, if they have one reason.
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
}

/// The result of a mode.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Measured {
        /// Its number, with the count of its samples.
        number: String,
        /// Its cost.
        cost: String,
        /// A point of it.
        id: u64,
        doubts: Doubts,
    },
    NotMeasured(String),
}

/// The cases of a row. If none of its modes was measured, for the same reasons, that is one case.
pub(crate) fn cases(row: &CostRow, run: Points<'_>) -> Vec<Case> {
    let picked = run.points.iter().filter(|point| row.picks(&point.experiment, &point.axes));
    let values = |names: &[String], point: &Point| selection::values(names, &point.experiment, &point.axes);
    let groups = grouped(picked.map(|point| (values(&row.each, point), point)));
    let case = |(key, points): (Vec<Value>, Vec<&Point>)| {
        let modes = grouped(points.into_iter().map(|point| (values(&row.modes, point), point)));
        let modes = compared(row, modes, run);
        let modes = match whole_reason(&modes) {
            Some(reason) => vec![unknown(String::new(), reason)],
            None => modes,
        };
        Case { label: value::labels(row.each.iter().zip(&key)), modes }
    };
    let mut cases: Vec<Case> = groups.into_iter().map(case).collect();
    let is_unknown =
        |case: &Case| case.modes.iter().all(|mode| matches!(mode.outcome, Outcome::NotMeasured(_)));
    if cases.iter().all(|case| is_unknown(case) && case.modes == cases[0].modes) {
        cases.truncate(1);
        cases.iter_mut().for_each(|case| case.label.clear());
    }
    match whole_reason(cases.iter().flat_map(|case| &case.modes)) {
        Some(reason) => vec![Case { label: String::new(), modes: vec![unknown(String::new(), reason)] }],
        None => cases,
    }
}

/// The one reason for which none of some modes was measured; `None` where there are several
/// reasons, or one mode was measured.
fn whole_reason<'a>(modes: impl IntoIterator<Item = &'a Mode>) -> Option<String> {
    let mut reasons = Vec::new();
    for mode in modes {
        match &mode.outcome {
            Outcome::Measured { .. } => return None,
            Outcome::NotMeasured(why) => reason::add(&mut reasons, why, ""),
        }
    }
    match reasons.as_slice() {
        [] => Some(NO_POINT.to_owned()),
        [one] => Some(one.text()),
        _ => None,
    }
}

fn unknown(name: String, reason: String) -> Mode {
    Mode { name, outcome: Outcome::NotMeasured(reason) }
}

fn compared(row: &CostRow, modes: Vec<(Vec<Value>, Vec<&Point>)>, run: Points<'_>) -> Vec<Mode> {
    let mut known: Vec<(String, Measured, Vec<&Point>)> = Vec::new();
    // Modes with the same reason share a line.
    let mut missing: Vec<Merged> = Vec::new();
    for (key, points) in modes {
        // A mode's name has the axes that the mode has.
        let name = value::labels(row.modes.iter().zip(&key).filter(|(_, at)| !at.is_null()));
        match fold(&points, run.patterns, &row.y, row.unit) {
            Ok(measured) => known.push((name, measured, points)),
            Err(why) => reason::add(&mut missing, &why, &name),
        }
    }
    let better = better(row, run, known.first().map(|(_, measured, _)| measured));
    known.sort_by(|(_, a, _), (_, b, _)| match better {
        Better::Less => a.y.value.total_cmp(&b.y.value),
        Better::More => b.y.value.total_cmp(&a.y.value),
    });
    let measured = known.iter().enumerate().map(|(index, (name, measured, points))| {
        let cost = match &known[..] {
            [_] => "nothing to compare it with".to_owned(),
            [(_, best, best_points), ..] if index > 0 => {
                costs(measured, best, better, environments::compare(points, best_points))
            }
            _ => "best".to_owned(),
        };
        let number = measured.text();
        let doubts = measured.doubts.clone();
        Mode { name: name.clone(), outcome: Outcome::Measured { number, cost, id: measured.id, doubts } }
    });
    let missing = missing.iter().map(|merged| unknown(merged.labels.join("; "), merged.text()));
    measured.chain(missing).collect()
}

/// Whether smaller or larger numbers are better: as the plan says, else as the measured program
/// reports, else as is usual for the quantity.
fn better(row: &CostRow, run: Points<'_>, measured: Option<&Measured>) -> Better {
    let said = measured.and_then(|measured| Some(measured.counted.as_ref()?.better));
    let known = run.patterns.find(&row.y).and_then(|found| found.unit().better());
    row.better.or(said).or(known).unwrap_or_default()
}

/// The factor with its interval, and whether it differs from 1 by more than the error.
fn costs(of: &Measured, best: &Measured, better: Better, environments: Result<String, String>) -> String {
    let partly = match environments {
        Ok(partly) => partly,
        Err(reason) => return format!("not compared: {reason}"),
    };
    let ratio = match better {
        Better::Less => of.y.over(best.y),
        Better::More => best.y.over(of.y),
    };
    let Some(Estimate { value, low, high }) = ratio.filter(|ratio| ratio.value.is_finite()) else {
        return "no factor, because one of the numbers is zero".to_owned();
    };
    let number = |end: f64| format!("{end:.*}", digits(end));
    let interval = if of.lacks_interval || best.lacks_interval {
        " (one run, no interval)".to_owned()
    } else {
        let is_apart = if low > 1.0 { "" } else { ": within the error of the best" };
        format!(" [{}, {}]{is_apart}", number(low), number(high))
    };
    format!("x {}{interval}{partly}", number(value))
}

#[cfg(test)]
mod tests {
    use measure::record::{LatencyKind, Status};
    use measure::stats;
    use serde_json::json;

    use super::*;
    use crate::known;

    fn row(keys: &Value) -> CostRow {
        let mut json = json!({
            "what": "W", "experiments": ["e"], "modes": ["endpoint", "link_layer"], "y": "latency.p50_ns", "unit": "us",
        });
        json.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        serde_json::from_value(json).unwrap()
    }

    /// A point with a median in ns, of 1001 samples from 5 % below to 5 % above.
    fn point(axes: Value, p50_ns: u64) -> Point {
        let point = json!({
            "id": p50_ns, "experiment": "e", "pattern": "ping-pong", "status": "measured", "repetition": 0, "wall_ns": 1,
            "axes": axes,
        });
        let mut point: Point = serde_json::from_value(point).unwrap();
        let samples: Vec<u64> = (0..1001).map(|i| p50_ns - p50_ns / 20 + i * p50_ns / 10_000).collect();
        point.latency = stats::latency(LatencyKind::RttHalf, &samples, &[]);
        point
    }

    fn missing(axes: Value, reason: &str) -> Point {
        Point { status: Status::NotMeasured { reason: reason.to_owned() }, latency: None, ..point(axes, 1) }
    }

    /// Each case with its modes, as `name: number, cost`.
    fn said(row: &CostRow, points: &[Point]) -> Vec<(String, Vec<String>)> {
        let mode = |mode: Mode| match mode.outcome {
            Outcome::Measured { number, cost, .. } => format!("{}: {number}, {cost}", mode.name),
            Outcome::NotMeasured(reason) => format!("{}: {reason}", mode.name),
        };
        let case = |case: Case| (case.label, case.modes.into_iter().map(mode).collect());
        cases(row, known(points)).into_iter().map(case).collect()
    }

    #[test]
    fn every_mode_stands_against_the_best_one() {
        let points = [
            point(json!({ "endpoint": "tcp", "link_layer": "ethernet" }), 4000),
            point(json!({ "endpoint": "verbs", "link_layer": "infiniband" }), 1000),
            missing(json!({ "endpoint": "verbs", "link_layer": "ethernet" }), "no such link"),
            point(json!({ "endpoint": "shmem" }), 1002),
        ];
        let expected = [
            "verbs, infiniband: 1 us (n 1,001), best",
            "shmem: 1.002 us (n 1,001), x 1.00 [0.995, 1.01]: within the error of the best",
            "tcp, ethernet: 4 us (n 1,001), x 4.00 [3.98, 4.03]",
            "verbs, ethernet: no such link",
        ];
        assert_eq!(said(&row(&json!({})), &points), [(String::new(), expected.map(str::to_owned).to_vec())]);
    }

    #[test]
    fn larger_throughputs_are_the_better_ones() {
        let carried = |endpoint: &str, bytes_per_s: f64| {
            let mut point = point(json!({ "endpoint": endpoint }), 1000);
            point.throughput = serde_json::from_value(json!({
                "bytes": 1, "messages": 1, "bytes_per_s": bytes_per_s, "messages_per_s": 1.0, "direction": "uni",
            }))
            .unwrap();
            point
        };
        let points = [carried("tcp", 1e9), carried("verbs", 2e9)];
        let keys = json!({ "y": "throughput.bytes_per_s", "unit": "MB/s", "modes": ["endpoint"] });
        let expected = ["verbs: 2000 MB/s, best", "tcp: 1000 MB/s, x 2.00 (one run, no interval)"];
        assert_eq!(said(&row(&keys), &points)[0].1, expected);
        let more = row(&json!({ "better": "more" }));
        let points = [point(json!({ "endpoint": "a" }), 10), point(json!({ "endpoint": "b" }), 20)];
        assert!(said(&more, &points)[0].1[0].starts_with("b: "), "as the plan says");
    }

    #[test]
    fn modes_are_compared_for_each_value_and_alone_with_nothing() {
        let at = |endpoint: &str, size: u64| json!({ "endpoint": endpoint, "size_bytes": size });
        let points =
            [point(at("verbs", 64), 1000), point(at("tcp", 64), 2000), point(at("verbs", 1024), 1500)];
        let cases = said(&row(&json!({ "each": ["size_bytes"] })), &points);
        assert_eq!((cases[0].0.as_str(), cases[0].1.len()), ("64 B", 2));
        let alone = vec!["verbs: 1.500 us (n 1,001), nothing to compare it with".to_owned()];
        assert_eq!(cases[1], ("1 KiB".to_owned(), alone));
        let mixed = said(&row(&json!({})), &points);
        assert_eq!(mixed[0].1[1], "verbs: its points differ in size_bytes", "no repetitions");
    }

    #[test]
    fn what_was_not_measured_is_said_once() {
        let at = |endpoint: &str, size: u64| json!({ "endpoint": endpoint, "size_bytes": size });
        let each = row(&json!({ "each": ["size_bytes"] }));
        let only = |reason: &str| vec![(String::new(), vec![reason.to_owned()])];
        assert_eq!(said(&each, &[]), only(": this run has no such point"));
        let none = [missing(at("verbs", 64), "no device"), missing(at("tcp", 64), "no device")];
        assert_eq!(said(&each, &none), only(": no device"));
        let two =
            |size| [missing(at("verbs", size), "no device here"), missing(at("tcp", size), "a firewall")];
        let both = ["verbs: no device here".to_owned(), "tcp: a firewall".to_owned()];
        assert_eq!(said(&each, &[two(64), two(128)].concat()), [(String::new(), both.to_vec())]);
    }

    #[test]
    fn environments_that_did_not_differ_cost_nothing() {
        let tuned = |environment: &str| {
            let mut point = point(json!({ "environment": environment }), 1000);
            let condition = json!({
                "rank": 0, "technique": "tuned", "asked": environment, "outcome": "not_applied", "reason": "no tuned-adm",
            });
            point.conditions = vec![serde_json::from_value(condition).unwrap()];
            point
        };
        let points = [tuned("one"), tuned("other")];
        let modes = said(&row(&json!({ "modes": ["environment"] })), &points).remove(0).1;
        assert!(
            modes[1].contains("not compared: other did not differ from one: tuned not applied"),
            "{modes:?}"
        );
    }
}
