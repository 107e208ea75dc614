//! Values of axes, and numbers found in a point by a path.

use std::cmp::Ordering;

use measure::record::{Latency, LatencyKind, Point};
use serde_json::Value;

/// A value of an axis in print: strings without quotes.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Orders values of an axis: numbers by size, everything else as it came.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    }
}

/// The number at a path into a point, e.g. `latency.p50_ns`, `counters.rnr_waits` or `ends.1.latency.p99_ns`.
pub(crate) fn number(point: &Point, path: &str) -> Option<f64> {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    let root = match head {
        "latency" => serde_json::to_value(point.latency.as_ref()?),
        "throughput" => serde_json::to_value(point.throughput.as_ref()?),
        "throughput_total" => serde_json::to_value(point.throughput_total.as_ref()?),
        "counters" => return point.counters.get(rest).map(|n| *n as f64),
        "calibration" => serde_json::to_value(point.calibration.as_ref()?),
        "ends" => return end_number(point, rest),
        "wall_ns" => return Some(point.wall_ns as f64),
        _ => return None,
    };
    walk(&root.ok()?, rest)
}

/// The latency that a path leads into.
pub(crate) fn latency<'a>(point: &'a Point, path: &str) -> Option<&'a Latency> {
    match path.split('.').collect::<Vec<_>>()[..] {
        ["latency", ..] => point.latency.as_ref(),
        ["ends", index, "latency", ..] => point.ends.get(index.parse::<usize>().ok()?)?.latency.as_ref(),
        _ => None,
    }
}

/// What a kind of latency is, in words.
pub(crate) fn kind_meaning(kind: LatencyKind) -> &'static str {
    match kind {
        LatencyKind::Completion => "from posting a work request to its completion, t_comp - t_subm",
        LatencyKind::FanHalf => "half the time of a 1:n n:1 round",
        LatencyKind::OneWay => "from posting to arrival on one clock, t_recv - t_subm",
        LatencyKind::OneWaySend => "from the adapter's fetch to arrival on one clock, t_recv - t_send",
        LatencyKind::Rtt => "a round trip",
        LatencyKind::RttHalf => "half a round trip",
    }
}

fn end_number(point: &Point, path: &str) -> Option<f64> {
    let (index, rest) = path.split_once('.')?;
    let end = point.ends.get(index.parse::<usize>().ok()?)?;
    let (head, rest) = rest.split_once('.')?;
    let root = match head {
        "latency" => serde_json::to_value(end.latency.as_ref()?),
        "throughput" => serde_json::to_value(end.throughput.as_ref()?),
        _ => return None,
    };
    walk(&root.ok()?, rest)
}

/// Follows a path by keys; a key may hold dots itself, as thresholds of `share_above` could.
fn walk(value: &Value, path: &str) -> Option<f64> {
    if path.is_empty() {
        return value.as_f64();
    }
    if let Some(found) = value.get(path) {
        return found.as_f64();
    }
    let (head, rest) = path.split_once('.')?;
    walk(value.get(head)?, rest)
}
