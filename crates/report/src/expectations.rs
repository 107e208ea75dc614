//! Whether a run keeps the bounds that its plan or `--expect` sets, judged from its points alone.
//!
//! An expectation is judged for each combination of experiment and axes: these are its cases. All
//! repetitions of a case make one number. The bound is *met* or *not met* where the whole 95 %
//! interval of the number lies on one side of it; a number without an interval, such as the 99th
//! percentile of one repetition, decides alone. It is *not decided* where the interval reaches over
//! the bound, where every repetition is unstable or one has failed, and where there is no number.
//! Counts, such as lost messages, are facts of unstable repetitions too, and the worst count of all
//! repetitions decides.
//!
//! # Invariants
//!
//! * A case without a number is never met, and never taken for one that is not met.

mod judged;
mod text;

use std::collections::BTreeSet;

use measure::expectation::{Expectation, Limit, Relation};
use measure::figure::Unit;
use measure::presentation::Patterns;
use measure::record::{Axes, Point, Status};
use measure::selection::EXPERIMENT;
use measure::units::Dimension;
use serde_json::Value;

use crate::folded::{Measured, NO_POINT, fold_worst};
use crate::link_limit::LinkLimit;
use crate::list::grouped;
use crate::varying::Varying;
use crate::{Points, value};

pub(crate) use judged::score;
pub use judged::{Case, Judged, Judgement, is_any_not_met};
pub(crate) use text::line;
pub use text::text;

/// Judges all expectations of a run, of which some points may be missing. `plan` is its resolved
/// plan.
pub fn judge<'a>(expectations: &'a [Expectation], plan: &Value, run: Points<'_>) -> Vec<Judged<'a>> {
    let mut varying = Varying::of_plan(plan);
    run.points.iter().for_each(|point| varying.see(point));
    let judged = |expectation| Judged { expectation, cases: cases(expectation, run, &varying) };
    expectations.iter().map(judged).collect()
}

fn cases(expectation: &Expectation, run: Points<'_>, varying: &Varying) -> Vec<Case> {
    let experiments = experiments(expectation, run);
    let is_picked = |point: &&Point| {
        expectation.picks(&point.experiment, &point.axes) && experiments.contains(point.experiment.as_str())
    };
    let key = |point: &Point| (point.experiment.clone(), point.axes.clone());
    let groups = grouped(run.points.iter().filter(is_picked).map(|point| (key(point), point)));
    if groups.is_empty() {
        return vec![nothing(expectation, run)];
    }
    let mut all = Vec::new();
    for ((experiment, axes), points) in groups {
        let own = axes.iter().filter(|(axis, _)| varying.has(&experiment, axis));
        let label = value::labels(
            [(&EXPERIMENT.to_owned(), &Value::from(experiment.as_str()))].into_iter().chain(own),
        );
        let measured = number(expectation, &points, run.patterns);
        let limit = measured.as_ref().ok().and_then(|_| limit(expectation, &points, run));
        let judgement = match &measured {
            Ok(measured) => judgement(expectation, measured, limit, run.patterns),
            Err(reason) => Judgement::NotDecided(format!("not measured: {reason}")),
        };
        let is_of_link = matches!(expectation.bound.limit, Limit::OfLink(_));
        all.push(Case {
            label,
            figure: measured.as_ref().map(Measured::text_with_interval).unwrap_or_default(),
            limit: limit
                .filter(|_| is_of_link)
                .zip(measured.as_ref().ok())
                .map(|(at, of)| of.in_its_unit(at)),
            judgement,
            id: measured.ok().map(|measured| measured.id),
            experiment,
            axes,
        });
    }
    all
}

/// The case of an expectation without points.
fn nothing(expectation: &Expectation, run: Points<'_>) -> Case {
    let is_picked = run.points.iter().any(|point| expectation.picks(&point.experiment, &point.axes));
    let why = match is_picked {
        true => format!("no point of this run has {}", expectation.quantity),
        false => NO_POINT.to_owned(),
    };
    Case {
        experiment: String::new(),
        axes: Axes::new(),
        label: String::new(),
        figure: String::new(),
        limit: None,
        judgement: Judgement::NotDecided(why),
        id: None,
    }
}

/// The experiments that are judged: those that are named, or a point of which has the number. An
/// experiment of which no point was measured is judged, too, because its points might have had the
/// number.
fn experiments<'a>(expectation: &Expectation, run: Points<'a>) -> BTreeSet<&'a str> {
    let of = |is_it: &dyn Fn(&Point) -> bool| -> BTreeSet<&'a str> {
        run.points.iter().filter(|point| is_it(point)).map(|point| point.experiment.as_str()).collect()
    };
    let number = |point: &Point| run.patterns.find_at(point, &expectation.quantity)?.number(point);
    let mut all = of(&|_| true);
    if expectation.experiments.is_empty() {
        let with_number = of(&|point| number(point).is_some());
        let measured = of(&|point| point.status == Status::Measured);
        all.retain(|experiment| with_number.contains(experiment) || !measured.contains(experiment));
    }
    all
}

/// The number of the repetitions, in the unit of the bound unless it is far below that unit.
fn number(expectation: &Expectation, points: &[&Point], patterns: Patterns) -> Result<Measured, String> {
    let is_most = matches!(expectation.bound.relation, Relation::Below | Relation::AtMost);
    let fold = |unit| fold_worst(points, patterns, &expectation.quantity, unit, is_most);
    let unit = unit(expectation, patterns);
    let measured = fold(unit)?;
    let is_small = unit.is_some_and(|unit| measured.y.value.abs() < unit.one() / 100.0);
    if is_small { fold(None) } else { Ok(measured) }
}

/// The unit to print numbers in: that of the bound, or for parts of a link the one of its rate.
fn unit(expectation: &Expectation, patterns: Patterns) -> Option<Unit> {
    let dimension = patterns.find(&expectation.quantity)?.unit();
    expectation.bound.unit().or(match dimension {
        Dimension::Bandwidth => Some(Unit::GbPerS),
        Dimension::MessageRate => Some(Unit::MmsgPerS),
        _ => None,
    })
}

/// The limit as a number; `None` where the link is not known.
fn limit(expectation: &Expectation, points: &[&Point], run: Points<'_>) -> Option<f64> {
    match expectation.bound.limit {
        Limit::Number { at, .. } => Some(at),
        Limit::OfLink(share) => {
            let mut limits =
                points.iter().filter_map(|point| LinkLimit::of(point, run.devices, run.patterns));
            Some(share * limits.next()?.number(&expectation.quantity)?)
        }
    }
}

fn judgement(
    expectation: &Expectation,
    measured: &Measured,
    limit: Option<f64>,
    patterns: Patterns,
) -> Judgement {
    let undecided = |why: &str| Judgement::NotDecided(why.to_owned());
    let Some(limit) = limit else { return undecided("the rate of the link is not known") };
    let doubts = &measured.doubts;
    let found = patterns.find(&expectation.quantity);
    let is_count = found.is_some_and(|found| found.quantity.is_count);
    let numbers = [measured.y.low, measured.y.value, measured.y.high];
    let kept = numbers.map(|number| expectation.bound.is_kept(number, limit));
    // A count that breaks the bound breaks it even if other repetitions failed.
    if is_count && kept == [false; 3] {
        return Judgement::NotMet;
    }
    if doubts.failed > 0 {
        let error = doubts.error.as_deref().unwrap_or_default();
        return undecided(&format!("{} of {} repetitions failed: {error}", doubts.failed, doubts.runs));
    }
    if doubts.are_all() && !is_count {
        return undecided(&format!("unstable: {}", doubts.first.as_deref().unwrap_or_default()));
    }
    // No finite number of messages has an interval of 0 to 0, so the share of this run decides.
    let is_nothing = limit == 0.0 && found.is_some_and(|found| found.unit() == Dimension::Share);
    match if is_nothing { [kept[1]; 3] } else { kept } {
        [true, true, true] => Judgement::Met,
        [false, false, false] => Judgement::NotMet,
        _ => undecided("the 95 % interval reaches over the bound"),
    }
}

#[cfg(test)]
mod tests;
