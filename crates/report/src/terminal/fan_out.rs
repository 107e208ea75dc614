//! Rows of rounds of one to n: the round, a message of it, and the rate that both come to.
//!
//! A row says its n and its size, so that a table over either can be read down. Fetches have two rows: the round in which one
//! fetches from n, and below it the one in which n fetch from one, all of whose times are taken together.

use measure::record::{Latency, Point};

use super::plain;
use super::row::size;
use crate::unit::Scale;
use crate::value;

/// Width of the name of a kind, the second one indented by two.
const KIND_WIDTH: usize = 8;
/// Widths of the columns behind it. Together the line has less than 130 columns.
const WIDTHS: [usize; 10] = [6, 8, 9, 10, 10, 10, 10, 15, 10, 11];

/// The latency of a round of one to n; none of another point.
pub(super) fn round(point: &Point) -> Option<&Latency> {
    point.latency.as_ref().filter(|_| point.pattern == "fan-out")
}

/// The names of the columns.
pub(super) fn columns(unit: &str) -> Vec<String> {
    let names = [
        "latency",
        "#peers",
        "#bytes",
        "#samples",
        "min[us]",
        "typ.[us]",
        "mean[us]",
        "max[us]",
        "per message[us]",
        "mavericks",
    ];
    names.into_iter().map(str::to_owned).chain([format!("BW[{unit}]")]).collect()
}

/// Cells aligned under their columns' names.
pub(super) fn line(cells: &[String], end: &str) -> String {
    let Some((kind, numbers)) = cells.split_first() else { return String::new() };
    let numbers: String =
        numbers.iter().zip(WIDTHS).map(|(text, width)| format!(" {text:>width$}")).collect();
    format!(" {kind:KIND_WIDTH$}{numbers}{end}\n")
}

/// The lines of a point.
pub(super) fn rows(point: &Point, bandwidth: Scale, marks: &str) -> String {
    let Some(round) = round(point) else { return String::new() };
    let per_message = value::number(point, "per_message.p50_ns").map_or("-".to_owned(), us);
    let rate = point.throughput.as_ref().map(|throughput| bandwidth.apply(throughput.bytes_per_s));
    let rate = rate.map_or("-".to_owned(), |rate| format!("{rate:.3}"));
    let mut out = line(&cells(point, "", round, [per_message, rate]), marks);
    for timed in point.kinds.iter().skip(1) {
        out += &line(&cells(point, "  ", &timed.latency, ["-", "-"].map(str::to_owned)), marks);
    }
    out
}

fn cells(point: &Point, indent: &str, latency: &Latency, [per_message, rate]: [String; 2]) -> Vec<String> {
    let peers = point.axes.get("peers").map_or("-".to_owned(), value::text);
    let times =
        [latency.min_ns as f64, latency.p50_ns as f64, latency.mean_ns, latency.max_ns as f64].map(us);
    [format!("{indent}{}", latency.kind.name()), peers, size(point), latency.count.to_string()]
        .into_iter()
        .chain(times)
        .chain([per_message, latency.mavericks.count.to_string(), rate])
        .collect()
}

/// What the columns mean, said once below the tables.
pub(super) fn notes(rule: &str) -> String {
    format!(
        "\n per message: the typical time of a round by #peers; BW: #peers messages of #bytes in that typical time\n \
         mavericks: samples {}, which are counted and never dropped\n",
        plain(rule)
    )
}

/// Which of a table's rows failed.
pub(super) fn place(point: &Point) -> Option<String> {
    let peers = point.axes.get("peers")?;
    Some(format!("{} peers, {} B", value::text(peers), size(point)))
}

fn us(ns: f64) -> String {
    format!("{:.3}", ns / 1e3)
}
