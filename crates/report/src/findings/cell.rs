//! The numbers that findings are made of: one of all repetitions of a point, and series of them
//! over x.

use measure::finding::{self, Finding, Selection};
use measure::presentation::Patterns;
use measure::quantity;
use measure::record::{Point, Status};
use measure::stats::shape::{self, At, Estimate};
use measure::units::Dimension;

use super::verdict::Doubts;
use crate::launched;
use crate::list::grouped;
use crate::unit::{self, Scale};
use crate::value;

/// The points of a case, and the patterns that say which numbers they have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) points: &'a [&'a Point],
    pub(super) patterns: Patterns,
}

/// A number of all repetitions of one point.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) y: Estimate,
    /// Samples of all repetitions; none for what has no samples.
    pub(super) samples: Option<u64>,
    pub(super) runs: usize,
    pub(super) id: u64,
    pub(super) doubts: Doubts,
    /// Whether it is of one run, and has no interval within it.
    pub(super) lacks_interval: bool,
    scale: Scale,
    /// What it may be off by where stamps of two clocks are compared.
    bound: Option<f64>,
}

/// Numbers by the value of an axis, and the values without one.
#[derive(Debug)]
pub(super) struct Numbers<X> {
    pub(super) at: Vec<(X, Measured)>,
    missing: Vec<(X, String)>,
}

/// Numbers over x, rising.
pub(super) type Series = Numbers<f64>;
/// Numbers of what an axis names, in the order of the points.
pub(super) type Named = Numbers<String>;

impl Measured {
    /// The number with its bound and count: `1269 ns (n 200,000 in 25 runs)`.
    pub(super) fn text(&self) -> String {
        let bound = self.bound.map(|bound| format!(" ± {}", number(bound, self.scale)));
        format!("{}{}{}", number(self.y.value, self.scale), bound.unwrap_or_default(), self.count())
    }

    /// Another number of the same quantity, in print.
    pub(super) fn in_its_unit(&self, raw: f64) -> String {
        number(raw, self.scale)
    }

    fn count(&self) -> String {
        let runs = if self.runs > 1 { format!(" in {} runs", self.runs) } else { String::new() };
        match self.samples {
            Some(samples) => format!(" (n {}{runs})", unit::grouped(samples)),
            None if self.runs > 1 => format!(" ({} runs)", self.runs),
            None => String::new(),
        }
    }
}

impl<X> Numbers<X> {
    /// The number of each group of points, where it has one.
    fn of<'a>(
        groups: impl IntoIterator<Item = (X, Vec<&'a Point>)>,
        finding: &Finding,
        selection: &Selection,
        patterns: Patterns,
    ) -> Self {
        let mut numbers = Self { at: Vec::new(), missing: Vec::new() };
        for (x, points) in groups {
            match fold(&points, patterns, finding.quantity_of(selection), finding) {
                Ok(measured) => numbers.at.push((x, measured)),
                Err(reason) => numbers.missing.push((x, reason)),
            }
        }
        numbers
    }

    /// The least and the largest number.
    pub(super) fn extremes(&self) -> Option<[&(X, Measured); 2]> {
        let by = |a: &&(X, Measured), b: &&(X, Measured)| a.1.y.value.total_cmp(&b.1.y.value);
        Some([self.at.iter().min_by(by)?, self.at.iter().max_by(by)?])
    }
}

impl Series {
    /// The numbers alone.
    pub(super) fn points(&self) -> Vec<At> {
        self.at.iter().map(|(x, measured)| At { x: *x, y: measured.y }).collect()
    }

    /// The number at an x.
    pub(super) fn get(&self, x: f64) -> Option<&Measured> {
        self.at.iter().find(|(known, _)| *known == x).map(|(_, measured)| measured)
    }

    /// What to add where some x have no number: empty where all have.
    pub(super) fn gaps(&self) -> String {
        let Some((_, reason)) = self.missing.first() else { return String::new() };
        let all = self.at.len() + self.missing.len();
        format!("; not measured at {} of {all} x: {reason}", self.missing.len())
    }

    /// Why there is no number at an x.
    pub(super) fn lack_at(&self, x: f64) -> String {
        let missing = self.missing.iter().find(|(known, _)| *known == x);
        missing.map_or_else(|| NO_POINT.to_owned(), |(_, reason)| reason.clone())
    }

    /// Why there are fewer numbers than are needed.
    pub(super) fn lack(&self, needed: usize) -> String {
        match self.missing.first() {
            Some((_, reason)) => reason.clone(),
            None => format!("this run has {} of the {needed} points that it takes", self.at.len()),
        }
    }

    /// The least number of samples, in print.
    pub(super) fn least_count(&self) -> String {
        let least = self.at.iter().filter_map(|(_, measured)| measured.samples).min();
        least.map_or_else(String::new, |n| format!(", n at least {} each", unit::grouped(n)))
    }
}

/// The number of the points that a selection picks.
pub(super) fn one(finding: &Finding, selection: &Selection, points: Asked<'_>) -> Result<Measured, String> {
    fold(&picked(finding, selection, points), points.patterns, finding.quantity_of(selection), finding)
}

/// The points that a selection picks.
pub(super) fn picked<'a>(finding: &Finding, selection: &Selection, points: Asked<'a>) -> Vec<&'a Point> {
    points.points.iter().copied().filter(|p| finding.picks(selection, &p.experiment, &p.axes)).collect()
}

/// The numbers of the points that a selection picks, over x.
pub(super) fn series(finding: &Finding, selection: &Selection, points: Asked<'_>) -> Series {
    let axis = finding.x.as_deref().unwrap_or_default();
    let x_of = |point: &Point| point.axes.get(axis).and_then(serde_json::Value::as_f64);
    let within = |x: &f64| finding.from.is_none_or(|from| *x >= from) && finding.to.is_none_or(|to| *x <= to);
    let picked = picked(finding, selection, points);
    let mut xs: Vec<f64> = picked.iter().filter_map(|point| x_of(point)).filter(within).collect();
    xs.sort_unstable_by(f64::total_cmp);
    xs.dedup();
    let groups =
        xs.into_iter().map(|x| (x, picked.iter().copied().filter(|point| x_of(point) == Some(x)).collect()));
    Numbers::of(groups, finding, selection, points.patterns)
}

impl Named {
    pub(super) fn numbers(&self) -> Vec<At> {
        self.at.iter().map(|(_, measured)| At { x: 0.0, y: measured.y }).collect()
    }

    /// What to add where some have no number: empty where all have.
    pub(super) fn gaps(&self) -> String {
        let gap = |(name, reason): &(String, String)| format!("; {name} not measured: {reason}");
        self.missing.iter().map(gap).collect()
    }

    /// Why there are fewer than two.
    pub(super) fn lack(&self) -> String {
        match self.missing.first() {
            Some((name, reason)) => format!("{name}: {reason}"),
            None => format!("this run has {} of the 2 points that it takes", self.at.len()),
        }
    }
}

/// The numbers of the points that a selection picks, by the value of x.
pub(super) fn named(finding: &Finding, selection: &Selection, points: Asked<'_>) -> Named {
    let axis = finding.x.as_deref().unwrap_or_default();
    let name = |point: &Point| point.axes.get(axis).map(value::text);
    let named =
        picked(finding, selection, points).into_iter().filter_map(|point| Some((name(point)?, point)));
    Numbers::of(grouped(named), finding, selection, points.patterns)
}

/// One number of several repetitions, or why there is none. Of several launches each counts once.
fn fold(points: &[&Point], patterns: Patterns, path: &str, finding: &Finding) -> Result<Measured, String> {
    let first = points.first().ok_or(NO_POINT)?;
    let differing = points
        .iter()
        .find_map(|p| finding::difference((&first.experiment, &first.axes), (&p.experiment, &p.axes)));
    if let Some(axis) = differing {
        return Err(format!("the points that it asks for differ in {axis}"));
    }
    let measured: Vec<(&Point, quantity::Measured)> = points
        .iter()
        .filter(|point| point.status == Status::Measured)
        .filter_map(|point| Some((*point, patterns.find_at(point, path)?.measured(point)?)))
        .collect();
    let is_share = patterns.find(path).is_some_and(|found| found.unit() == Dimension::Share);
    let bounds =
        measured.iter().filter_map(|(point, _)| patterns.find_at(point, path)?.bound(point)).reduce(f64::max);
    let bound = bounds.map(|bound| if is_share { bound } else { bound.ceil() });
    let launches = launched::by_launch(&measured, |(point, _)| point);
    let y = if is_share {
        let share = |(_, y): &(&Point, quantity::Measured)| (y.estimate.value, y.samples.unwrap_or_default());
        let launch = |runs: &Vec<&(&Point, quantity::Measured)>| {
            shape::together(&runs.iter().map(|run| share(run)).collect::<Vec<_>>())
        };
        shape::share_of_runs(&launches.iter().map(launch).collect::<Vec<_>>())
            .map(|y| quantity::widened(y, bound.unwrap_or_default()))
    } else {
        let launch = |runs: &Vec<&(&Point, quantity::Measured)>| {
            Estimate::of_runs(&runs.iter().map(|(_, y)| y.estimate).collect::<Vec<_>>())
        };
        Estimate::of_runs(&launches.iter().filter_map(launch).collect::<Vec<_>>())
    };
    let y = y.ok_or_else(|| without_number(points, path))?;
    let scale = Scale::of(finding.unit, path, patterns).map_err(|error| error.to_string())?;
    let samples = measured.iter().map(|(_, y)| y.samples).sum();
    let id = measured[0].0.id;
    let lacks_interval = matches!(measured[..], [(_, y)] if !y.has_interval);
    let runs = measured.len();
    let doubts = doubts(points);
    Ok(Measured { y, samples, runs, id, doubts, lacks_interval, scale, bound })
}

fn without_number(points: &[&Point], path: &str) -> String {
    let outcome = |point: &&Point| match &point.status {
        Status::Failed { error } => Some(format!("it failed: {error}")),
        Status::NotMeasured { reason } => Some(reason.clone()),
        Status::Measured => None,
    };
    points.iter().find_map(outcome).unwrap_or_else(|| format!("the record has no {path} of this point"))
}

/// What speaks against some of the repetitions.
fn doubts(points: &[&Point]) -> Doubts {
    let failed = points.iter().filter_map(|point| match &point.status {
        Status::Failed { error } => Some(error),
        _ => None,
    });
    let unstable = points.iter().filter_map(|point| point.unstable.as_ref());
    Doubts {
        runs: points.len(),
        unstable: unstable.clone().count(),
        failed: failed.clone().count(),
        first: unstable.chain(failed).next().cloned(),
    }
}

/// A raw number in print: whole nanoseconds, else three significant digits or more.
pub(super) fn number(raw: f64, scale: Scale) -> String {
    let value = scale.apply(raw);
    let digits = match (scale.label, value.abs()) {
        (_, value) if value.fract() == 0.0 => 0,
        ("ns", value) if value < 10.0 => 2,
        ("ns", _) => 1,
        ("us", _) => 3,
        (_, value) => digits(value),
    };
    let unit = if scale.label.is_empty() { String::new() } else { format!(" {}", scale.label) };
    format!("{value:.digits$}{unit}")
}

/// Decimals with which a number has three significant digits.
pub(super) fn digits(value: f64) -> usize {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        _ => 4,
    }
}

/// Of points that are not there: not in the plan, or the run ended before them.
pub(super) const NO_POINT: &str = "this run has no such point";
