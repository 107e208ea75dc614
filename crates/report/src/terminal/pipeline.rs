//! Rows of samples at a fixed rate: how late each arrived, and which never did.

use measure::record::{LatencyKind, Point, Sunk};

use super::{plain, sockets};
use crate::unit::{self, digits};
use crate::value;

/// Names of the columns, and their widths; the threshold stands behind the name that ends with a sign.
const COLUMNS: [(&str, usize); 14] = [
    ("rate[/s]", 8),
    ("values", 6),
    ("#samples", 8),
    ("10%[us]", 8),
    ("typ.[us]", 8),
    ("90%[us]", 8),
    ("99.9%[us]", 9),
    ("max[us]", 9),
    (">", 7),
    ("got[/s]", 9),
    ("missed[%]", 9),
    ("alone[%]", 8),
    ("#unsent", 7),
    ("#lost", 6),
];

/// The kind of the headline, where a point is of this pattern.
pub(super) fn kind(point: &Point) -> Option<LatencyKind> {
    point.latency.as_ref().filter(|_| point.pattern == PATTERN).map(|latency| latency.kind)
}

/// The names of the columns, in a line.
pub(super) fn header(above_ns: Option<u64>) -> String {
    let above = above_ns.map_or(NONE.to_owned(), |ns| format!(">{}", unit::time(ns as f64)));
    let above = above.replace(".00", "").replace(' ', "");
    let name = |(name, _): &(&str, usize)| if *name == ">" { above.clone() } else { (*name).to_owned() };
    line(COLUMNS.iter().map(name), "")
}

/// The line of a point.
pub(super) fn row(point: &Point, above_ns: Option<u64>, marks: &str) -> String {
    let Some(latency) = &point.latency else { return String::new() };
    let us = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
    let percent = |share: f64| {
        let percent = 100.0 * share;
        format!("{percent:.*}", digits([percent].into_iter()))
    };
    let counter = |name: &str| point.counters.get(name).copied();
    let above = above_ns.and_then(|ns| latency.share_above.get(&ns.to_string()));
    let times = [latency.p10_ns, latency.p50_ns, latency.p90_ns, latency.p999_ns, latency.max_ns].map(us);
    let found = point.pipeline.as_ref();
    let count = |name: &str| counter(name).map(|count| count.to_string());
    let last = [
        above.map(|share| format!("{} %", percent(*share))),
        found.map(|found| format!("{:.1}", found.achieved_hz)),
        value::number(point, "pipeline.missed_share").map(percent),
        value::number(point, "pipeline.alone_share").map(percent),
        count("messages_not_transmitted"),
        count("messages_lost"),
    ];
    let last = last.map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
    let first = [axis(point, "rate_hz"), axis(point, "values"), latency.count.to_string()];
    line(first.into_iter().chain(times).chain(last), marks) + &sinks(point) + &sockets::meanwhile(point)
}

/// What the files of samples were, in a line that begins with `#`.
fn sinks(point: &Point) -> String {
    let all = point.pipeline.iter().flat_map(|found| &found.sinks);
    let one = |sunk: &Sunk| {
        let Sunk { rank, format, samples, bytes, write_ns, handing_over_ns, path, .. } = sunk;
        let rate = *bytes as f64 * 1e3 / (*write_ns).max(1) as f64;
        let place = path.as_ref().map_or("removed".to_owned(), |path| format!("in {}", plain(path)));
        let (format, megabytes) = (plain(format), *bytes as f64 / 1e6);
        let what = format!("{samples} samples as {format}, {megabytes:.1} MB at {rate:.0} MB/s");
        format!("     # rank {rank}: {what}, each handed over in {handing_over_ns:.0} ns; {place}\n")
    };
    all.map(one).collect()
}

/// Cells aligned to the right.
fn line(cells: impl Iterator<Item = String>, end: &str) -> String {
    let cells: String = cells.zip(COLUMNS).map(|(cell, (_, width))| format!(" {cell:>width$}")).collect();
    format!("{cells}{end}\n")
}

/// What the columns mean, said once below the tables.
pub(super) fn notes(kind: LatencyKind) -> &'static [&'static str] {
    // What has been logged elsewhere is timed from when it was generated.
    if kind == LatencyKind::Arrival { &[FROM_DUE, FATES] } else { &[FATES] }
}

const FROM_DUE: &str = "
 each sample is timed from when its step was due, however late it was generated, to its arrival
";
const FATES: &str = "
 got: samples generated in a second, by CLOCK_MONOTONIC; missed: steps for which the generator was not there; alone: what
   the timer misses by itself, with no samples to make, on the same CPU for up to 0.25 s before and after
 unsent: samples for which the node had no room, or that it took before the first that arrived; lost: after that one
";

/// Which of a table's rows failed.
pub(super) fn place(point: &Point) -> Option<String> {
    let words = || format!("{}/s, {} values", axis(point, "rate_hz"), axis(point, "values"));
    (point.pattern == PATTERN).then(words)
}

fn axis(point: &Point, name: &str) -> String {
    point.axes.get(name).map_or(NONE.to_owned(), value::text)
}

/// The pattern that this is of.
const PATTERN: &str = "pipeline";
/// A cell of what a point does not have.
const NONE: &str = "-";
