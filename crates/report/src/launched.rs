//! Combinations of axes that several launches measured, as medians over the launches.
//!
//! # Invariants
//!
//! * If several launches measured the points of a combination, a launch counts as one repetition:
//!   its points give one number, and intervals are those of the launches' numbers. Counting the
//!   repetitions of a launch as separate runs would make intervals too narrow, because they
//!   resemble each other.

use std::collections::BTreeSet;

use measure::quantity::{self, Measured};
use measure::record::{Axes, Point, Status};
use measure::stats::shape::Estimate;
use serde_json::Value;

use crate::repeated::{path, printed, varies};

/// Groups items by the launch of their point, in the order of the items. Each item is a group if
/// all have the same launch, or if the record knows none.
pub(crate) fn by_launch<T>(items: &[T], point: impl Fn(&T) -> &Point) -> Vec<Vec<&T>> {
    let launch = |item: &T| point(item).launch;
    let mut launches: Vec<(Option<u32>, Vec<&T>)> = Vec::new();
    for item in items {
        match launches.iter_mut().find(|(known, _)| *known == launch(item)) {
            Some((_, group)) => group.push(item),
            None => launches.push((launch(item), vec![item])),
        }
    }
    match launches.len() {
        0 | 1 => items.iter().map(|item| vec![item]).collect(),
        _ => launches.into_iter().map(|(_, group)| group).collect(),
    }
}

/// Whether an experiment of a resolved plan asks for several launches.
pub fn asked(plan: &Value) -> bool {
    plan["experiments"].as_array().is_some_and(|all| all.iter().any(is_asked))
}

/// The medians over the launches for the experiments that ask for several launches, a line for each
/// combination; empty without any.
pub fn text(plan: &Value, points: &[Point]) -> String {
    let experiments = plan["experiments"].as_array().into_iter().flatten();
    let names: Vec<&str> =
        experiments.filter(|one| is_asked(one)).filter_map(|one| one["name"].as_str()).collect();
    let mut all: Vec<(&Point, Vec<&Point>)> = Vec::new();
    for point in points.iter().filter(|point| names.contains(&point.experiment.as_str())) {
        let is_it =
            |(known, _): &&mut (&Point, _)| known.experiment == point.experiment && known.axes == point.axes;
        match all.iter_mut().find(is_it) {
            Some((_, group)) => group.push(point),
            None => all.push((point, vec![point])),
        }
    }
    let of = |(first, group): &(&Point, Vec<&Point>)| {
        let same = all.iter().filter(|(other, _)| other.experiment == first.experiment);
        let axes: Vec<&Axes> = same.map(|(other, _)| &other.axes).collect();
        line(first, group, |name| varies(&axes, name))
    };
    let lines: Vec<String> = all.iter().filter_map(of).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n medians over the launches, with their interval:\n{}", lines.concat()),
    }
}

fn is_asked(experiment: &Value) -> bool {
    experiment["launches"].as_u64().is_some_and(|launches| launches > 1)
}

/// The line of a combination.
fn line(first: &Point, group: &[&Point], varies: impl Fn(&str) -> bool) -> Option<String> {
    let measured: Vec<&Point> =
        group.iter().copied().filter(|point| point.status == Status::Measured).collect();
    let path = path(measured.first()?);
    let found = quantity::find(path)?;
    let numbers: Vec<(&Point, Measured)> =
        measured.iter().filter_map(|point| Some((*point, found.measured(point)?))).collect();
    let launches = by_launch(&numbers, |(point, _)| point);
    // With one launch only, each repetition counts by itself.
    let count = numbers.iter().map(|(point, _)| point.launch).collect::<BTreeSet<_>>().len();
    let launches_text = if count == 1 { "1 launch".to_owned() } else { format!("{count} launches") };
    let launch = |runs: Vec<&(&Point, Measured)>| {
        Estimate::of_runs(&runs.iter().map(|(_, number)| number.estimate).collect::<Vec<_>>())
    };
    let Estimate { value, low, high } =
        Estimate::of_runs(&launches.into_iter().filter_map(launch).collect::<Vec<_>>())?;
    let axes = measure::text::axes_text(&first.axes, varies);
    let kind = numbers.first()?.0.latency.as_ref().filter(|_| path.starts_with("latency."));
    let kind = kind.map_or_else(String::new, |latency| format!("{} ", latency.kind.name()));
    let without = group.len() - measured.len();
    let without = match without {
        0 => String::new(),
        points => format!(", {points} of {} points without numbers", group.len()),
    };
    let [value, low, high] = [value, low, high].map(|number| printed(path, number));
    Some(format!(
        "   {} ({axes}): {kind}{value} ({low} to {high}) of {launches_text}{without}\n",
        measure::text::plain(&first.experiment)
    ))
}

#[cfg(test)]
mod tests {
    use measure::record::LatencyKind;
    use measure::stats;
    use serde_json::json;

    use super::*;

    fn point(repetition: u32, launch: Option<u32>, p50_ns: u64) -> Point {
        let latency = stats::latency(LatencyKind::RttHalf, &[p50_ns; 9], &[]);
        let mut point: Point = serde_json::from_value(json!({
            "id": repetition, "experiment": "e", "pattern": "ping-pong", "axes": { "size_bytes": 8 },
            "status": "measured", "repetition": repetition, "iterations": 9, "latency": latency, "wall_ns": 1,
        }))
        .unwrap();
        point.launch = launch;
        point
    }

    /// Two repetitions of each of three launches give three numbers, whose median is that of the
    /// second launch. All six as separate runs would have another median.
    #[test]
    fn a_launch_counts_once_however_often_it_measures() {
        let numbers = [(0, 1000), (0, 1200), (1, 2000), (1, 2200), (2, 5000), (2, 5000), (2, 5000)];
        let points: Vec<Point> = (0..)
            .zip(numbers)
            .map(|(repetition, (launch, ns))| point(repetition, Some(launch), ns))
            .collect();
        let plan = json!({ "experiments": [{ "name": "e", "launches": 3 }] });
        assert!(asked(&plan));
        assert!(
            text(&plan, &points)
                .contains("   e (size_bytes 8): rtt_half 2.10 us (1.00 us to 5.00 us) of 3 launches\n"),
            "{}",
            text(&plan, &points)
        );
        assert_eq!(text(&json!({ "experiments": [{ "name": "e" }] }), &points), "");
    }

    /// The interval is that of the repetitions then, and only one launch is claimed.
    #[test]
    fn a_launch_without_numbers_is_not_counted() {
        let mut points: Vec<Point> = (0..)
            .zip([0, 0, 0, 1, 1, 1])
            .map(|(repetition, launch)| point(repetition, Some(launch), 1000))
            .collect();
        for failed in &mut points[3..] {
            failed.status = Status::Failed { error: "it ended".to_owned() };
            failed.launch = None;
        }
        let said = text(&json!({ "experiments": [{ "name": "e", "launches": 2 }] }), &points);
        assert!(said.contains(" of 1 launch, 3 of 6 points without numbers\n"), "{said}");
    }

    #[test]
    fn repetitions_of_one_launch_are_runs_of_their_own() {
        for launch in [None, Some(4)] {
            let points: Vec<Point> = (0..3).map(|repetition| point(repetition, launch, 1000)).collect();
            assert_eq!(by_launch(&points, |point| point).len(), 3);
        }
    }
}
