//! The environments of a plan: the values of the axis `environment`.

use std::collections::BTreeMap;

use measure::conditions::{AS_IS, Scheduler, Wanted};
use serde_json::{Value, json};

use super::keys::{Key, require};
use super::model::Plan;
use super::names::{hint_or_all, names_of};
use super::text::{Entry, Node};
use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::pattern::experiment::Filled;
use crate::point::PointSpec;

/// Reads the `[[environment]]` tables of a plan.
pub(super) fn read(tables: &[(String, Vec<Entry>)]) -> Result<BTreeMap<String, Wanted>, Error> {
    let mut environments = BTreeMap::new();
    // The mode of IPoIB is another axis.
    let known: Vec<&str> =
        names_of::<Wanted>().iter().copied().filter(|name| *name != "ipoib_mode").collect();
    for (place, entries) in tables {
        require(entries, "name", place, TABLE, "name = \"tuned\"")?;
        let mut own = String::new();
        let mut values = serde_json::Map::new();
        for entry in entries {
            let key = Key { entry, table: TABLE };
            match (entry.key.as_str(), &entry.node) {
                ("name", _) => own = key.name()?,
                (name, Node::Leaf(value)) if known.contains(&name) => {
                    check_value(key, value)?;
                    values.insert(name.to_owned(), value.clone());
                }
                (name, _) if known.contains(&name) => return Err(key.wrong_type("one value")),
                _ => return Err(key.unknown(&[&["name"], known.as_slice()].concat())),
            }
        }
        let refused = |reason: &str| {
            let place = place.clone();
            let name = own.clone();
            let words = format!("the environment {name:?} cannot be defined: {reason}");
            Err(Error::Plan { place, words })
        };
        if own == AS_IS {
            return refused("the name is reserved for the environment that changes nothing");
        }
        let wanted = serde_json::from_value(Value::Object(values)).expect("each value was checked");
        if environments.insert(own.clone(), wanted).is_some() {
            return refused("another environment has this name");
        }
    }
    Ok(environments)
}

/// Refuses a value that a technique does not have.
fn check_value(key: Key<'_>, value: &Value) -> Result<(), Error> {
    let text = value.as_str();
    let words: &[&str] = match key.entry.key.as_str() {
        "aspm" => &["default", "performance", "powersave", "powersupersave"],
        "cpuset" => &["shield"],
        "irq_affinity" => &["away"],
        "memory" => &["locked"],
        "numa" => &["device"],
        "stress" => &["cpu"],
        "turbo" => &["off", "on"],
        "cpu_dma_latency_us" => {
            // The kernel reads a signed number of 32 bits.
            let is_number = value.as_u64().is_some_and(|us| i32::try_from(us).is_ok());
            let expected = "a whole number of microseconds below 2^31";
            return if is_number { Ok(()) } else { Err(key.wrong_type(expected)) };
        }
        "scheduler" => {
            let text = text.ok_or_else(|| key.wrong_type("text such as \"fifo:50\""))?;
            return text.parse::<Scheduler>().map(drop).map_err(|reason| key.unreadable(reason));
        }
        // Only the host knows its governors and profiles.
        _ => {
            let is_name = |text: &str| {
                let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                !text.is_empty() && !text.starts_with('-') && text.chars().all(is_part)
            };
            let expected = "a name made of letters, digits, '-', '_' and '.'";
            return if text.is_some_and(is_name) { Ok(()) } else { Err(key.wrong_type(expected)) };
        }
    };
    let text = text.ok_or_else(|| key.wrong_type("text"))?;
    if words.contains(&text) { Ok(()) } else { Err(key.unknown_value(text, words)) }
}

/// Refuses environments that are not defined.
pub(super) fn check(plan: &Plan, filled: &Filled) -> Result<(), Error> {
    let names = filled.axes.get(axis::ENVIRONMENT);
    let Some(unknown) = names.into_iter().find(|name| find(plan, name).is_none()) else { return Ok(()) };
    let defined = plan.environments.keys().map(String::as_str);
    let known: Vec<&str> = Wanted::BUILT_IN.into_iter().chain(defined).collect();
    let hint = hint_or_all(&unknown, &known);
    let words = format!("unknown environment {unknown:?} in experiment {:?}{hint}", filled.name);
    Err(Error::Plan { place: Check(filled).place("environment"), words })
}

/// The techniques of an environment.
pub(super) fn of(plan: &Plan, name: &str) -> Wanted {
    find(plan, name).expect("the check of the plan has found every environment")
}

/// Finds an environment of the plan, or else a built-in one.
fn find(plan: &Plan, name: &str) -> Option<Wanted> {
    plan.environments.get(name).cloned().or_else(|| Wanted::built_in(name))
}

/// The environments of the points, for the record.
pub(super) fn used(plan: &Plan, points: &[PointSpec]) -> Value {
    let names = points.iter().filter_map(|point| point.axes.get("environment")?.as_str());
    let used: BTreeMap<&str, Wanted> = names.map(|name| (name, of(plan, name))).collect();
    json!(used)
}

const TABLE: &str = "[[environment]]";

#[cfg(test)]
mod tests;
