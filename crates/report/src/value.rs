//! Values of axes, and numbers found in a point by a path.

use std::cmp::Ordering;

use measure::quantity::{self, Found};
pub(crate) use measure::quantity::{COST, Measured, kinds};
use measure::record::{Latency, Point};
use serde_json::Value;

use crate::tables;

pub(crate) use measure::text::value as text;

/// Orders values of an axis: numbers by size, everything else as it came.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    }
}

/// The row that a path leads to, where it is one of the numbers of a point's pattern.
fn find<'p>(point: &Point, path: &'p str) -> Option<Found<'p>> {
    quantity::find(path)
        .filter(|found| !found.quantity.is_own || tables::of(&point.pattern).own.contains(&path))
}

/// The number at a path into a point, e.g. `latency.p50_ns`, `cost.ns`, `counters.rnr_waits` or `ends.1.latency.p99_ns`.
pub(crate) fn number(point: &Point, path: &str) -> Option<f64> {
    find(point, path)?.number(point)
}

/// The number at a path with its 95 % interval.
pub(crate) fn measured(point: &Point, path: &str) -> Option<Measured> {
    find(point, path)?.measured(point)
}

/// The latency that a path leads into.
pub(crate) fn latency<'a>(point: &'a Point, path: &str) -> Option<&'a Latency> {
    quantity::find(path)?.latency(point)
}

/// What the number at a path may be off by where it compares two clocks: a time, in ns, or a share.
pub(crate) fn bound(point: &Point, path: &str) -> Option<f64> {
    quantity::find(path)?.bound(point)
}
