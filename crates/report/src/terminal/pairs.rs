//! Rows of several pairs at once: what all of them together had, and how evenly.
//!
//! A row says how many pairs and its size, so that a table over either can be read down.

use measure::record::{LatencyKind, Point};

use super::row::size;
use crate::unit::Scale;
use crate::value;

/// What a row shows of its pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shown {
    /// The latency of the messages of all pairs, and how far apart they began.
    Latency(LatencyKind),
    /// What all pairs and each of them carried, and, where that is known, which share of what their links carry.
    Throughput { has_link: bool },
}

/// The names of the columns.
pub(super) fn columns(shown: Shown, unit: &str) -> Vec<String> {
    let first = ["#pairs", "#bytes"].map(str::to_owned);
    let own = match shown {
        Shown::Latency(_) => ["#samples", "min[us]", "typ.[us]", "mean[us]", "max[us]", "skew typ.[us]"]
            .map(str::to_owned)
            .to_vec(),
        Shown::Throughput { .. } => vec![
            format!("BW all pairs[{unit}]"),
            "MsgRate all pairs[Mpps]".to_owned(),
            format!("BW of a pair, min..max[{unit}]"),
        ],
    };
    first.into_iter().chain(own).chain(["fairness".to_owned()]).collect()
}

/// The cells of a point.
pub(super) fn cells(point: &Point, shown: Shown, bandwidth: Scale) -> Vec<String> {
    let own = match shown {
        Shown::Latency(_) => latency(point),
        Shown::Throughput { .. } => throughput(point, bandwidth),
    };
    let fairness = point.fairness.map_or(NONE.to_owned(), |fairness| format!("{:.3}", fairness.jain));
    [count(point), size(point)].into_iter().chain(own).chain([fairness]).collect()
}

fn latency(point: &Point) -> Vec<String> {
    let Some(latency) = &point.latency else { return Vec::new() };
    let us = |ns: f64| format!("{:.3}", ns / 1e3);
    let times =
        [latency.min_ns as f64, latency.p50_ns as f64, latency.mean_ns, latency.max_ns as f64].map(us);
    let skew = value::number(point, "start_skew.p50_ns").map_or(NONE.to_owned(), us);
    [latency.count.to_string()].into_iter().chain(times).chain([skew]).collect()
}

fn throughput(point: &Point, bandwidth: Scale) -> Vec<String> {
    let Some(all) = &point.throughput else { return Vec::new() };
    let bytes = |bytes_per_s: f64| format!("{:.3}", bandwidth.apply(bytes_per_s));
    let own = || point.ends.iter().filter_map(|end| Some(end.throughput.as_ref()?.bytes_per_s));
    let range = match (own().reduce(f64::min), own().reduce(f64::max)) {
        (Some(least), Some(most)) if own().count() > 1 => format!("{}..{}", bytes(least), bytes(most)),
        _ => NONE.to_owned(),
    };
    vec![bytes(all.bytes_per_s), format!("{:.6}", all.messages_per_s / 1e6), range]
}

/// What the columns mean, said once below the tables.
pub(super) const NOTES: &str = "
 pairs begin each message, or their streams, together; skew: the time from the first to the last beginning of a message
 fairness: Jain's index (Jain, Chiu and Hawe 1984) of the pairs' throughputs, or of the inverse of their mean latencies:
   1 where all had the same, 1 / #pairs where one had all
";

/// Which of a table's rows failed.
pub(super) fn place(point: &Point) -> Option<String> {
    (point.pattern == "pairs").then(|| format!("{} pairs, {} B", count(point), size(point)))
}

/// How many pairs a point had: one where its plan does not say.
fn count(point: &Point) -> String {
    point.axes.get("pairs").map_or("1".to_owned(), value::text)
}

/// A cell of what one pair does not have.
const NONE: &str = "-";
