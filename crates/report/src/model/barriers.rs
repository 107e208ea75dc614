//! Barriers by dissemination in n ways over the number of ranks and over n: the n that was the
//! fastest, and the n that LogfP predicts.

use std::collections::BTreeMap;

use measure::record::Point;
use measure::stats::shape::Estimate;
use measure::text::plain;
use serde_json::Value;

use super::column::title;
use super::dissemination::{RANKS, WAYS, rounds};
use super::fans::Fan;
use super::logfp::LogfP;
use super::rounds::{Way, is_measured, of_runs, told_apart, unstable, without};
use crate::list::grouped;

/// Barriers that differ only in the number of ranks and in n.
#[derive(Debug)]
pub(super) struct Barriers {
    title: String,
    way: Way,
    /// By number of ranks, n and the median of the slowest rank, in ns.
    times: BTreeMap<u64, BTreeMap<u64, Estimate>>,
    /// Unstable points.
    unstable: usize,
}

/// The barriers of a run.
pub(super) fn measured(points: &[Point]) -> Vec<Barriers> {
    let is_one = |point: &&Point| {
        let is = |axis: &str, word: &str| point.axes.get(axis).and_then(Value::as_str) == Some(word);
        is_measured(point) && is("collective", "barrier") && is("endpoint", "verbs") && key(point).is_some()
    };
    let all = grouped(points.iter().filter(is_one).map(|point| (without(point, &OWN), point)));
    let ways: Vec<Way> = all.iter().map(|(way, _)| way.clone()).collect();
    let of_way = |(way, own): (Way, Vec<&Point>)| {
        let title = title(&own[0].experiment, &told_apart(&way, &ways));
        Barriers { title, times: times(&own), unstable: unstable(&own), way }
    };
    all.into_iter().map(of_way).collect()
}

/// The number of ranks and the n of a point, if such a barrier is possible.
fn key(point: &Point) -> Option<(u64, u64)> {
    let number = |axis: &str| point.axes.get(axis).and_then(Value::as_u64);
    let ranks = number("ranks").filter(|ranks| RANKS.contains(ranks))?;
    let ways = number("ways").filter(|ways| WAYS.contains(ways))?;
    Some((ranks, ways))
}

fn times(points: &[&Point]) -> BTreeMap<u64, BTreeMap<u64, Estimate>> {
    let mut by: BTreeMap<(u64, u64), Vec<&Point>> = BTreeMap::new();
    for point in points {
        if let Some(key) = key(point) {
            by.entry(key).or_default().push(point);
        }
    }
    let mut times: BTreeMap<u64, BTreeMap<u64, Estimate>> = BTreeMap::new();
    for ((ranks, ways), own) in by {
        if let Some(time) = of_runs(&own, "slowest.p50_ns") {
            times.entry(ranks).or_default().insert(ways, time);
        }
    }
    times
}

/// The text on the barriers, with the rounds of fan-out that have the same settings.
pub(super) fn text(barriers: &Barriers, fans: &[Fan]) -> String {
    let of_way = fans.iter().filter(|fan| fan.is_of(&barriers.way));
    let mut models = of_way.filter_map(|fan| Some((fan, LogfP::of(&fan.rounds).ok()?)));
    let first = models.next();
    let others = models.count();
    let model = first.as_ref().map(|(_, model)| model);
    let mut out = format!(
        "{}\nmeasured, barriers by dissemination in n ways: the slowest rank's median\n\n {:>5} {:>3} {:>7} {:>13} {:>11}\n",
        plain(&barriers.title),
        "ranks",
        "n",
        "rounds",
        "measured [us]",
        "LogfP [us]"
    );
    let mut said = String::new();
    for (ranks, times) in &barriers.times {
        for (ways, time) in times {
            let told = model.map(|model| format!("{:.3}", model.barrier(*ranks, *ways) / 1e3));
            let rounds = rounds(*ranks, *ways).count();
            let us = time.value / 1e3;
            out += &format!(
                " {ranks:>5} {ways:>3} {rounds:>7} {us:>13.3} {:>11}\n",
                told.as_deref().unwrap_or("-")
            );
        }
        let times = apart(*ranks, times);
        let suggested = suggested(model, *ranks, &times);
        said += &format!("   {ranks} ranks: {}; {suggested}\n", fastest(&times));
    }
    out += &format!("\n The fastest n:\n{said}");
    if let Some((fan, _)) = first.filter(|_| others > 0) {
        let title = plain(&fan.title);
        out += &format!(" LogfP comes from {title}, the first of {} with the same settings.\n", others + 1);
    }
    if barriers.unstable > 0 {
        out += &format!(" Unstable points, which count like all others: {}.\n", barriers.unstable);
    }
    out
}

/// Selects the n that differ: among few ranks, several n write to the same ranks.
fn apart(ranks: u64, times: &BTreeMap<u64, Estimate>) -> BTreeMap<u64, Estimate> {
    let writes = |ways: u64| rounds(ranks, ways).collect::<Vec<_>>();
    let is_first = |ways: u64| !times.range(..ways).any(|(fewer, _)| writes(*fewer) == writes(ways));
    times.iter().filter(|(ways, _)| is_first(**ways)).map(|(ways, time)| (*ways, *time)).collect()
}

/// The fastest n, and by how much it is faster.
fn fastest(times: &BTreeMap<u64, Estimate>) -> String {
    let best = times.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let (Some((best, time)), Some(one)) = (best, times.get(&1)) else {
        return "n = 1 was not measured".to_owned();
    };
    if *best == 1 {
        return "n = 1 is the fastest that was measured".to_owned();
    }
    let less = 100.0 * (1.0 - time.value / one.value);
    let doubt = if time.high < one.low { "" } else { ", within the errors" };
    format!("n = {best} takes {less:.1} % less time than n = 1{doubt}")
}

/// The n that LogfP predicts among those that were measured.
fn suggested(model: Option<&LogfP>, ranks: u64, times: &BTreeMap<u64, Estimate>) -> String {
    let Some(model) = model else {
        return "no prediction: measure rounds of one to n by RDMA Write (fan-out)".to_owned();
    };
    let told = |ways: &&u64| model.barrier(ranks, **ways);
    match times.keys().min_by(|a, b| told(a).total_cmp(&told(b))) {
        Some(ways) => format!("LogfP predicts n = {ways}"),
        None => String::new(),
    }
}

const OWN: [&str; 3] = ["ranks", "size_bytes", "ways"];

#[cfg(test)]
mod tests {
    use measure::record::LatencyKind;
    use measure::stats;
    use serde_json::json;

    use super::*;

    /// Barriers of 8 ranks and rounds of fan-out, in ns.
    fn points(barriers: &[(u64, u64)]) -> Vec<Point> {
        let point = |axes: Value, kind: LatencyKind, ns: u64| {
            let latency = stats::latency(kind, &[ns; 10], &[]).unwrap();
            let kinds = json!([{ "latency": latency }]);
            json!({
                "id": 0, "experiment": "e", "pattern": "p", "status": "measured", "repetition": 0, "wall_ns": 0,
                "axes": axes, "latency": latency, "kinds": kinds,
            })
        };
        let barrier = |(ways, ns): &(u64, u64)| {
            let axes = json!({
                "endpoint": "verbs", "collective": "barrier", "operation": "write", "ranks": 8, "ways": ways,
                "size_bytes": 0,
            });
            point(axes, LatencyKind::Slowest, *ns)
        };
        // L + 2 o_max of 1 us, o_min of 0.1 us.
        let fan = |n: u64| {
            let axes = json!({ "endpoint": "verbs", "operation": "write", "peers": n, "size_bytes": 8 });
            point(axes, LatencyKind::FanHalf, 1000 + 50 * (n - 1))
        };
        let all = barriers.iter().map(barrier).chain((1..=7).map(fan));
        all.map(|point| serde_json::from_value(point).unwrap()).collect()
    }

    fn said(points: &[Point]) -> String {
        let barriers = measured(points);
        assert_eq!(barriers.len(), 1);
        text(&barriers[0], &super::super::fans::measured(points))
    }

    #[test]
    fn the_fastest_n_stands_beside_the_one_that_logfp_tells() {
        let text = said(&points(&[(1, 3000), (2, 1800), (7, 2000)]));
        assert!(
            text.contains("8 ranks: n = 2 takes 40.0 % less time than n = 1; LogfP predicts n = 7"),
            "{text}"
        );
        // 3 rounds of 1 us; 2 of 1.1 us; one of 1.6 us.
        for (ways, rounds, us) in [(1, 3, "3.000"), (2, 2, "2.200"), (7, 1, "1.600")] {
            let line = text.lines().find(|line| line.starts_with(&format!("     8   {ways}")));
            let cells: Vec<&str> = line.unwrap().split_whitespace().collect();
            assert_eq!((cells[2], cells[4]), (rounds.to_string().as_str(), us), "{text}");
        }
    }

    #[test]
    fn barriers_that_cannot_be_are_left_out() {
        let mut points = points(&[(0, 100), (1, 3000), (2, 1800), (u64::MAX, 100)]);
        let axes = [("ranks", json!(u64::MAX)), ("ranks", json!(0)), ("ways", json!(null))];
        for (point, (axis, value)) in [1, 1, 1].map(|index: usize| points[index].clone()).iter().zip(axes) {
            let mut other = point.clone();
            other.axes.insert(axis.to_owned(), value);
            points.push(other);
        }
        let text = said(&points);
        let rows = text.lines().filter(|line| line.starts_with("     8 ")).count();
        assert!(rows == 2 && text.matches(" ranks: ").count() == 1, "{text}");
    }

    #[test]
    fn unstable_points_and_a_choice_between_fans_are_said() {
        let mut points = points(&[(1, 3000), (2, 1800)]);
        let text = said(&points);
        assert!(!text.contains("unstable") && !text.contains("LogfP is of"), "{text}");
        points[0].unstable = Some("ranks share CPUs".to_owned());
        let others: Vec<Point> = points[2..].to_vec();
        for point in others {
            points.push(Point { experiment: "f".to_owned(), ..point });
        }
        let text = said(&points);
        assert!(text.contains(" Unstable points, which count like all others: 1.\n"), "{text}");
        assert!(text.contains(" LogfP comes from e, the first of 2 with the same settings.\n"), "{text}");
    }

    #[test]
    fn ways_that_write_the_same_are_not_told_apart() {
        let text = said(&points(&[(1, 3000), (7, 1800), (8, 1500)]));
        assert!(text.contains("n = 7 takes 40.0 % less time than n = 1; "), "{text}");
    }

    #[test]
    fn without_rounds_of_the_same_way_logfp_predicts_nothing() {
        let mut points = points(&[(1, 1000), (2, 1100)]);
        points.truncate(2);
        let text = said(&points);
        assert!(text.contains("n = 1 is the fastest that was measured; no prediction: measure"), "{text}");
    }
}
