//! The expectations of a plan, and the check that its points can be judged by them.

use measure::expectation::{Bound, Expectation, NO_LOSS, SHORT};
use measure::selection::{EXPERIMENT, Selection};
use measure::units::Dimension;

use super::keys::{Key, require};
use super::model::Plan;
use super::names::{hint_or_all, known};
use super::quantities;
use super::selections;
use super::settings::IN_CODE;
use super::text::{Entry, Node};
use crate::axis;
use crate::point::PointSpec;
use crate::{Error, hint};

/// Reads the table `[[expect]]`.
///
/// # Errors
///
/// An unknown key, a value that is wrong, or a key that is missing.
pub(super) fn read(place: &str, entries: &[Entry]) -> Result<Expectation, Error> {
    let table = "[[expect]]";
    let of = |entry| Key { entry, table };
    if let Some(entry) = entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str())) {
        return Err(of(entry).unknown(&KEYS));
    }
    let quantity = of(require(entries, "quantity", place, table, "quantity = \"p99\"")?).text()?;
    let mut expectation = if quantity == NO_LOSS && !entries.iter().any(|entry| entry.key == "bound") {
        Expectation::parse(&quantity).map_err(|reason| wrong(place, &quantity, &reason))?
    } else {
        let bound = of(require(entries, "bound", place, table, "bound = \"<= 5 us\"")?);
        let read = Bound::parse(&bound.text()?).map_err(|reason| bound.unreadable(reason))?;
        Expectation::new(&quantity, read)
    };
    for entry in entries {
        match entry.key.as_str() {
            "experiments" => expectation.experiments = of(entry).texts()?,
            "reason" => expectation.reason = Some(of(entry).text()?),
            "where" => expectation.only = selection(of(entry))?,
            _ => {}
        }
    }
    Ok(expectation)
}

/// Reads the values of axes.
fn selection(key: Key<'_>) -> Result<Selection, Error> {
    let Node::Table(_) = &key.entry.node else { return Err(key.wrong_type("a table")) };
    let json = key.entry.node.to_json();
    let mut selection: Selection = serde_json::from_value(json).map_err(|error| key.unreadable(error))?;
    selections::read(&mut selection).map_err(|reason| key.unreadable(reason))?;
    Ok(selection)
}

/// Checks the plan's expectations. With the points of the whole plan, also checks that they select
/// some of them.
pub(super) fn check(plan: &Plan, all: Option<&Vec<PointSpec>>) -> Result<(), Error> {
    for (index, expectation) in plan.expectations.iter().enumerate() {
        let checked = names(plan, expectation).and_then(|()| unit(expectation));
        let checked = checked.and_then(|()| all.map_or(Ok(()), |all| points(expectation, all)));
        let place = plan.expectation_places.get(index).map_or(IN_CODE, String::as_str);
        checked.map_err(|reason| wrong(place, &expectation.to_string(), &reason))?;
    }
    Ok(())
}

/// Returns the plan's expectations, each once: `--expect no_loss` may repeat one of the file.
pub(super) fn distinct(plan: &Plan) -> Vec<Expectation> {
    let mut all: Vec<Expectation> = Vec::new();
    for expectation in &plan.expectations {
        if !all.iter().any(|known| expectation.repeats(known)) {
            all.push(expectation.clone());
        }
    }
    all
}

fn wrong(place: &str, expectation: &str, reason: &str) -> Error {
    let words = format!("the expectation {expectation:?} cannot be judged: {reason}");
    Error::Plan { place: place.to_owned(), words }
}

/// Checks that the quantity, the experiments and the axes are known.
fn names(plan: &Plan, expectation: &Expectation) -> Result<(), String> {
    let all: Vec<&str> = plan.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
    for name in &expectation.experiments {
        known("experiment", name, &all)?;
    }
    for name in expectation.only.keys().filter(|name| *name != EXPERIMENT) {
        known("axis", name, &axis::NAMES)?;
    }
    let quantity = &expectation.quantity;
    // Paths begin with a group; a single word is a misspelt short name.
    let short = if quantity.contains('.') {
        String::new()
    } else {
        let names = SHORT.map(|(short, _)| short);
        // Of percentiles that are equally near, the higher one is more often meant.
        let near = hint(quantity, names.into_iter().rev());
        if near.is_empty() { hint_or_all(quantity, &names) } else { near }
    };
    let judged = match &expectation.experiments[..] {
        [] => all.into_iter().map(str::to_owned).collect(),
        named => named.to_vec(),
    };
    let known = quantities::check_of(plan, &judged, quantity);
    known.map_err(|hint| {
        format!("unknown quantity {quantity:?}{}", if short.is_empty() { hint } else { short })
    })
}

/// Checks that the bound is in a unit of the quantity.
fn unit(expectation: &Expectation) -> Result<(), String> {
    let Expectation { quantity, bound, .. } = expectation;
    let dimension = quantities::dimension(quantity).unwrap_or(Dimension::Number);
    let fits = bound.check(dimension);
    fits.map_err(|right| format!("{quantity} is a {}: {right}", dimension.name()))
}

/// Checks that there are points to judge.
fn points(expectation: &Expectation, all: &[PointSpec]) -> Result<(), String> {
    if all.iter().any(|spec| expectation.picks(&spec.experiment, &spec.axes)) {
        return Ok(());
    }
    let only = expectation.only.iter().map(|(name, value)| format!("{name} {value}"));
    Err(format!("the plan has no point with {}", only.collect::<Vec<_>>().join(", ")))
}

/// The keys of `[[expect]]`.
const KEYS: [&str; 5] = ["bound", "experiments", "quantity", "reason", "where"];

#[cfg(test)]
mod tests;
