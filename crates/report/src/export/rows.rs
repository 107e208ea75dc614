//! The tidy table: a row for each point and quantity.

use std::collections::BTreeSet;

use measure::presentation::Patterns;
use measure::quantity::Found;
use measure::record::{InFleet, Point, Run, Status};
use measure::text::value;
use measure::units::Dimension;
use serde_json::Value;

use super::exported::{Cell, Exported};
use crate::fleet::rounds_of_schedule;
use crate::list::distinct;

/// A column of a table, with what the schema says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: &'static str,
    /// The type of its values in a Frictionless Table Schema.
    pub(super) kind: &'static str,
    /// Whether every row has a value.
    pub(super) is_required: bool,
    /// What its values are.
    pub(super) help: &'static str,
}

impl Column {
    pub(super) const fn new(name: &'static str, kind: &'static str, help: &'static str) -> Self {
        Self { name, kind, is_required: true, help }
    }

    pub(super) const fn optional(self) -> Self {
        Self { is_required: false, ..self }
    }
}

/// The columns of every export, in their order. The axes of the points follow.
pub(super) const COLUMNS: [Column; 22] = [
    Column::new("run", "string", "Name of the run's directory."),
    Column::new("started", "datetime", "When the run started, RFC 3339, UTC."),
    Column::new("hosts", "string", "Names of the hosts of the ranks, with commas between them.").optional(),
    Column::new("devices", "string", "Names of the devices of the ranks, with commas between them.")
        .optional(),
    Column::new("point", "integer", "Number of the point in its run, from 0."),
    Column::new("experiment", "string", "Name of the experiment in the plan."),
    Column::new("pattern", "string", "How ranks exchange messages, such as ping-pong."),
    Column::new("repetition", "integer", "Which repetition of the same combination of axes, from 0."),
    Column::new("launch", "integer", "Number of the launch whose ranks measured the point.").optional(),
    Column::new("round", "integer", "Number of the round of a fleet, from 0.").optional(),
    Column::new(
        "stage",
        "string",
        "schedule if the schedule of a fleet measured the round, suspects if it was measured after that.",
    )
    .optional(),
    Column::new(
        "members",
        "string",
        "Members of a fleet that measured the point, in rank order, with commas between them.",
    )
    .optional(),
    Column::new("status", "string", "measured, not_measured or failed."),
    Column::new("reason", "string", "Why the point was not measured, or failed.").optional(),
    Column::new("unstable", "string", "Why the numbers may be wrong: what disturbed the point.").optional(),
    Column::new("quantity", "string", "Path of the number; its last word ends in the unit.").optional(),
    Column::new("kind", "string", "Kind of the latency that the number belongs to, such as rtt_half.")
        .optional(),
    Column::new("unit", "string", "Unit of the number: ns, B/s, 1/s, or as an application names it.")
        .optional(),
    Column::new("value", "number", "The number: in ns, bytes per second, per second, or as a part of 1.")
        .optional(),
    Column::new("low", "number", "Lower end of its 95 % interval within the point.").optional(),
    Column::new("high", "number", "Upper end of its 95 % interval within the point.").optional(),
    Column::new("samples", "integer", "Samples that the number is made of.").optional(),
];

/// The rows of an export.
pub(super) struct Table<'a> {
    runs: &'a [Exported<'a>],
    patterns: Patterns,
    quantities: &'a [String],
    /// The axes of all points, in alphabetical order, each with the name of its column.
    axes: Vec<(String, &'a str)>,
}

impl<'a> Table<'a> {
    pub(super) fn of(runs: &'a [Exported<'a>], patterns: Patterns, quantities: &'a [String]) -> Self {
        let points = runs.iter().flat_map(|run| run.points);
        let axes: BTreeSet<&str> = points.flat_map(|point| point.axes.keys().map(String::as_str)).collect();
        let mut taken: Vec<String> = COLUMNS.iter().map(|column| column.name.to_owned()).collect();
        let columns = axes.iter().map(|axis| untaken(axis, &mut taken));
        let axes = columns.zip(axes.iter().copied()).collect();
        Self { runs, patterns, quantities, axes }
    }

    /// The names of its columns.
    pub(super) fn columns(&self) -> Vec<&str> {
        let axes = self.axes.iter().map(|(column, _)| column.as_str());
        COLUMNS.iter().map(|column| column.name).chain(axes).collect()
    }

    /// The columns of its axes, with the values of all points.
    #[cfg(feature = "parquet")]
    pub(super) fn axes(&self) -> impl Iterator<Item = (&str, Vec<&Value>)> {
        let points = || self.runs.iter().flat_map(|run| run.points);
        let values = move |axis| points().filter_map(|point| point.axes.get(axis)).collect();
        self.axes.iter().map(move |(column, axis)| (column.as_str(), values(*axis)))
    }

    /// Its rows, each with all columns.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<Cell<'_>>> {
        let points = self.runs.iter().flat_map(|run| {
            let rounds = run.run.fleet.as_ref().and_then(rounds_of_schedule);
            run.points.iter().map(move |point| (run, rounds, point))
        });
        points.flat_map(|(run, rounds, point)| self.rows_of(run, rounds, point))
    }

    /// The rows of a point; one without a number, if it was not measured. The schedule of a fleet
    /// has so many `rounds`.
    fn rows_of(&self, run: &Exported<'_>, rounds: Option<u64>, point: &Point) -> Vec<Vec<Cell<'_>>> {
        let is_measured = point.status == Status::Measured;
        let paths = match (is_measured, self.quantities) {
            (false, _) => Vec::new(),
            (true, []) => self.patterns.paths(point),
            (true, asked) => paths(point, self.patterns, asked),
        };
        let numbers = paths.iter().map(|path| number(self.patterns, point, path));
        let none = (!is_measured).then(|| vec![Value::Null; NUMBER]);
        let of_point = of_point(run, rounds, point);
        let axes = self.axes.iter().map(|(_, axis)| point.axes.get(*axis).cloned().unwrap_or_default());
        let row = |number: Vec<Value>| {
            let cells = of_point.iter().cloned().chain(number).chain(axes.clone());
            self.columns().into_iter().zip(cells).collect()
        };
        numbers.chain(none).map(row).collect()
    }
}

/// A name for an axis that is not taken yet, and is then: a foreign record may have an axis `run`.
pub(super) fn untaken(axis: &str, taken: &mut Vec<String>) -> String {
    let mut name = axis.to_owned();
    while taken.contains(&name) {
        name.insert_str(0, "axis_");
    }
    taken.push(name.clone());
    name
}

/// The columns of a number.
const NUMBER: usize = 7;

fn of_point(run: &Exported<'_>, rounds: Option<u64>, point: &Point) -> Vec<Value> {
    let names = |names: String| Some(names).filter(|names| !names.is_empty());
    let hosts = distinct(run.run.environments.iter().map(|environment| environment.hostname.as_str()));
    vec![
        run.name.as_str().into(),
        run.run.started.as_str().into(),
        names(hosts.join(",")).into(),
        names(run.devices()).into(),
        point.id.into(),
        point.experiment.as_str().into(),
        point.pattern.as_str().into(),
        point.repetition.into(),
        point.launch.into(),
        point.fleet.as_ref().map(|place| place.round).into(),
        point.fleet.as_ref().zip(rounds).map(|(place, rounds)| stage(place, rounds)).into(),
        members(run.run, point).map(|members| members.join(",")).into(),
        status(point).into(),
        reason(point).into(),
        point.unstable.as_deref().into(),
    ]
}

/// Why a fleet measured a point.
fn stage(place: &InFleet, rounds: u64) -> &'static str {
    if place.round < rounds { "schedule" } else { "suspects" }
}

/// The names of the members of a fleet that measured a point, in rank order.
fn members<'a>(run: &'a Run, point: &Point) -> Option<Vec<&'a str>> {
    let (fleet, place) = run.fleet.as_ref().zip(point.fleet.as_ref())?;
    let member = |member: &u32| fleet.members.get(*member as usize).map(|member| member.name.as_str());
    place.members.iter().map(member).collect()
}

fn number(patterns: Patterns, point: &Point, path: &str) -> Vec<Value> {
    let found = patterns.find_at(point, path);
    let kind = found.and_then(|found| found.latency(point)).map(|latency| latency.kind.name());
    let measured = found.and_then(|found| found.measured(point));
    let own = |found: Found<'_>| Some(found.counted(point)?.unit);
    let unit = found.map(|found| own(found).unwrap_or_else(|| base(found.unit()).to_owned()));
    let end = |end: fn(&measure::stats::shape::Estimate) -> f64| {
        measured.filter(|measured| measured.has_interval).map(|measured| end(&measured.estimate))
    };
    vec![
        path.into(),
        kind.into(),
        unit.filter(|unit| !unit.is_empty()).into(),
        measured.map(|measured| measured.estimate.value).into(),
        end(|estimate| estimate.low).into(),
        end(|estimate| estimate.high).into(),
        measured.and_then(|measured| measured.samples).into(),
    ]
}

/// The paths of a point's numbers that are among those that are asked for, in the order in which
/// they are asked for.
pub(super) fn paths(point: &Point, patterns: Patterns, asked: &[String]) -> Vec<String> {
    let has_number =
        |path: &str| patterns.find_at(point, path).is_some_and(|found| found.number(point).is_some());
    let of = |asked: &String| match has_number(asked) {
        true => vec![asked.clone()],
        false => {
            let group = format!("{asked}.");
            patterns.paths(point).into_iter().filter(|path| path.starts_with(&group)).collect()
        }
    };
    distinct(asked.iter().flat_map(of))
}

/// The paths of a point's numbers that are asked for; of none, those that are usual.
pub(super) fn asked(point: &Point, patterns: Patterns, quantities: &[String]) -> Vec<String> {
    let usual = USUAL.map(str::to_owned);
    paths(point, patterns, if quantities.is_empty() { &usual } else { quantities })
}

/// How a point ended, in a word.
pub(super) fn status(point: &Point) -> &'static str {
    match point.status {
        Status::Measured => "measured",
        Status::NotMeasured { .. } => "not_measured",
        Status::Failed { .. } => "failed",
    }
}

/// Why a point has no numbers.
pub(super) fn reason(point: &Point) -> Option<&str> {
    match &point.status {
        Status::Measured => None,
        Status::NotMeasured { reason } => Some(reason),
        Status::Failed { error } => Some(error),
    }
}

/// The text of a cell; empty without a value.
pub(super) fn text(cell: &Value) -> String {
    if cell.is_null() { String::new() } else { value(cell) }
}

/// What numbers of a dimension are in, in the record.
fn base(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Bandwidth => "B/s",
        Dimension::MessageRate => "1/s",
        Dimension::Number | Dimension::Share => "",
        Dimension::Time => "ns",
    }
}

/// The numbers that metrics and tables for people have if no others are asked for.
const USUAL: [&str; 7] = [
    "latency.p50_ns",
    "latency.p99_ns",
    "latency.max_ns",
    "throughput.bytes_per_s",
    "throughput.messages_per_s",
    "pipeline.missed_share",
    "messages_lost",
];
