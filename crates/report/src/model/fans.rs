//! Rounds of fan-out over n, which LogfP is fitted to.

use std::collections::BTreeMap;

use measure::record::{LatencyKind, Point};
use measure::stats::shape::Estimate;
use serde_json::Value;

use super::column::title;
use super::rounds::{Way, is_measured, is_same_way, of_runs, told_apart, unstable, without};

/// Rounds that differ only in n.
#[derive(Debug)]
pub(super) struct Fan {
    pub(super) title: String,
    /// The message size, in bytes.
    pub(super) size: u64,
    pub(super) way: Way,
    /// n and half of the round, in ns, in rising order.
    pub(super) rounds: Vec<(u64, Estimate)>,
    /// Unstable points.
    pub(super) unstable: usize,
}

impl Fan {
    /// Whether these settings are those of its messages.
    pub(super) fn is_of(&self, way: &[(String, Value)]) -> bool {
        is_same_way(way, |name| self.way.iter().find(|(own, _)| own == name).map(|(_, value)| value))
    }
}

/// The rounds of fan-out of a run, each at the smallest size that has several n.
pub(super) fn measured(points: &[Point]) -> Vec<Fan> {
    let is_half = |point: &&Point| {
        is_measured(point)
            && point.latency.as_ref().is_some_and(|latency| latency.kind == LatencyKind::FanHalf)
    };
    // By size, in rising order; the other axes as text, to be a key.
    let mut all: BTreeMap<(String, String), BTreeMap<u64, Vec<&Point>>> = BTreeMap::new();
    for point in points.iter().filter(is_half) {
        let Some(size) = point.axes.get("size_bytes").and_then(Value::as_u64) else { continue };
        let way = format!("{:?}", without(point, &OWN));
        all.entry((point.experiment.clone(), way)).or_default().entry(size).or_default().push(point);
    }
    let ways: Vec<Way> = all.values().flat_map(BTreeMap::values).map(|own| without(own[0], &OWN)).collect();
    let smallest = |sizes: BTreeMap<u64, Vec<&Point>>| {
        sizes.into_iter().find_map(|(size, own)| {
            let way = without(own[0], &OWN);
            let title = title(&own[0].experiment, &told_apart(&way, &ways));
            let fan = Fan { title, size, rounds: rounds(&own), unstable: unstable(&own), way };
            (fan.rounds.len() >= LEAST_PEERS).then_some(fan)
        })
    };
    all.into_values().filter_map(smallest).collect()
}

fn rounds(points: &[&Point]) -> Vec<(u64, Estimate)> {
    let mut peers: BTreeMap<u64, Vec<&Point>> = BTreeMap::new();
    for point in points {
        if let Some(n) = point.axes.get("peers").and_then(Value::as_u64) {
            peers.entry(n).or_default().push(point);
        }
    }
    peers.into_iter().filter_map(|(n, own)| Some((n, of_runs(&own, "latency.p50_ns")?))).collect()
}

const OWN: [&str; 2] = ["peers", "size_bytes"];
/// With fewer n, any rounds are on a line.
const LEAST_PEERS: usize = 3;
