//! Distinguishes the series of a figure.

use std::collections::BTreeMap;

use measure::record::Point;
use serde_json::Value;

use super::y::Y;
use crate::list::grouped;
use crate::value;

/// The name among axis names that stands for the experiment of a point.
const EXPERIMENT: &str = "experiment";
/// The name among axis names that stands for the kind of a point's latency.
const LATENCY: &str = "latency";

/// The axes that distinguish the series: those that the figure names, and those that must be added
/// so that a cell holds repetitions of one combination only.
pub(super) fn names(
    series: &[String],
    shown: &[&Point],
    x: &str,
    y: Option<Y<'_>>,
    kinds_differ: bool,
) -> Vec<String> {
    let mut names = series.to_vec();
    if kinds_differ {
        names.push(LATENCY.to_owned());
    }
    loop {
        let before = names.len();
        let mut first_of_cell: BTreeMap<String, &Point> = BTreeMap::new();
        for point in shown {
            let axes = names.iter().map(|name| named(point, name, y));
            let cell = Value::from_iter(axes.chain(point.axes.get(x).cloned())).to_string();
            let first = first_of_cell.entry(cell).or_insert(point);
            add_differences(first, point, &mut names);
        }
        if names.len() == before {
            return names;
        }
    }
}

/// Points by the values of the named axes, in the order in which the values appear.
pub(super) fn groups<'a>(
    names: &[String],
    shown: &[&'a Point],
    y: Option<Y<'_>>,
) -> Vec<(Vec<Value>, Vec<&'a Point>)> {
    let key = |point: &Point| names.iter().map(|name| named(point, name, y)).collect();
    grouped(shown.iter().map(|point| (key(point), *point)))
}

/// The printed name of a series: words as they are, other values with the name of their axis.
pub(super) fn label(names: &[String], key: &[Value]) -> String {
    let words = names.iter().zip(key).filter(|(_, at)| !at.is_null());
    let words = words.map(|(name, at)| value::word(name, at));
    let label = words.collect::<Vec<_>>().join(" ");
    if label.is_empty() { "measured".to_owned() } else { label }
}

fn named(point: &Point, name: &str, y: Option<Y<'_>>) -> Value {
    match point.axes.get(name) {
        Some(value) => value.clone(),
        None if name == EXPERIMENT => Value::from(point.experiment.as_str()),
        None if name == LATENCY => {
            y.and_then(|y| y.latency(point)).map_or(Value::Null, |l| l.kind.name().into())
        }
        None => Value::Null,
    }
}

fn add_differences(a: &Point, b: &Point, names: &mut Vec<String>) {
    let axes = a.axes.keys().chain(b.axes.keys().filter(|name| !a.axes.contains_key(*name)));
    let mut found = false;
    for name in axes.filter(|name| a.axes.get(*name) != b.axes.get(*name)) {
        found = true;
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if !found && a.experiment != b.experiment && !names.iter().any(|name| name == EXPERIMENT) {
        names.push(EXPERIMENT.to_owned());
    }
}
