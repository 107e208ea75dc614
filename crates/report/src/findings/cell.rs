//! The numbers that findings are computed from: single ones, and series over x.

use measure::finding::Finding;
use measure::presentation::Patterns;
use measure::record::Point;
use measure::selection::Selection;
use measure::stats::shape::At;

use crate::folded::{Measured, NO_POINT, fold};
use crate::list::grouped;
use crate::{unit, value};

/// The points of a case, and the patterns that define their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) points: &'a [&'a Point],
    pub(super) patterns: Patterns,
}

/// Numbers by the value of an axis, and the values without a number.
#[derive(Debug)]
pub(super) struct Numbers<X> {
    pub(super) at: Vec<(X, Measured)>,
    missing: Vec<(X, String)>,
}

/// Numbers over x, rising.
pub(super) type Series = Numbers<f64>;
/// Numbers by a value that need not be a number, in the order of the points.
pub(super) type Named = Numbers<String>;

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
            match fold(&points, patterns, finding.quantity_of(selection), finding.unit) {
                Ok(measured) => numbers.at.push((x, measured)),
                Err(reason) => numbers.missing.push((x, reason)),
            }
        }
        numbers
    }

    /// The smallest and the largest number.
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

    /// What to add where some x have no number; empty where all have one.
    pub(super) fn gaps(&self) -> String {
        let Some((_, reason)) = self.missing.first() else { return String::new() };
        let all = self.at.len() + self.missing.len();
        format!("; not measured at {} of {all} x: {reason}", self.missing.len())
    }

    /// Why an x has no number.
    pub(super) fn lack_at(&self, x: f64) -> String {
        let missing = self.missing.iter().find(|(known, _)| *known == x);
        missing.map_or_else(|| NO_POINT.to_owned(), |(_, reason)| reason.clone())
    }

    /// Why there are fewer numbers than needed.
    pub(super) fn lack(&self, needed: usize) -> String {
        match self.missing.first() {
            Some((_, reason)) => reason.clone(),
            None => format!("this run has {} of the {needed} points needed", self.at.len()),
        }
    }

    /// The smallest number of samples, in print.
    pub(super) fn least_count(&self) -> String {
        let least = self.at.iter().filter_map(|(_, measured)| measured.samples).min();
        least.map_or_else(String::new, |n| format!(", n at least {} each", unit::grouped(n)))
    }
}

/// The number of the points that a selection picks.
pub(super) fn one(finding: &Finding, selection: &Selection, points: Asked<'_>) -> Result<Measured, String> {
    fold(&picked(finding, selection, points), points.patterns, finding.quantity_of(selection), finding.unit)
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

    /// What to add where some have no number; empty where all have one.
    pub(super) fn gaps(&self) -> String {
        let gap = |(name, reason): &(String, String)| format!("; {name} not measured: {reason}");
        self.missing.iter().map(gap).collect()
    }

    /// Why there are fewer than two numbers.
    pub(super) fn lack(&self) -> String {
        match self.missing.first() {
            Some((name, reason)) => format!("{name}: {reason}"),
            None => format!("this run has {} of the 2 points needed", self.at.len()),
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
