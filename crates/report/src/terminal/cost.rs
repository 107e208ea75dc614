//! Rows of calls that were timed by themselves, in batches.

use measure::record::Point;

use super::plain;
use super::row::size;

/// Times are those of a batch divided by its calls; `stamp` is the part of them that is a stamp's.
pub(super) const COLUMNS: [&str; 10] = [
    "step",
    "#bytes",
    "#calls",
    "#batches",
    "typical[ns]",
    "95% from",
    "to",
    "min[ns]",
    "99%[ns]",
    "stamp[ns]",
];

/// Width of the longest name of a step, and of the columns behind it.
const STEP_WIDTH: usize = 14;
const WIDTHS: [usize; 9] = [10, 7, 9, 11, 10, 10, 10, 10, 9];

/// Cells aligned under their columns' names.
pub(super) fn line(cells: &[String], end: &str) -> String {
    let Some((step, numbers)) = cells.split_first() else { return String::new() };
    let numbers: String =
        numbers.iter().zip(WIDTHS).map(|(text, width)| format!(" {text:>width$}")).collect();
    format!(" {step:STEP_WIDTH$}{numbers}{end}\n")
}

/// The line of a point.
pub(super) fn row(point: &Point, marks: &str) -> String {
    let (Some(cost), Some(batches)) = (&point.cost, &point.latency) else { return String::new() };
    let each = |batch_ns: u64| time(batch_ns as f64 / f64::from(cost.calls));
    let end = |index: usize| cost.ci95_ns.map_or("-".to_owned(), |ends| time(ends[index]));
    let cells = [
        plain(&cost.step),
        size(point),
        cost.calls.to_string(),
        batches.count.to_string(),
        time(cost.ns),
        end(0),
        end(1),
        each(batches.min_ns),
        each(batches.p99_ns),
        time(cost.stamp_ns / f64::from(cost.calls)),
    ];
    line(&cells, marks)
}

/// A time in ns, with three digits or more of those that a call of some nanoseconds needs.
fn time(ns: f64) -> String {
    let digits = match ns {
        n if n < 100.0 => 2,
        n if n < 10_000.0 => 1,
        _ => 0,
    };
    format!("{ns:.digits$}")
}
