//! The cells of a figure: points selected, arranged by x and series, repetitions folded into one number each.
//!
//! Points are folded only if they differ in nothing but the repetition. Where a figure's `series` would mix points
//! that differ in some other axis, in experiment or in the kind of latency, that axis is made part of the series.

mod at_limit;
mod cells;
mod difference;
mod published;
mod split;

use measure::figure::Figure;
use measure::record::{Direction, Point, Status};
use serde_json::Value;

use crate::error::Error;
use crate::unit::Scale;
use crate::value;
pub(crate) use at_limit::Line;
pub(crate) use cells::{Cell, Number, Published, Series, SeriesTable};
pub(crate) use published::label;

impl SeriesTable {
    /// Arranges the points that a figure shows.
    pub(crate) fn new(figure: &Figure, points: &[Point]) -> Result<Self, Error> {
        let lacks = |key| Error::FigureLacks { title: figure.title.clone(), key };
        let x = figure.x.clone().ok_or_else(|| lacks("x"))?;
        let y = figure.y.clone().ok_or_else(|| lacks("y"))?;
        let scale = Scale::of(figure.unit, &y)?;
        let shown: Vec<&Point> = points.iter().filter(|p| shows(figure, p)).collect();
        let mut kinds: Vec<_> = shown.iter().filter_map(|p| value::latency(p, &y)).map(|l| l.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let xs = all_xs(figure, &shown, &x);
        let names = split::names(&figure.series, &shown, &x, &y, kinds.len() > 1);
        let series: Vec<Series> = split::groups(&names, &shown, &y)
            .into_iter()
            .map(|(key, points)| Series {
                label: split::label(&names, &key),
                key: names.iter().cloned().zip(key.iter().cloned()).collect(),
                words: key.iter().map(|v| value::text(v).to_lowercase()).collect(),
                cells: xs.iter().map(|at| cell(&points, &x, at, &y, scale)).collect(),
            })
            .collect();
        let series = match figure {
            _ if figure.difference => difference::of_each(series),
            _ if figure.above_first => difference::above_first(series),
            _ => series,
        };
        let published = published::columns(figure, &x, &xs, &series);
        let direction = |p: &&Point| p.throughput.as_ref().map(|throughput| throughput.direction);
        let several = shown.iter().filter_map(direction).find_map(|direction| match direction {
            Direction::Load => Some("all loaders"),
            Direction::Pairs => Some("all pairs"),
            Direction::BiOne | Direction::BiTotal | Direction::Uni => None,
        });
        let carriers = several.unwrap_or("one direction");
        Ok(Self { x, y, scale, xs, series, published, kinds, carriers })
    }
}

/// The points of a figure without x: groups that differ in nothing but the repetition, each with its label.
pub(crate) fn groups<'a>(figure: &Figure, shown: &[&'a Point]) -> Vec<(String, Vec<&'a Point>)> {
    let names = split::names(&figure.series, shown, "", "", false);
    let groups = split::groups(&names, shown, "");
    groups.into_iter().map(|(key, points)| (split::label(&names, &key), points)).collect()
}

/// The middle of the values; of an even number, the mean of the middle two.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

/// Whether a figure shows a point.
pub(crate) fn shows(figure: &Figure, point: &Point) -> bool {
    figure.experiments.contains(&point.experiment)
        && figure.only.iter().all(|(name, value)| point.axes.get(name) == Some(value))
}

/// Every x of a measured point or a published row.
fn all_xs(figure: &Figure, shown: &[&Point], x: &str) -> Vec<Value> {
    let measured = shown.iter().filter_map(|p| p.axes.get(x).cloned());
    let mut xs: Vec<Value> = Vec::new();
    for value in measured.chain(published::xs(figure, x)) {
        if !xs.contains(&value) {
            xs.push(value);
        }
    }
    xs.sort_by(value::order);
    xs
}

fn cell(points: &[&Point], x: &str, at: &Value, y: &str, scale: Scale) -> Cell {
    let here: Vec<&Point> = points.iter().copied().filter(|p| p.axes.get(x) == Some(at)).collect();
    let mut numbers: Vec<(f64, &Point)> = here
        .iter()
        .filter(|p| p.status == Status::Measured)
        .filter_map(|p| Some((scale.apply(value::number(p, y)?), *p)))
        .collect();
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(first), Some(last), Some(median)) =
        (numbers.first(), numbers.last(), median(numbers.iter().map(|n| n.0).collect()))
    else {
        return without_number(&here, y);
    };
    let nearest = numbers.iter().min_by(|a, b| (a.0 - median).abs().total_cmp(&(b.0 - median).abs()));
    Cell::Value(Number {
        median,
        runs: [first.0, last.0],
        repetitions: numbers.len(),
        quantiles: quantiles(&numbers, y, scale),
        bound: bound(&numbers, y).map(|bound| scale.apply(bound)),
        samples: samples(&numbers, y),
        id: nearest.map_or(first.1.id, |n| n.1.id),
        at_limit: None,
        doubts: here.iter().filter_map(|p| doubt(p, here.len())).collect(),
    })
}

fn without_number(here: &[&Point], y: &str) -> Cell {
    let outcome = |p: &&Point| match &p.status {
        Status::Failed { error } => Some(Cell::Failed(error.clone())),
        Status::NotMeasured { reason } => Some(Cell::NotMeasured(reason.clone())),
        Status::Measured => None,
    };
    match here.iter().find_map(outcome) {
        Some(cell) => cell,
        None if here.is_empty() => Cell::Absent,
        None => Cell::NotMeasured(format!("the record has no {y} for this point")),
    }
}

/// Quantiles belong beside a middle of the same samples only.
fn quantiles(numbers: &[(f64, &Point)], y: &str, scale: Scale) -> Option<[f64; 2]> {
    if !(y.ends_with(".p50_ns") || y.ends_with(".mean_ns")) {
        return None;
    }
    let (latency, _) = y.rsplit_once('.')?;
    let all = |field: &str| {
        let of = |point: &Point| value::number(point, &format!("{latency}.{field}"));
        median(numbers.iter().filter_map(|(_, point)| of(point)).map(|n| scale.apply(n)).collect())
    };
    Some([all("p10_ns")?, all("p90_ns")?])
}

/// The count that an extreme has to be read with (V42 of the evaluations).
fn samples(numbers: &[(f64, &Point)], y: &str) -> Option<u64> {
    let is_extreme = [".min_ns", ".max_ns"].iter().any(|field| y.ends_with(field));
    let counts =
        numbers.iter().filter_map(|(_, point)| value::latency(point, y)).map(|latency| latency.count);
    is_extreme.then(|| counts.sum())
}

/// The largest bound of the repetitions, where y compares two clocks.
fn bound(numbers: &[(f64, &Point)], y: &str) -> Option<f64> {
    numbers.iter().filter_map(|(_, point)| value::bound(point, y)).reduce(f64::max)
}

/// Why not to trust a point, which is one of so many repetitions.
pub(crate) fn doubt(point: &Point, of: usize) -> Option<String> {
    let which = if of > 1 { format!("repetition {} ", point.repetition + 1) } else { String::new() };
    match (&point.status, &point.unstable) {
        (Status::Failed { error }, _) => Some(format!("{which}failed: {error}")),
        (Status::NotMeasured { reason }, _) => Some(format!("{which}not measured: {reason}")),
        (Status::Measured, Some(reason)) => Some(format!("{which}unstable: {reason}")),
        (Status::Measured, None) => None,
    }
}

#[cfg(test)]
mod tests;
