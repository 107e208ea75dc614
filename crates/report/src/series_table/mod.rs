//! The cells of a figure: points are selected and arranged by x and series, and repetitions are
//! folded into one number each.
//!
//! Points are folded only if they differ in nothing but the repetition and the launch: those of one
//! launch first, then the launches. If a figure's `series` would mix points that differ in another
//! axis, in experiment or in the kind of latency, that axis is added to the series.

mod at_limit;
mod cells;
mod difference;
mod published;
mod relative;
mod split;
mod y;

use measure::figure::Figure;
use measure::quantity::Counted;
use measure::record::{Direction, Point, Status};
use measure::selection;
use serde_json::Value;

use crate::error::Error;
use crate::list::distinct;
use crate::unit::Scale;
use crate::{Points, launched, value};
pub(crate) use cells::{Cell, Number, Published, Series, SeriesTable};
pub(crate) use published::label;
use y::Y;

impl SeriesTable {
    /// Arranges the points that a figure shows.
    pub(crate) fn new(figure: &Figure, run: Points<'_>) -> Result<Self, Error> {
        let lacks = |key| Error::FigureLacks { title: figure.title.clone(), key };
        let x = figure.x.clone().ok_or_else(|| lacks("x"))?;
        let y = figure.y.clone().ok_or_else(|| lacks("y"))?;
        let scale = Scale::of(figure.unit, &y, run.patterns)?;
        let number = Y { path: &y, patterns: run.patterns, scale };
        let shown: Vec<&Point> = run.points.iter().filter(|p| shows(figure, p)).collect();
        let mut kinds: Vec<_> = shown.iter().filter_map(|p| number.latency(p)).map(|l| l.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let xs = all_xs(figure, &shown, &x);
        let names = split::names(&figure.series, &shown, &x, Some(number), kinds.len() > 1);
        let series: Vec<Series> = split::groups(&names, &shown, Some(number))
            .into_iter()
            .map(|(key, points)| Series {
                label: split::label(&names, &key),
                key: names.iter().cloned().zip(key.iter().cloned()).collect(),
                words: key.iter().map(|v| value::text(v).to_lowercase()).collect(),
                cells: xs.iter().map(|at| cell(&points, &x, at, number)).collect(),
            })
            .collect();
        let series = match figure {
            _ if figure.difference => difference::of_each(series),
            _ if figure.above_first => difference::above_first(series),
            _ if !figure.relative_to.is_empty() => relative::relative(&series, &figure.relative_to),
            _ => series,
        };
        let published = published::columns(figure, &x, &xs, &series);
        let carriers = carriers(shown.iter().copied());
        let help = run.patterns.find(&y).map(|found| found.help().replace("{}", carriers));
        let counted = shown.iter().find_map(|point| run.patterns.find_at(point, &y)?.counted(point));
        let mut what = help.unwrap_or_else(|| y.clone());
        let mut scale = scale;
        if !figure.relative_to.is_empty() {
            what = format!("{what}, {}", relative::words(&figure.relative_to));
            scale = Scale::PLAIN;
        } else if let Some(Counted { unit, better }) = counted {
            let unit = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
            what = format!("{what}{unit} ({} is better)", better.name());
        }
        Ok(Self { x, y, scale, xs, series, published, kinds, what })
    }

    /// The same, with the link limits beside the numbers.
    pub(crate) fn with_links(figure: &Figure, run: Points<'_>) -> Result<Self, Error> {
        Ok(Self::new(figure, run)?.beside_links(run))
    }

    /// Where the numbers beside the measured ones come from, in one word.
    pub(crate) fn origin(&self) -> Option<&'static str> {
        self.published.first().map(|published| published.origin)
    }
}

/// The points of a figure without x, in groups that differ in nothing but the repetition, each with
/// its label.
pub(crate) fn groups<'a>(figure: &Figure, shown: &[&'a Point]) -> Vec<(String, Vec<&'a Point>)> {
    let names = split::names(&figure.series, shown, "", None, false);
    let groups = split::groups(&names, shown, None);
    groups.into_iter().map(|(key, points)| (split::label(&names, &key), points)).collect()
}

/// Returns what the throughput of the points is of: one direction, all pairs or all loaders.
pub(crate) fn carriers<'p>(mut points: impl Iterator<Item = &'p Point>) -> &'static str {
    let several = points.find_map(|point| match point.throughput.as_ref()?.direction {
        Direction::Load => Some("all loaders"),
        Direction::Pairs => Some("all pairs"),
        Direction::BiOne | Direction::BiTotal | Direction::Uni => None,
    });
    several.unwrap_or("one direction")
}

/// The middle of the values; the mean of the middle two of an even number.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

/// Whether a figure shows a point.
pub(crate) fn shows(figure: &Figure, point: &Point) -> bool {
    selection::picks(&figure.experiments, &figure.only, &point.experiment, &point.axes)
}

/// Every x of a measured point or a published row.
fn all_xs(figure: &Figure, shown: &[&Point], x: &str) -> Vec<Value> {
    let measured = shown.iter().filter_map(|p| p.axes.get(x).cloned());
    let mut xs = distinct(measured.chain(published::xs(figure, x)));
    xs.sort_by(value::order);
    xs
}

fn cell(points: &[&Point], x: &str, at: &Value, y: Y<'_>) -> Cell {
    let here: Vec<&Point> = points.iter().copied().filter(|p| p.axes.get(x) == Some(at)).collect();
    let mut numbers: Vec<(f64, &Point)> = here
        .iter()
        .filter(|p| p.status == Status::Measured)
        .filter_map(|p| Some((y.number(p)?, *p)))
        .collect();
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    // With several launches, each launch counts once.
    let launch = |runs: Vec<&(f64, &Point)>| median(runs.iter().map(|run| run.0).collect());
    let launches = launched::by_launch(&numbers, |(_, point)| point).into_iter();
    let mut runs: Vec<f64> = launches.filter_map(launch).collect();
    runs.sort_unstable_by(f64::total_cmp);
    let (Some(first), Some(last), Some(median)) = (runs.first(), runs.last(), median(runs.clone())) else {
        return without_number(&here, y.path);
    };
    let nearest = numbers.iter().min_by(|a, b| (a.0 - median).abs().total_cmp(&(b.0 - median).abs()));
    Cell::Value(Number {
        median,
        runs: [*first, *last],
        repetitions: runs.len(),
        are_launches: runs.len() < numbers.len(),
        quantiles: quantiles(&numbers, y),
        bound: bound(&numbers, y),
        samples: samples(&numbers, y),
        id: nearest.map_or(0, |n| n.1.id),
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

/// The percentiles, which belong to a median of the same samples only.
fn quantiles(numbers: &[(f64, &Point)], y: Y<'_>) -> Option<[f64; 2]> {
    let (latency, _) = y.path.rsplit_once('.').filter(|(_, field)| ["p50_ns", "mean_ns"].contains(field))?;
    let all = |field: &str| {
        let quantile = Y { path: &format!("{latency}.{field}"), ..y };
        median(numbers.iter().filter_map(|(_, point)| quantile.number(point)).collect())
    };
    Some([all("p10_ns")?, all("p90_ns")?])
}

/// The number of samples, which matters for an extreme.
fn samples(numbers: &[(f64, &Point)], y: Y<'_>) -> Option<u64> {
    let is_extreme = [".min_ns", ".max_ns"].iter().any(|field| y.path.ends_with(field));
    let counts = numbers.iter().filter_map(|(_, point)| y.latency(point)).map(|latency| latency.count);
    is_extreme.then(|| counts.sum())
}

/// The largest bound of the repetitions, where y compares two clocks.
fn bound(numbers: &[(f64, &Point)], y: Y<'_>) -> Option<f64> {
    numbers.iter().filter_map(|(_, point)| y.bound(point)).reduce(f64::max)
}

/// Why a point, one of `of` repetitions, is uncertain.
pub(crate) fn doubt(point: &Point, of: usize) -> Option<String> {
    let which =
        if of > 1 { format!("repetition {} ", u64::from(point.repetition) + 1) } else { String::new() };
    match (&point.status, &point.unstable) {
        (Status::Failed { error }, _) => Some(format!("{which}failed: {error}")),
        (Status::NotMeasured { reason }, _) => Some(format!("{which}not measured: {reason}")),
        (Status::Measured, Some(reason)) => Some(format!("{which}unstable: {reason}")),
        (Status::Measured, None) => None,
    }
}

#[cfg(test)]
mod tests;
