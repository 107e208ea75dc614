//! The table of calls that are timed in batches: a line for each step.
//!
//! Times are those of a batch, divided by its calls; `stamp` is the share of a stamp in them.

use measure::presentation::Presentation;
use measure::record::{Cost, Latency, Point};
use measure::table::common::{SIZE, WHOLE};
use measure::table::{Cell, Column, Decimals, Print, Scale, Table};
use measure::text::plain;

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["size_bytes", "step"],
    column_axes: &["batch"],
    label: &["{size_bytes}", "{step}"],
    table: |point| point.cost.as_ref().map(|_| &CALLS),
    ..Presentation::PLAIN
};

static CALLS: Table = Table {
    title: "per call: the time of a batch divided by its calls, with a stamp's share",
    says_direction: false,
    columns: &[
        Column::new("step", Cell::Text(|view| Some(plain(&view.point.cost.as_ref()?.step)))).left(18),
        SIZE,
        Column::new("#calls", Cell::Text(|view| Some(view.point.cost.as_ref()?.calls.to_string())))
            .wide(7)
            .extra(),
        Column::new("#batches", Cell::Statistic("count", WHOLE)).wide(9).extra(),
        Column::new("median[ns]", Cell::Number("cost.ns", CALL)).wide(10),
        Column::new("95%-from", Cell::Text(|view| end(view.point, 0))).wide(8).usual(),
        Column::new("95%-to", Cell::Text(|view| end(view.point, 1))).wide(8).usual(),
        Column::new("min[ns]", Cell::Text(|view| each(view.point, |_, batches| batches.min_ns as f64)))
            .wide(8)
            .extra(),
        Column::new("99%[ns]", Cell::Text(|view| each(view.point, |_, batches| batches.p99_ns as f64)))
            .wide(8),
        Column::new("stamp[ns]", Cell::Text(|view| each(view.point, |cost, _| cost.stamp_ns)))
            .wide(9)
            .usual(),
    ],
    ..Table::PLAIN
};

/// A time in ns, with at least three digits, which a call of some nanoseconds needs.
const CALL: Print = Print { scale: Scale::By(1.0), decimals: Decimals::Of(decimals) };

fn decimals(ns: f64) -> usize {
    match ns {
        n if n < 100.0 => 2,
        n if n < 10_000.0 => 1,
        _ => 0,
    }
}

fn time(ns: f64) -> String {
    format!("{ns:.*}", decimals(ns))
}

fn end(point: &Point, index: usize) -> Option<String> {
    Some(time(point.cost.as_ref()?.ci95_ns?[index]))
}

/// A time of a batch, divided by its calls.
fn each(point: &Point, of: impl Fn(&Cost, &Latency) -> f64) -> Option<String> {
    let (cost, batches) = point.cost.as_ref().zip(point.latency.as_ref())?;
    Some(time(of(cost, batches) / f64::from(cost.calls)))
}
