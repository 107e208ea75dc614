//! Parametrised round trips and overheads of a run, which LogGP is fitted to.

use measure::quantity::{self, COST};
use measure::record::{LatencyKind, Point, Status};
use measure::stats::shape::Estimate;
use serde_json::Value;

use super::column::title;
use crate::list::grouped;

/// The axes that distinguish messages.
pub(super) type Way = Vec<(String, Value)>;

/// Round trips that differ only in n, d and s.
#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) title: String,
    /// The axes, without those of [`Round`].
    pub(super) way: Way,
    /// The round trips in rising order of n, d and s. A single message has no d.
    pub(super) rounds: Vec<Round>,
    /// Steps whose cost was measured directly with the same settings, by name and size.
    pub(super) steps: Vec<(String, u64, Estimate)>,
    /// Unstable points.
    pub(super) unstable: usize,
}

/// PRTT(n, d, s).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// n
    pub(super) messages: u64,
    /// d, in ns.
    pub(super) pause: u64,
    /// s, in bytes.
    pub(super) size: u64,
    /// The time, in ns.
    pub(super) ns: Estimate,
}

impl Rounds {
    /// PRTT(n, d, s).
    pub(super) fn at(&self, messages: u64, pause: u64, size: u64) -> Option<Estimate> {
        let is_it = |round: &&Round| (round.messages, round.pause, round.size) == (messages, pause, size);
        self.rounds.iter().find(is_it).map(|round| round.ns)
    }

    /// The cost of steps together, in ns.
    pub(super) fn cost(&self, steps: &[&str], size: u64) -> Option<Estimate> {
        let cost = |step: &&str| {
            let known = self.steps.iter().find(|(name, of, _)| name == step && *of == size);
            known.map(|(_, _, cost)| (1.0, *cost))
        };
        let terms: Vec<(f64, Estimate)> = steps.iter().map(cost).collect::<Option<_>>()?;
        Some(super::combine::sum(0.0, &terms))
    }
}

/// The parametrised round trips of a run, in all experiments.
pub(super) fn measured(points: &[Point]) -> Vec<Rounds> {
    let round_trips = points.iter().filter(|point| is_round(point) && is_measured(point));
    let all = grouped(round_trips.map(|point| (without(point, &["burst", "pause_ns", "size_bytes"]), point)));
    let ways: Vec<_> = all.iter().map(|(way, _)| way.clone()).collect();
    let of_way = |(way, own): (Way, Vec<&Point>)| Rounds {
        title: title(&own[0].experiment, &told_apart(&way, &ways)),
        rounds: rounds(&own),
        steps: steps(points, &way),
        way,
        unstable: unstable(&own),
    };
    all.into_iter().map(of_way).collect()
}

/// Whether points of another pattern have the same settings: the device and service axes that both
/// have are equal.
pub(super) fn is_same_way<'a>(way: &[(String, Value)], axis: impl Fn(&str) -> Option<&'a Value>) -> bool {
    let is_of_way = |(name, _): &&(String, Value)| WAY.contains(&name.as_str());
    way.iter().filter(is_of_way).all(|(name, value)| axis(name).is_none_or(|own| own == value))
}

/// The axes in which some settings differ from others.
pub(super) fn told_apart(way: &Way, ways: &[Way]) -> Way {
    way.iter().filter(|axis| !ways.iter().all(|way| way.contains(axis))).cloned().collect()
}

/// The number of unstable points.
pub(super) fn unstable(points: &[&Point]) -> usize {
    points.iter().filter(|point| point.unstable.is_some()).count()
}

/// The axes of a point without some of them.
pub(super) fn without(point: &Point, names: &[&str]) -> Way {
    let axes = point.axes.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    axes.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_round(point: &Point) -> bool {
    point.latency.as_ref().is_some_and(|latency| latency.kind == LatencyKind::Prtt)
}

pub(super) fn is_measured(point: &Point) -> bool {
    point.status == Status::Measured
}

/// A number of all repetitions of some points.
pub(super) fn of_runs(points: &[&Point], path: &str) -> Option<Estimate> {
    let runs: Vec<Estimate> =
        points.iter().filter_map(|point| Some(quantity::find(path)?.measured(point)?.estimate)).collect();
    Estimate::of_runs(&runs).filter(|estimate| estimate.low > 0.0)
}

fn rounds(points: &[&Point]) -> Vec<Round> {
    let key = |point: &Point| {
        let number = |name: &str| point.axes.get(name).and_then(Value::as_u64);
        let messages = number("burst")?;
        // A time after the last message of a burst is no pause.
        let pause = if messages == 1 { 0 } else { number("pause_ns")? };
        Some((messages, pause, number("size_bytes")?))
    };
    let mut keys: Vec<_> = points.iter().filter_map(|point| key(point)).collect();
    keys.sort_unstable();
    keys.dedup();
    let round = |(messages, pause, size)| {
        let own: Vec<&Point> =
            points.iter().copied().filter(|point| key(point) == Some((messages, pause, size))).collect();
        Some(Round { messages, pause, size, ns: of_runs(&own, "latency.p50_ns")? })
    };
    keys.into_iter().filter_map(round).collect()
}

fn steps(points: &[Point], way: &[(String, Value)]) -> Vec<(String, u64, Estimate)> {
    let own: Vec<&Point> = points
        .iter()
        .filter(|point| {
            point.cost.is_some() && is_measured(point) && is_same_way(way, |name| point.axes.get(name))
        })
        .collect();
    let key = |point: &Point| {
        let size = point.axes.get("size_bytes").and_then(Value::as_u64)?;
        Some((point.cost.as_ref()?.step.clone(), size))
    };
    let mut keys: Vec<_> = own.iter().filter_map(|point| key(point)).collect();
    keys.sort_unstable();
    keys.dedup();
    let step = |(step, size): (String, u64)| {
        let own: Vec<&Point> = own
            .iter()
            .copied()
            .filter(|point| key(point).is_some_and(|(name, of)| (name.as_str(), of) == (step.as_str(), size)))
            .collect();
        let cost = of_runs(&own, COST)?;
        Some((step, size, cost))
    };
    keys.into_iter().filter_map(step).collect()
}

/// Axes that distinguish messages of any pattern.
const WAY: [&str; 8] =
    ["environment", "service", "operation", "notify", "inline", "poll", "mtu_bytes", "signal_rate"];
