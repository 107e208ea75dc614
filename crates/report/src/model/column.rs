//! Latencies over message size, a column for each rate of the link: measured ones from points,
//! published ones from figures.

use std::collections::BTreeSet;

use measure::figure::{Figure, FigureKind, Unit};
use measure::record::{LatencyKind, Point};
use serde_json::Value;

use crate::Points;
use crate::error::Error;
use crate::link::{Generation, Layer};
use crate::link_limit;
use crate::list::distinct;
use crate::series_table::{Series, SeriesTable};
use crate::value;

/// Columns that differ only in the rate of the link.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) title: String,
    /// Where the numbers come from: `measured`, or `published` with the place.
    pub(super) source: String,
    /// How messages are divided into packets, if it is known.
    pub(super) packing: Option<Packing>,
    pub(super) columns: Vec<Column>,
}

/// How messages are divided into packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Packing {
    /// The payload that a packet may carry, in bytes.
    pub(super) mtu: u64,
    /// The bytes around it.
    pub(super) header_bytes: u64,
}

/// Latencies at one rate.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) label: String,
    /// The generation of the link, if the column names it.
    pub(super) generation: Option<Generation>,
    /// The latencies in rising order of size.
    pub(super) cells: Vec<Cell>,
}

/// One latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) size: u64,
    pub(super) ns: f64,
}

/// The tables of a run, from experiments that measured the latency over size; points that differ in
/// anything but size and rate are in different tables.
pub(super) fn measured(run: Points<'_>) -> Result<Vec<Table>, Error> {
    let mut tables = Vec::new();
    for experiment in experiments(run.points, is_of_messages) {
        let figure = over_size(experiment, "latency.p50_ns", Some(Unit::Ns));
        let series_table = SeriesTable::new(&figure, run)?;
        let mut of_experiment: Vec<(Vec<(String, Value)>, Table)> = Vec::new();
        for series in &series_table.series {
            let cells = series_table.xs.iter().zip(&series.cells);
            let cells = cells.filter_map(|(size, cell)| Some((size.as_u64()?, cell.number()?.median)));
            let (rate, others): (Vec<_>, Vec<_>) =
                series.key.iter().cloned().partition(|(name, _)| name == RATE);
            let rate = rate.first().map(|(_, rate)| value::text(rate));
            let column = Column::new(rate.as_deref().unwrap_or("as is"), cells);
            if column.cells.len() < LEAST_SIZES {
                continue;
            }
            match of_experiment.iter_mut().find(|(known, _)| *known == others) {
                Some((_, table)) => table.columns.push(column),
                None => {
                    let table = Table {
                        title: title(experiment, &others),
                        source: "measured".to_owned(),
                        packing: packing(run, experiment, series),
                        columns: vec![column],
                    };
                    of_experiment.push((others, table));
                }
            }
        }
        tables.extend(of_experiment.into_iter().map(|(_, table)| table));
    }
    Ok(tables)
}

/// The published latencies over size that a figure carries.
pub(super) fn published(figure: &Figure, run: Points<'_>) -> Result<Option<Table>, Error> {
    let is_latency = figure.y.as_deref().is_some_and(|y| y.starts_with("latency.") && y.ends_with("_ns"));
    let Some(reference) =
        figure.reference.as_ref().filter(|_| is_latency && figure.x.as_deref() == Some(SIZE))
    else {
        return Ok(None);
    };
    let figure = Figure { unit: Some(Unit::Ns), ..figure.clone() };
    let series_table = SeriesTable::new(&figure, Points { points: &[], ..run })?;
    let columns = series_table.published.iter().map(|published| {
        let cells = series_table.xs.iter().enumerate();
        let cells = cells
            .filter_map(|(row, size)| Some((size.as_u64()?, published.number(row, series_table.scale)?)));
        Column::new(&published.label, cells)
    });
    let columns: Vec<Column> = columns.filter(|column| column.cells.len() >= LEAST_SIZES).collect();
    Ok((!columns.is_empty()).then(|| Table {
        title: figure.title.clone(),
        source: format!("{}: {}", reference.origin(), reference.source),
        // The published tables of built-in plans measured InfiniBand.
        packing: figure.only.get(MTU).and_then(Value::as_u64).map(|mtu| Packing::of(mtu, Layer::InfiniBand)),
        columns,
    }))
}

impl Packing {
    pub(super) fn of(mtu: u64, layer: Layer) -> Self {
        Self { mtu, header_bytes: layer.header_bytes() }
    }
}

impl Column {
    fn new(label: &str, cells: impl Iterator<Item = (u64, f64)>) -> Self {
        let cells = cells.filter(|(_, ns)| *ns > 0.0).map(|(size, ns)| Cell { size, ns }).collect();
        let generation = Generation::named(&label.to_ascii_uppercase());
        Self { label: label.to_owned(), generation, cells }
    }

    /// The latency of a size.
    pub(super) fn at(&self, size: u64) -> Option<f64> {
        self.cells.iter().find(|cell| cell.size == size).map(|cell| cell.ns)
    }
}

/// The sizes that any of the columns has, in rising order.
pub(super) fn sizes(columns: &[&Column]) -> Vec<u64> {
    let cells = columns.iter().flat_map(|column| &column.cells);
    cells.map(|cell| cell.size).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a point has the latency of a message, not of a burst or of a batch of calls.
fn is_of_messages(point: &Point) -> bool {
    let kind = point.latency.as_ref().map(|latency| latency.kind);
    kind.is_some_and(|kind| !matches!(kind, LatencyKind::Call | LatencyKind::Prtt))
}

/// The experiments with points of sizes for which a condition holds, in order.
pub(super) fn experiments(points: &[Point], holds: impl Fn(&Point) -> bool) -> Vec<&str> {
    let points = points.iter().filter(|point| holds(point) && point.axes.contains_key(SIZE));
    distinct(points.map(|point| point.experiment.as_str()))
}

/// A figure of a number of an experiment over size.
pub(super) fn over_size(experiment: &str, y: &str, unit: Option<Unit>) -> Figure {
    Figure {
        experiments: vec![experiment.to_owned()],
        x: Some(SIZE.to_owned()),
        y: Some(y.to_owned()),
        unit,
        series: vec![RATE.to_owned()],
        ..Figure::new(FigureKind::Table, experiment)
    }
}

/// The experiment of a series and the axes that distinguish it, in print.
pub(super) fn title(experiment: &str, axes: &[(String, Value)]) -> String {
    let axes: Vec<String> =
        axes.iter().map(|(name, value)| format!("{name} {}", value::text(value))).collect();
    if axes.is_empty() { experiment.to_owned() } else { format!("{experiment}: {}", axes.join(", ")) }
}

/// How the points of a series were divided into packets, if all were alike.
fn packing(run: Points<'_>, experiment: &str, series: &Series) -> Option<Packing> {
    let is_of = |point: &&Point| {
        point.experiment == experiment
            && series.key.iter().all(|(name, value)| point.axes.get(name).is_none_or(|own| own == value))
    };
    let mut all = run.points.iter().filter(is_of).map(|point| {
        let mtu = point.axes.get(MTU).and_then(Value::as_u64)?;
        link_limit::layer(point, run.devices).map(|layer| Packing::of(mtu, layer))
    });
    let first = all.next()??;
    all.all(|packing| packing == Some(first)).then_some(first)
}

const SIZE: &str = "size_bytes";
const MTU: &str = "mtu_bytes";
const RATE: &str = "signal_rate";
/// A line through fewer sizes shows nothing.
const LEAST_SIZES: usize = 3;
