//! One number of all repetitions of a point, with its interval and the doubts about it.

use measure::figure::Unit;
use measure::presentation::Patterns;
use measure::quantity::{self, Counted};
use measure::record::{Point, Status};
use measure::selection;
use measure::stats::shape::{self, Estimate};
use measure::units::Dimension;

use crate::launched;
use crate::unit::{self, Scale};

/// A number of all repetitions of a point.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) y: Estimate,
    /// Samples of all repetitions; `None` where the number has no samples.
    pub(crate) samples: Option<u64>,
    pub(crate) runs: usize,
    pub(crate) id: u64,
    pub(crate) doubts: Doubts,
    /// Whether it comes from one run and has no interval within it.
    pub(crate) lacks_interval: bool,
    scale: Scale,
    /// The unit that the measured program reports.
    pub(crate) counted: Option<Counted>,
    /// Its largest error, where stamps of two clocks are compared.
    bound: Option<f64>,
    /// Set if the number is the largest or smallest count of all repetitions: `the most`, `the
    /// least`.
    which: Option<&'static str>,
}

/// Unstable and failed runs behind a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Doubts {
    /// The repetitions that were measured, or failed.
    pub(crate) runs: usize,
    pub(crate) unstable: usize,
    pub(crate) failed: usize,
    /// The first reason; other reasons are given with their points.
    pub(crate) first: Option<String>,
    /// The first reason of a repetition that failed.
    pub(crate) error: Option<String>,
}

impl Doubts {
    /// The doubts about two numbers together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            unstable: self.unstable + other.unstable,
            failed: self.failed + other.failed,
            first: self.first.or(other.first),
            error: self.error.or(other.error),
        }
    }

    /// Whether no run was stable.
    pub(crate) fn are_all(&self) -> bool {
        self.runs > 0 && self.unstable == self.runs
    }

    /// How many repetitions, in print: `2 of 6 repetitions unstable`; `None` without doubts.
    pub(crate) fn text(&self) -> Option<String> {
        let said = |count: usize, what: &str| {
            (count > 0).then(|| format!("{count} of {} repetitions {what}", self.runs))
        };
        let all: Vec<String> =
            [said(self.unstable, "unstable"), said(self.failed, "failed")].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

impl Measured {
    /// The number with its bound and count: `1269 ns (n 200,000 in 25 repetitions)`.
    pub(crate) fn text(&self) -> String {
        self.with("")
    }

    /// The same with the ends of its interval: `1269 ns [1266 ns, 1271 ns] (n 1,000)`.
    pub(crate) fn text_with_interval(&self) -> String {
        let ends = [self.y.low, self.y.high].map(|end| self.in_its_unit(end)).join(", ");
        let is_wide = self.y.low < self.y.high;
        self.with(&if is_wide { format!(" [{ends}]") } else { String::new() })
    }

    fn with(&self, interval: &str) -> String {
        let bound = self.bound.map(|bound| format!(" ± {}", number(bound, self.scale)));
        let value = self.in_its_unit(self.y.value);
        format!("{value}{}{interval}{}", bound.unwrap_or_default(), self.count())
    }

    /// Another number of the same quantity, in print.
    pub(crate) fn in_its_unit(&self, raw: f64) -> String {
        let unit = self.counted.as_ref().map_or("", |counted| &counted.unit);
        format!("{} {unit}", number(raw, self.scale)).trim_end().to_owned()
    }

    fn count(&self) -> String {
        let runs = if self.runs > 1 { format!(" in {} repetitions", self.runs) } else { String::new() };
        if let Some(which) = self.which.filter(|_| self.runs > 1) {
            return format!(" ({which} of {} repetitions)", self.runs);
        }
        match self.samples {
            Some(samples) => format!(" (n {}{runs})", unit::grouped(samples)),
            None if self.runs > 1 => format!(" ({} repetitions)", self.runs),
            None => String::new(),
        }
    }
}

/// Folds several repetitions into one number, or says why there is none. A launch counts once,
/// whatever its number of repetitions.
pub(crate) fn fold(
    points: &[&Point],
    patterns: Patterns,
    path: &str,
    unit: Option<Unit>,
) -> Result<Measured, String> {
    let first = points.first().ok_or(NO_POINT)?;
    let differing = points
        .iter()
        .find_map(|p| selection::difference((&first.experiment, &first.axes), (&p.experiment, &p.axes)));
    if let Some(axis) = differing {
        return Err(format!("its points differ in {axis}"));
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
    let is_of_samples = is_share && measured.iter().any(|(_, y)| y.samples.is_some());
    let y = if is_of_samples {
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
    let scale = Scale::of(unit, path, patterns).map_err(|error| error.to_string())?;
    let samples = measured.iter().map(|(_, y)| y.samples).sum();
    let id = measured[0].0.id;
    let counted = patterns.find_at(measured[0].0, path).and_then(|found| found.counted(measured[0].0));
    let lacks_interval = matches!(measured[..], [(_, y)] if !y.has_interval);
    let runs = measured.len();
    let doubts = doubts(points);
    Ok(Measured { y, samples, runs, id, doubts, lacks_interval, scale, counted, bound, which: None })
}

/// Folds as [`fold`], but takes the largest or smallest count of all repetitions: their median
/// would hide losses in fewer than half of them.
pub(crate) fn fold_worst(
    points: &[&Point],
    patterns: Patterns,
    path: &str,
    unit: Option<Unit>,
    is_most: bool,
) -> Result<Measured, String> {
    let mut measured = fold(points, patterns, path, unit)?;
    if patterns.find(path).is_some_and(|found| found.quantity.is_count) {
        let measured_points = points.iter().filter(|point| point.status == Status::Measured);
        let counts = measured_points.filter_map(|point| patterns.find_at(point, path)?.number(point));
        let worst = counts.reduce(if is_most { f64::max } else { f64::min });
        measured.y = worst.map_or(measured.y, Estimate::exact);
        measured.which = Some(if is_most { "the most" } else { "the least" });
    }
    Ok(measured)
}

fn without_number(points: &[&Point], path: &str) -> String {
    let outcome = |point: &&Point| match &point.status {
        Status::Failed { error } => Some(format!("it failed: {error}")),
        Status::NotMeasured { reason } => Some(reason.clone()),
        Status::Measured => None,
    };
    points.iter().find_map(outcome).unwrap_or_else(|| format!("the record has no {path} of this point"))
}

/// The doubts about some of the repetitions.
fn doubts(points: &[&Point]) -> Doubts {
    let failed = points.iter().filter_map(|point| match &point.status {
        Status::Failed { error } => Some(error),
        _ => None,
    });
    let unstable = points.iter().filter_map(|point| point.unstable.as_ref());
    let is_absent = |point: &&&Point| matches!(point.status, Status::NotMeasured { .. });
    Doubts {
        runs: points.len() - points.iter().filter(is_absent).count(),
        unstable: unstable.clone().count(),
        failed: failed.clone().count(),
        error: failed.clone().next().cloned(),
        first: unstable.chain(failed).next().cloned(),
    }
}

/// A raw number in print: whole nanoseconds, otherwise at least three significant digits.
pub(crate) fn number(raw: f64, scale: Scale) -> String {
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

/// The decimals with which a number has three significant digits.
pub(crate) fn digits(value: f64) -> usize {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        _ => 4,
    }
}

/// The reason for missing points: the plan has none, or the run ended before them.
pub(crate) const NO_POINT: &str = "this run has no such point";
