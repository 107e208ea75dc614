//! The findings of a plan, and the check that its points can answer them.

use std::collections::BTreeMap;

use measure::finding::{Finding, FindingKind, RangeUnit};
use measure::record::Axes;
use measure::selection::{self, EXPERIMENT, QUANTITY, Selection};
use measure::units::Dimension;
use serde_json::Value;

use super::model::Plan;
use super::names::known;
use super::quantities;
use super::settings::IN_CODE;
use crate::Error;
use crate::axis;
use crate::point::PointSpec;

/// Checks the plan's findings. With the points of the whole plan, also checks that the findings
/// select some of them.
pub(super) fn check(plan: &Plan, all: Option<&Vec<PointSpec>>) -> Result<(), Error> {
    for (index, finding) in plan.findings.iter().enumerate() {
        let checked = names(plan, finding).and_then(|()| keys(finding)).and_then(|()| range(finding));
        let checked = checked.and_then(|()| all.map_or(Ok(()), |all| points(finding, all)));
        checked.map_err(|reason| Error::Plan {
            place: plan.finding_places.get(index).map_or(IN_CODE, String::as_str).to_owned(),
            words: format!("the finding {:?} cannot be answered: {reason}", finding.claim),
        })?;
    }
    Ok(())
}

/// Checks that the experiments, axes and quantities are known.
fn names(plan: &Plan, finding: &Finding) -> Result<(), String> {
    let experiments: Vec<&str> = plan.experiments.iter().map(|known| known.name.as_str()).collect();
    if finding.experiments.is_empty() {
        return Err("it has no experiment: name the experiments that answer it".to_owned());
    }
    for name in &finding.experiments {
        known("experiment", name, &experiments)?;
    }
    for name in finding.x.iter().chain(finding.only.keys()) {
        known("axis", name, &axis::NAMES)?;
    }
    let with_experiment = [axis::NAMES.as_slice(), &[EXPERIMENT]].concat();
    let with_both = [with_experiment.as_slice(), &[QUANTITY]].concat();
    for name in &finding.each {
        known("axis", name, &with_experiment)?;
    }
    let own: Vec<&str> = finding.experiments.iter().map(String::as_str).collect();
    for selection in finding.selections() {
        for (name, value) in selection {
            match (name.as_str(), value.as_str()) {
                (EXPERIMENT, Some(experiment)) => known("experiment", experiment, &own)?,
                (QUANTITY, Some(_)) => {}
                (EXPERIMENT | QUANTITY, None) => return Err(format!("its {name} {value} is not a text")),
                (axis, _) => known("axis", axis, &with_both)?,
            }
        }
        let quantity = finding.quantity_of(selection);
        let known = quantities::check_of(plan, &finding.experiments, quantity);
        known.map_err(|hint| format!("unknown quantity {quantity:?}{hint}"))?;
    }
    Ok(())
}

/// Checks that the keys that its kind needs are there, and no other keys.
fn keys(finding: &Finding) -> Result<(), String> {
    let (needed, allowed): (&[&str], &[&str]) = match finding.kind {
        FindingKind::Agree => (&["x"], &[]),
        FindingKind::Change => (&["of", "against"], &[]),
        FindingKind::Crossover => (&["of", "against", "x"], &["from", "to"]),
        FindingKind::Falls => (&["x", "at"], &["from", "to"]),
        FindingKind::Argmin | FindingKind::Flat | FindingKind::Linear => (&["x"], &["from", "to"]),
        FindingKind::Order => (&["order"], &["x", "from", "to"]),
        FindingKind::Step => (&["x", "between"], &["from", "to"]),
        FindingKind::Value => (&[], &[]),
    };
    let kind = finding.kind.name();
    for (key, present) in [
        ("of", !finding.of.is_empty()),
        ("against", !finding.against.is_empty()),
        ("order", !finding.order.is_empty()),
        ("x", finding.x.is_some()),
        ("at", finding.at.is_some()),
        ("between", finding.between.is_some()),
        ("from", finding.from.is_some()),
        ("to", finding.to.is_some()),
    ] {
        if needed.contains(&key) && !present {
            return Err(format!("it has no {key:?}, which the kind {kind:?} needs"));
        }
        if present && !needed.contains(&key) && !allowed.contains(&key) {
            return Err(format!("its kind {kind:?} has no {key:?}: leave it out"));
        }
    }
    if finding.order.len() == 1 {
        return Err("its order has one series: give two or more, the least first".to_owned());
    }
    if (finding.from.is_some() || finding.to.is_some()) && finding.x.is_none() {
        return Err("it has a from or to but no x: add x = \"size_bytes\"".to_owned());
    }
    match finding.between {
        Some([from, to]) if from >= to => Err(format!("its step from {from} to {to} does not rise")),
        _ => Ok(()),
    }
}

/// Checks that the range and the unit fit the number that the kind computes.
fn range(finding: &Finding) -> Result<(), String> {
    let paths: Vec<&str> = finding.selections().into_iter().map(|s| finding.quantity_of(s)).collect();
    let are_all = |wanted| paths.iter().all(|path| quantities::dimension(path) == Some(wanted));
    let is_time = are_all(Dimension::Time);
    let is_share = are_all(Dimension::Share);
    if let Some(unit) = finding.unit.filter(|unit| !are_all(unit.dimension())) {
        return Err(format!("its unit {unit} is not a unit of {}", paths.join(" and ")));
    }
    let (fits, expected) = match finding.kind {
        FindingKind::Value if is_share => (&[RangeUnit::Percent, RangeUnit::Plain][..], "in %"),
        FindingKind::Value if is_time => (&[RangeUnit::Time][..], "a time, such as 5 us"),
        FindingKind::Value | FindingKind::Argmin | FindingKind::Crossover | FindingKind::Linear => {
            (&[RangeUnit::Plain][..], "plain numbers")
        }
        FindingKind::Order => (&[RangeUnit::Percent][..], "in %"),
        FindingKind::Change if is_time => {
            (&[RangeUnit::Percent, RangeUnit::Plain, RangeUnit::Time][..], "in %, a time or a ratio")
        }
        _ => (&[RangeUnit::Percent, RangeUnit::Plain][..], "in % or a ratio"),
    };
    let kind = finding.kind.name();
    if !fits.contains(&finding.holds.unit) {
        let holds = finding.holds.to_string();
        return Err(format!("holds is {holds:?}, but a {kind} of {} is {expected}", paths[0]));
    }
    match &finding.matches {
        Some(matches) if matches.unit != finding.holds.unit => Err(format!(
            "matches is {:?}, but holds is {:?}: give both in the same unit",
            matches.to_string(),
            finding.holds.to_string()
        )),
        Some(matches) if matches.bounds().into_iter().any(f64::is_infinite) => Err(format!(
            "matches is {:?}, which is open: give both bounds of the published size",
            matches.to_string()
        )),
        _ => Ok(()),
    }
}

/// Checks that every selection has points, and that points of one number are repetitions.
fn points(finding: &Finding, points: &[PointSpec]) -> Result<(), String> {
    for selection in finding.selections() {
        let picked = points.iter().filter(|spec| finding.picks(selection, &spec.experiment, &spec.axes));
        let cell = |spec: &PointSpec| {
            let x = finding.x.as_ref().and_then(|x| spec.axes.get(x).cloned());
            let case = finding.case(&spec.experiment, &spec.axes);
            case.into_iter().chain(x).collect()
        };
        match repetitions(picked, cell) {
            Ok(0) => return Err(format!("the plan has no point with {}", in_words(finding, selection))),
            Ok(_) => {}
            Err(axis) => {
                return Err(format!(
                    "it needs one number, but its points differ in {axis}: give {axis} a value in {}, or add it to \
                     each",
                    if selection.is_empty() { "where" } else { "where or in the selection" }
                ));
            }
        }
    }
    Ok(())
}

/// The number of cells that points fill. Each cell stands for one number.
///
/// # Errors
///
/// The axis in which two points of one cell differ, so that they are not repetitions.
pub(super) fn repetitions<'a>(
    points: impl Iterator<Item = &'a PointSpec>,
    cell: impl Fn(&PointSpec) -> Value,
) -> Result<usize, String> {
    let mut cells: BTreeMap<String, (&str, &Axes)> = BTreeMap::new();
    for spec in points {
        let point = (spec.experiment.as_str(), &spec.axes);
        let first = cells.entry(cell(spec).to_string()).or_insert(point);
        selection::difference(*first, point).map_or(Ok(()), Err)?;
    }
    Ok(cells.len())
}

/// A selection in words, e.g. `poll "event", service "UD"`.
fn in_words(finding: &Finding, selection: &Selection) -> String {
    let asked = finding.only.iter().chain(selection).filter(|(name, _)| name.as_str() != QUANTITY);
    let words: Vec<String> = asked.map(|(name, value)| format!("{name} {value}")).collect();
    let of = finding.experiments.join(" or ");
    if words.is_empty() { format!("experiment {of}") } else { format!("{} in {of}", words.join(", ")) }
}

#[cfg(test)]
mod tests;
