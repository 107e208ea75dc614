//! The table of rounds of one to n: the time of a round, of a message of it, and the throughput.
//!
//! A row has its n and its size, so that a reader can follow either. Fetches have two rows: the
//! round in which one rank fetches from n, and below it the round in which n ranks fetch from one,
//! with the times of all of them.

use measure::presentation::{Presentation, Traffic};
use measure::quantity::{At, latency};
use measure::record::{Axes, Direction, Latency, Point};
use measure::table::common::{BANDWIDTH, SAMPLES, SIZE, US3, WHOLE};
use measure::table::{Cell, Column, Note, Rows, Table};
use measure::text::plain;

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["peers", "size_bytes"],
    label: &["{peers} peers, {size_bytes} B"],
    table: |point| point.latency.as_ref().map(|_| &ROUNDS),
    traffic: flows,
    quantities: &[latency("per_message.*", of_round, "{} divided by n").per_message(peers).offered()],
    ..Presentation::PLAIN
};

static ROUNDS: Table = Table {
    title: "latency {kind}",
    columns: &[
        Column::new("latency", Cell::Kind).left(8),
        Column::new("#peers", Cell::Axis("peers")).wide(6),
        SIZE,
        SAMPLES,
        Column::new("min[us]", Cell::Statistic("min_ns", US3)).wide(9).extra(),
        Column::new("typ.[us]", Cell::Statistic("p50_ns", US3)).wide(9),
        Column::new("mean[us]", Cell::Statistic("mean_ns", US3)).wide(9).extra(),
        Column::new("max[us]", Cell::Statistic("max_ns", US3)).wide(9).usual(),
        Column::new("message[us]", Cell::Number("per_message.p50_ns", US3)).wide(11).usual(),
        Column::new("outliers", Cell::Statistic("mavericks.count", WHOLE)).wide(8).extra(),
        Column::new("BW[{unit}]", Cell::Number("throughput.bytes_per_s", BANDWIDTH)).wide(10),
    ],
    rows: Rows::PerKind,
    notes: &[Note::Of(notes)],
    ..Table::PLAIN
};

fn notes(point: &Point) -> Option<String> {
    let rule = &point.latency.as_ref()?.mavericks.rule;
    Some(format!(
        "\n message: the median time of a round, divided by #peers; BW: #peers messages of #bytes in that median time\n \
         outliers: samples {}; they are counted and never dropped\n",
        plain(rule)
    ))
}

/// Messages flow from the root to each of its peers.
fn flows(axes: &Axes, _: Direction) -> Option<Traffic> {
    let peers = axes.get("peers")?.as_u64()?.try_into().ok()?;
    Some(Traffic::of(axes, (1..=peers).map(|peer| (0, peer)).collect()))
}

/// The latency of a round, of which a message is one of n (Hoefler et al. 2006, Figure 3).
fn of_round<'a>(point: &'a Point, _: At<'_>) -> Option<&'a Latency> {
    point.axes.get("peers").and(point.latency.as_ref())
}

fn peers(point: &Point) -> f64 {
    point.axes.get("peers").and_then(serde_json::Value::as_f64).unwrap_or(1.0)
}
