//! Values of axes, and numbers found in a point by a path.

use std::cmp::Ordering;

use measure::record::{Latency, LatencyKind, Point};
use measure::stats::shape::{self, Estimate};
use serde_json::Value;

pub(crate) use measure::text::value as text;

use crate::{one_way, pipeline};

/// Orders values of an axis: numbers by size, everything else as it came.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    }
}

/// Path of what a call costs. It has no whole nanoseconds, as latencies have.
pub(crate) const COST: &str = "cost.ns";

/// The number at a path into a point, e.g. `latency.p50_ns`, `cost.ns`, `one_way.share_above.10000`, `cpu.1.user_ns`,
/// `counters.rnr_waits`, `ends.1.latency.p99_ns` or `per_message.p50_ns`.
pub(crate) fn number(point: &Point, path: &str) -> Option<f64> {
    if path == COST {
        return point.cost.as_ref().map(|cost| cost.ns);
    }
    if let Some((latency, field)) = latency_and_field(point, path) {
        return statistic(latency, field).map(|number| number / messages(point, path));
    }
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    let root = match head {
        "throughput" => serde_json::to_value(point.throughput.as_ref()?),
        "throughput_total" => serde_json::to_value(point.throughput_total.as_ref()?),
        "fairness" => serde_json::to_value(point.fairness?),
        "counters" => return point.counters.get(rest).map(|n| *n as f64),
        "calibration" => serde_json::to_value(point.calibration.as_ref()?),
        "completed_first_share" => return point.one_way.as_ref()?.completed_first_share,
        "cpu" => return cpu_number(point, rest),
        "cpu_ns_per_byte" => return crate::advice::cpu_ns_per_byte(point),
        "cpu_ns_per_message" => return crate::advice::cpu_ns_per_message(point),
        "half_mean_ns" => return half_mean_ns(point),
        "pipeline" => return pipeline::number(point, rest),
        "transactions_per_s" => return transactions_per_s(point),
        "ends" => return end_number(point, rest),
        "wall_ns" => return Some(point.wall_ns as f64),
        _ => return None,
    };
    walk(&root.ok()?, rest)
}

/// The mean of half a round trip, by whatever program measured the point, in ns.
pub(crate) fn half_mean_ns(point: &Point) -> Option<f64> {
    if let Some(reported) = &point.reported {
        return reported.mean_ns;
    }
    let latency = point.latency.as_ref().filter(|latency| latency.kind == LatencyKind::RttHalf)?;
    Some(latency.mean_ns)
}

/// Transactions in a second, each a message forth and one back: the inverse of the mean time of one; where messages were lost,
/// and the others waited for what was asked for again, those that nothing marred in the time of all.
pub(crate) fn transactions_per_s(point: &Point) -> Option<f64> {
    if let Some(reported) = &point.reported {
        return Some(1e9 / (2.0 * reported.mean_ns?)).filter(|rate| rate.is_finite());
    }
    let latency = point.latency.as_ref().filter(|_| point.pattern == "ping-pong")?;
    if point.counters.get("messages_lost").is_some_and(|lost| *lost > 0) {
        // Those that were not marred, in the time of all.
        let wall_ns = point.ends.first()?.cpu?.wall_ns;
        return Some(latency.count as f64 * 1e9 / wall_ns as f64).filter(|rate| rate.is_finite());
    }
    let halves = match latency.kind {
        LatencyKind::RttHalf => 2.0,
        LatencyKind::Rtt => 1.0,
        _ => return None,
    };
    Some(1e9 / (halves * latency.mean_ns)).filter(|rate| rate.is_finite())
}

/// The latency that a path leads into.
pub(crate) fn latency<'a>(point: &'a Point, path: &str) -> Option<&'a Latency> {
    latency_and_field(point, path).map(|(latency, _)| latency)
}

/// The number at a path with its 95 % interval, and the number of samples that it was made of. The interval of a median stands
/// in the record, that of a share follows from the count; other numbers have none within a run.
pub(crate) fn estimate(point: &Point, path: &str) -> Option<(Estimate, Option<u64>)> {
    let value = number(point, path)?;
    if path == "completed_first_share" {
        let of = latency(point, "completion.count").or(point.latency.as_ref());
        let count = of.map(|latency| latency.count);
        return Some((shape::share(value, count.unwrap_or_default()), count));
    }
    if let Some(steps) = path.strip_prefix("pipeline.").and_then(|rest| pipeline::steps(point, rest)) {
        return Some((shape::share(value, steps), Some(steps)));
    }
    if let (COST, Some(cost)) = (path, &point.cost) {
        let [low, high] = cost.ci95_ns.unwrap_or([value; 2]);
        return Some((Estimate { value, low, high }, point.latency.as_ref().map(|batches| batches.count)));
    }
    if let Some(latency) = median_of_rate(point, path) {
        let of = |ns: u64| value * latency.p50_ns as f64 / ns as f64;
        let ends = latency.p50_ci95_ns.map(|[low, high]| [of(high), of(low)]);
        let [low, high] = ends.unwrap_or([value; 2]);
        return Some((Estimate { value, low, high }, Some(latency.count)));
    }
    let Some((latency, field)) = latency_and_field(point, path) else {
        return Some((Estimate::exact(value), None));
    };
    let estimate = match (field, latency.p50_ci95_ns) {
        ("p50_ns", Some(ends)) => {
            let [low, high] = ends.map(|end| end as f64 / messages(point, path));
            Estimate { value, low, high }
        }
        (field, _) if field.starts_with("share_above.") => shape::share(value, latency.count),
        _ => Estimate::exact(value),
    };
    let bound = bound(point, path).unwrap_or_default();
    if is_share(path) {
        return Some((widened(estimate, bound), Some(latency.count)));
    }
    // Of a histogram, every number that is a time is known to within a bucket.
    let blur = latency.resolution.filter(|_| field.ends_with("_ns")).unwrap_or_default();
    let blurred = Estimate {
        low: (estimate.low * (1.0 - blur) - bound).max(0.0),
        high: estimate.high * (1.0 + blur) + bound,
        ..estimate
    };
    Some((blurred, Some(latency.count)))
}

/// The interval of a share that may be off by a bound.
pub(crate) fn widened(share: Estimate, bound: f64) -> Estimate {
    Estimate { low: (share.low - bound).max(0.0), high: (share.high + bound).min(1.0), ..share }
}

/// Whether the number at a path has a 95 % interval within one run: the median of six messages or more and shares have one, and
/// a count needs none. What an extreme is worth, only other runs can tell.
pub(crate) fn has_interval(point: &Point, path: &str) -> bool {
    let latency = || latency_and_field(point, path);
    let knows = |(latency, field): (&Latency, &str)| match field {
        "p50_ns" => latency.p50_ci95_ns.is_some(),
        field => field == "count",
    };
    if path == COST {
        return point.cost.as_ref().is_some_and(|cost| cost.ci95_ns.is_some());
    }
    let of_rate = median_of_rate(point, path).is_some_and(|latency| latency.p50_ci95_ns.is_some());
    is_share(path) || of_rate || latency().is_some_and(knows)
}

/// The latency whose median a throughput is made of, hence has the interval of: that of a round of one to n (H15 of the
/// evaluations).
fn median_of_rate<'a>(point: &'a Point, path: &str) -> Option<&'a Latency> {
    let is_rate = path.starts_with("throughput.") && point.pattern == "fan-out";
    point.latency.as_ref().filter(|latency| is_rate && latency.p50_ns > 0)
}

/// Whether a path leads to a share of the messages.
pub(crate) fn is_share(path: &str) -> bool {
    path.ends_with("_share") || path.contains("share_above.")
}

/// What the number at a path may be off by where it compares two clocks: a time, in ns, or a share. In a spread their offset
/// cancels.
pub(crate) fn bound(point: &Point, path: &str) -> Option<f64> {
    let (latency, field) = latency_and_field(point, path)?;
    if let Some(threshold) = field.strip_prefix("share_above.") {
        let (seen, bounds) =
            (latency.share_above.get(threshold)?, one_way::share_bounds(point, latency, threshold));
        return bounds.map(|[least, largest]| (seen - least).max(largest - seen));
    }
    let compares = field.ends_with("_ns") && !matches!(field, "spread_ns" | "stddev_ns");
    one_way::bound_ns(point, latency.kind).filter(|_| compares)
}

/// The messages that a time at a path is divided by: of `per_message` the n of its round, of everything else one.
fn messages(point: &Point, path: &str) -> f64 {
    let peers = point.axes.get("peers").and_then(Value::as_f64);
    peers.filter(|_| path.starts_with(PER_MESSAGE)).unwrap_or(1.0)
}

/// Begins the paths into the latency of a round of one to n, divided by n (H14 of the evaluations).
const PER_MESSAGE: &str = "per_message.";

/// The latency that a path leads into, and what of it: the headline, a kind, those of the first messages, one end's.
fn latency_and_field<'a, 'p>(point: &'a Point, path: &'p str) -> Option<(&'a Latency, &'p str)> {
    let (head, rest) = path.split_once('.')?;
    let one_way = point.one_way.as_ref();
    match head {
        "latency" => Some((point.latency.as_ref()?, rest)),
        "start_skew" => {
            let skew = point.ends.iter().find_map(|end| end.start_skew.as_ref())?;
            Some((skew, rest))
        }
        "first" => Some((one_way?.first.as_ref()?, rest)),
        "per_message" => Some((point.axes.get("peers").and(point.latency.as_ref())?, rest)),
        "with_first" => Some((one_way?.with_first.as_ref()?, rest)),
        "ends" => {
            let (index, rest) = rest.split_once('.')?;
            let end = point.ends.get(index.parse::<usize>().ok()?)?;
            Some((end.latency.as_ref()?, rest.strip_prefix("latency.")?))
        }
        name => Some((kinds(point).find(|latency| latency.kind.name() == name)?, rest)),
    }
}

/// The latencies of a point by their kind: each that was timed, and the headline, which may be one of them.
pub(crate) fn kinds(point: &Point) -> impl Iterator<Item = &Latency> {
    point.kinds.iter().map(|timed| &timed.latency).chain(&point.latency)
}

/// A number of a latency. The spread is what the middle 80 % of the messages lie within.
fn statistic(latency: &Latency, field: &str) -> Option<f64> {
    if field == "spread_ns" {
        return Some(latency.p90_ns as f64 - latency.p10_ns as f64);
    }
    walk(&serde_json::to_value(latency).ok()?, field)
}

fn cpu_number(point: &Point, path: &str) -> Option<f64> {
    let (rank, field) = path.split_once('.')?;
    let rank = rank.parse::<u32>().ok()?;
    let cpu = point.ends.iter().find(|end| end.rank == rank)?.cpu?;
    walk(&serde_json::to_value(cpu).ok()?, field)
}

fn end_number(point: &Point, path: &str) -> Option<f64> {
    let (index, rest) = path.split_once('.')?;
    let end = point.ends.get(index.parse::<usize>().ok()?)?;
    walk(&serde_json::to_value(end.throughput.as_ref()?).ok()?, rest.strip_prefix("throughput.")?)
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
