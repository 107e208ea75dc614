//! Rows of messages at a set rate: how long each took from when it was due, and what loaded the device meanwhile.

use measure::record::{LatencyKind, Point};

use super::row::size;
use crate::unit::Scale;
use crate::value;

/// Names of the columns, and their widths; the unit of bandwidths stands behind the name that ends with a bracket.
const COLUMNS: [(&str, usize); 14] = [
    ("load", 7),
    ("#loaders", 8),
    ("#load", 7),
    ("rate[/s]", 8),
    ("#bytes", 6),
    ("#samples", 8),
    ("typ.[us]", 9),
    ("99%[us]", 9),
    ("99.9%[us]", 9),
    ("max[us]", 9),
    ("late[%]", 7),
    ("load[", 11),
    ("fairness", 8),
    ("link[%]", 7),
];

/// The kind of the headline, where a point is of this pattern.
pub(super) fn kind(point: &Point) -> Option<LatencyKind> {
    point.latency.as_ref().filter(|_| point.pattern == PATTERN).map(|latency| latency.kind)
}

/// The names of the columns, in a line.
pub(super) fn header(unit: &str) -> String {
    let name = |(name, _): &(&str, usize)| match name.strip_suffix("load[") {
        Some(_) => format!("load[{unit}]"),
        None => (*name).to_owned(),
    };
    line(COLUMNS.iter().map(name), "")
}

/// The line of a point, which took a share of what its links carry where that is known.
pub(super) fn row(point: &Point, bandwidth: Scale, of_link: Option<String>, marks: &str) -> String {
    let Some(latency) = &point.latency else { return String::new() };
    let us = |ns: u64| format!("{:.3}", ns as f64 / 1e3);
    let late = point.counters.get("messages_late").map(|late| 100.0 * *late as f64 / latency.count as f64);
    let load = point.throughput.as_ref().map(|load| format!("{:.3}", bandwidth.apply(load.bytes_per_s)));
    let fairness = point.fairness.map(|fairness| format!("{:.3}", fairness.jain));
    let is_loaded = axis(point, "loaders") != "0";
    let of_load = |name| if is_loaded { axis(point, name) } else { NONE.to_owned() };
    let first = [of_load("load"), axis(point, "loaders"), of_load("load_bytes"), axis(point, "rate_hz")];
    let times = [latency.p50_ns, latency.p99_ns, latency.p999_ns, latency.max_ns].map(us);
    let last = [late.map(|late| format!("{late:.2}")), load, fairness];
    let last = last.map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
    let own = [size(point), latency.count.to_string()].into_iter().chain(times);
    let row = line(first.into_iter().chain(own).chain(last).chain(of_link), marks);
    match point.counters.get("messages_lost") {
        None | Some(0) => row,
        Some(lost) => {
            row + &format!("     # {lost} messages or their answers were lost: those are no samples\n")
        }
    }
}

/// Cells aligned to the right.
fn line(cells: impl Iterator<Item = String>, end: &str) -> String {
    let cells: String = cells.zip(COLUMNS).map(|(cell, (_, width))| format!(" {cell:>width$}")).collect();
    format!("{cells}{end}\n")
}

/// What the columns mean, said once below the tables.
pub(super) const NOTES: &str = "
 each message is timed from when it was due at the set rate, however late it was posted, to its answer
 late: messages that were posted when the next was due already; load: what the loaders carried together meanwhile, in
   messages of #load bytes; fairness: Jain's index of what each carried (Jain, Chiu and Hawe 1984), 1 where all carried
   the same; link: the share of what the load's links carry at best, where that is known
";

/// Which of a table's rows failed.
pub(super) fn place(point: &Point) -> Option<String> {
    let words = || {
        let of = |name| axis(point, name);
        format!("{} loaders, {}/s, {} B", of("loaders"), of("rate_hz"), size(point))
    };
    (point.pattern == PATTERN).then(words)
}

fn axis(point: &Point, name: &str) -> String {
    point.axes.get(name).map_or(NONE.to_owned(), value::text)
}

/// The pattern that this is of.
const PATTERN: &str = "open-loop";
/// A cell of what a point does not have.
const NONE: &str = "-";
