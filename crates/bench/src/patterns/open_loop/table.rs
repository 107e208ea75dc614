//! The table of messages at a set rate: how long each took from when it was due, and the load on
//! the device.

use measure::presentation::{Presentation, Traffic};
use measure::record::{Axes, Direction, Point};
use measure::table::common::{BANDWIDTH, PLAIN3, SAMPLES, SIZE, US3};
use measure::table::{Cell, Column, Note, Table, View};
use measure::text;

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["load", "load_bytes", "loaders", "rate_hz", "size_bytes"],
    label: &["{loaders} loaders, {rate_hz}/s, {size_bytes} B"],
    table: |point| point.latency.as_ref().map(|_| &RATES),
    traffic: flows,
    ..Presentation::PLAIN
};

static RATES: Table = Table {
    title: "latency {kind}",
    columns: &[
        Column::new("load", Cell::Text(|view| of_load(view.point, "load"))).wide(7),
        Column::new("#loaders", Cell::Axis("loaders")).wide(8),
        Column::new("#load", Cell::Text(|view| of_load(view.point, "load_bytes"))).wide(7),
        Column::new("rate[/s]", Cell::Axis("rate_hz")).wide(8),
        SIZE,
        SAMPLES.extra(),
        Column::new("typ.[us]", Cell::Statistic("p50_ns", US3)).wide(9),
        Column::new("99%[us]", Cell::Statistic("p99_ns", US3)).wide(9).extra(),
        Column::new("99.9%[us]", Cell::Statistic("p999_ns", US3)).wide(9),
        Column::new("max[us]", Cell::Statistic("max_ns", US3)).wide(9).extra(),
        Column::new("late[%]", Cell::Text(late)).wide(7).extra(),
        Column::new("load[{unit}]", Cell::Number("throughput.bytes_per_s", BANDWIDTH)).wide(11),
        Column::new("fairness", Cell::Number("fairness.jain", PLAIN3)).wide(8).extra(),
        Column::new("link[%]", Cell::OfLink).wide(7).extra(),
    ],
    below: losses,
    notes: &[Note::Always(NOTES)],
    ..Table::PLAIN
};

/// An axis of the load, where the point has loaders.
fn of_load(point: &Point, axis: &str) -> Option<String> {
    let is_loaded = point.axes.get("loaders").is_none_or(|loaders| loaders != 0);
    point.axes.get(axis).filter(|_| is_loaded).map(text::value)
}

fn late(view: &View<'_>) -> Option<String> {
    let point = view.point;
    let late = *point.counters.get("messages_late")? as f64;
    Some(format!("{:.2}", 100.0 * late / point.latency.as_ref()?.count as f64))
}

fn losses(point: &Point) -> Vec<String> {
    let lost = point.counters.get("messages_lost").filter(|lost| **lost > 0);
    let line = |lost| format!("     # {lost} messages or their answers were lost; they are no samples");
    lost.map(line).into_iter().collect()
}

const NOTES: &str = "
 each message is timed from when it was due at the set rate, however late it was posted, to its answer
 late: messages that were posted after the next was due; load: the throughput of all loaders in that time, in messages of \
   #load bytes; fairness: Jain's index of the loaders' throughputs (Jain, Chiu and Hawe 1984), 1 if all are equal; link: the \
   share of the load's link limit, if the link is known
";

/// The flows of the load, which is the only throughput of this pattern.
fn flows(axes: &Axes, direction: Direction) -> Option<Traffic> {
    let loaders: u32 =
        axes.get("loaders")?.as_u64()?.try_into().ok().filter(|_| direction == Direction::Load)?;
    let loaders = 0..loaders;
    let (operation, flows) = match axes.get("load")?.as_str()? {
        "beside" => ("write", loaders.map(|one| (2 * one + 2, 2 * one + 3)).collect()),
        "incast" => ("write", loaders.map(|one| (one + 2, 1)).collect()),
        "outcast" => ("read", loaders.map(|one| (0, one + 2)).collect()),
        _ => return None,
    };
    Some(Traffic { flows, service: "RC".to_owned(), operation: operation.to_owned(), size: "load_bytes" })
}
