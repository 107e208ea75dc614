//! The columns of the table of all points. The page's script shows them and sorts by them.

use measure::quantity;
use measure::record::{Point, Status};
use serde::Serialize;
use serde_json::Value;

use super::chart::x_title;
use crate::list::distinct;

/// A column with its values.
#[derive(Serialize)]
pub(super) struct Column {
    name: String,
    /// One for each point; null where a point has none.
    values: Vec<Value>,
}

/// The content of a column.
enum Cell {
    /// The number at a path, divided.
    Number(&'static str, f64),
    /// The share of the link limit, in percent.
    OfLink,
    /// Anything else.
    Other(fn(&Point) -> Value),
}

use Cell::{Number, OfLink, Other};

/// The columns before those of the axes.
const FIRST: [(&str, Cell); 3] = [
    ("point", Other(|point| point.id.into())),
    ("experiment", Other(|point| point.experiment.as_str().into())),
    ("pattern", Other(|point| point.pattern.as_str().into())),
];

/// The columns behind the axes.
const HEADLINE: [(&str, Cell); 18] = [
    ("repetition", Other(|point| (u64::from(point.repetition) + 1).into())),
    ("launch", Other(|point| point.launch.map(|launch| u64::from(launch) + 1).into())),
    ("status", Other(|point| status(point).into())),
    ("iterations", Other(|point| point.iterations.into())),
    ("latency", Other(|point| point.latency.as_ref().map(|latency| latency.kind.name()).into())),
    ("samples", Number("latency.count", 1.0)),
    ("min [ns]", Number("latency.min_ns", 1.0)),
    ("10 % [ns]", Number("latency.p10_ns", 1.0)),
    ("median [ns]", Number("latency.p50_ns", 1.0)),
    ("median, 95 % low [ns]", Other(|point| of_median(point, 0).into())),
    ("median, 95 % high [ns]", Other(|point| of_median(point, 1).into())),
    ("90 % [ns]", Number("latency.p90_ns", 1.0)),
    ("99 % [ns]", Number("latency.p99_ns", 1.0)),
    ("99.9 % [ns]", Number("latency.p999_ns", 1.0)),
    ("max [ns]", Number("latency.max_ns", 1.0)),
    ("mean [ns]", Number("latency.mean_ns", 1.0)),
    ("standard deviation [ns]", Number("latency.stddev_ns", 1.0)),
    ("outliers", Number("latency.mavericks.count", 1.0)),
];

/// The columns behind the medians of further kinds of latency.
const REST: [(&str, Cell); 15] = [
    ("cost of a call [ns]", Number("cost.ns", 1.0)),
    ("calls in a batch", Other(|point| point.cost.as_ref().map(|cost| cost.calls).into())),
    ("cost, 95 % low [ns]", Other(|point| of_cost(point, 0).into())),
    ("cost, 95 % high [ns]", Other(|point| of_cost(point, 1).into())),
    ("stamp [ns]", Other(|point| point.cost.as_ref().map(|cost| cost.stamp_ns).into())),
    ("completed first [%]", Number("completed_first_share", 0.01)),
    ("bound of two clocks [ns]", Other(|point| bound_ns(point).into())),
    ("direction of the throughput", Other(direction)),
    ("throughput [Gb/s]", Number("throughput.bytes_per_s", 1.25e8)),
    ("of the link [%]", OfLink),
    ("messages [Mmsg/s]", Number("throughput.messages_per_s", 1e6)),
    ("total throughput [Gb/s]", Number("throughput_total.bytes_per_s", 1.25e8)),
    ("messages lost", Number("counters.messages_lost", 1.0)),
    ("wall time [s]", Number("wall_ns", 1e9)),
    ("note", Other(|point| note(point).into())),
];

/// The columns in which at least one point has a value; `of_link` returns the share of the link
/// limit.
pub(super) fn columns(points: &[Point], of_link: impl Fn(&Point) -> Option<f64>) -> Vec<Column> {
    let column = |name: &str, of: &dyn Fn(&Point) -> Value| Column {
        name: name.to_owned(),
        values: points.iter().map(of).collect(),
    };
    let row = |(name, cell): &(&str, Cell)| {
        column(name, &|point| match cell {
            Number(path, one) => {
                let number = quantity::find(path).and_then(|found| found.number(point));
                number.map(|number| short(number / one)).into()
            }
            OfLink => of_link(point).into(),
            Other(of) => of(point),
        })
    };
    let mut axes: Vec<&String> = points.iter().flat_map(|point| point.axes.keys()).collect();
    axes.sort_unstable();
    axes.dedup();
    let axes = axes
        .into_iter()
        .map(|name| column(&x_title(name), &|point| point.axes.get(name).cloned().unwrap_or_default()));
    // All kinds but the main latency, in the order in which they appear.
    let timed = points.iter().flat_map(|point| point.kinds.iter().skip(1));
    let kinds = distinct(timed.map(|timed| timed.latency.kind));
    let kinds = kinds.into_iter().map(|kind| {
        let of = |point: &Point| {
            point.kinds.iter().find(|timed| timed.latency.kind == kind).map(|timed| timed.latency.p50_ns)
        };
        column(&format!("{}, median [ns]", kind.name()), &|point| of(point).into())
    });
    let headline = FIRST.iter().map(row).chain(axes).chain(HEADLINE.iter().map(row));
    let all = headline.chain(kinds).chain(REST.iter().map(row));
    all.filter(|column| column.values.iter().any(|value| !value.is_null())).collect()
}

/// A whole number without a fraction.
fn short(number: f64) -> Value {
    let is_whole = number.fract() == 0.0 && (0.0..9e15).contains(&number);
    if is_whole { (number as u64).into() } else { number.into() }
}

fn status(point: &Point) -> &'static str {
    match point.status {
        Status::Measured => "measured",
        Status::NotMeasured { .. } => "not measured",
        Status::Failed { .. } => "failed",
    }
}

fn of_median(point: &Point, end: usize) -> Option<u64> {
    Some(point.latency.as_ref()?.p50_ci95_ns?[end])
}

fn of_cost(point: &Point, end: usize) -> Option<f64> {
    Some(point.cost.as_ref()?.ci95_ns?[end])
}

fn bound_ns(point: &Point) -> Option<f64> {
    match point.one_way.as_ref()?.clocks {
        measure::record::Clocks::Two { bound_ns, .. } => Some(bound_ns),
        measure::record::Clocks::One => None,
    }
}

fn direction(point: &Point) -> Value {
    let direction = point.throughput.as_ref().map(|throughput| serde_json::to_value(throughput.direction));
    direction.and_then(Result::ok).unwrap_or_default()
}

/// Why there is no number, or why it is unstable.
fn note(point: &Point) -> Option<&str> {
    match &point.status {
        Status::NotMeasured { reason } => Some(reason),
        Status::Failed { error } => Some(error),
        Status::Measured => point.unstable.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_row() {
        for (name, cell) in FIRST.iter().chain(&HEADLINE).chain(&REST) {
            if let Number(path, _) = cell {
                assert!(quantity::find(path).is_some(), "{name}");
            }
        }
        assert_eq!([short(820.0), short(0.5)].map(|number| number.to_string()), ["820", "0.5"]);
    }
}
