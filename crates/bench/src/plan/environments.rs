//! The environments of a plan: what the values of the axis `environment` stand for.

use std::collections::BTreeMap;

use measure::conditions::{AS_IS, Wanted};
use serde_json::{Value, json};

use super::keys::{name, require, unknown_key, wrong_type};
use super::model::Plan;
use super::names::{hint_or_all, names_of};
use super::text::{Entry, Node};
use crate::Error;
use crate::axis;
use crate::pattern::experiment::Filled;
use crate::point::PointSpec;

/// Reads the `[[environment]]` tables of a plan.
pub(super) fn read(tables: &[(String, Vec<Entry>)]) -> Result<BTreeMap<String, Wanted>, Error> {
    let mut environments = BTreeMap::new();
    // The mode of IPoIB is an axis of its own.
    let known: Vec<&str> =
        names_of::<Wanted>().iter().copied().filter(|name| *name != "ipoib_mode").collect();
    for (place, entries) in tables {
        require(entries, "name", place, TABLE, "name = \"tuned\"")?;
        let mut own = String::new();
        let mut values = serde_json::Map::new();
        for entry in entries {
            match (entry.key.as_str(), &entry.node) {
                ("name", _) => own = name(entry, TABLE)?,
                (key, Node::Leaf(value)) if known.contains(&key) => {
                    check_value(entry, value)?;
                    values.insert(key.to_owned(), value.clone());
                }
                (key, _) if known.contains(&key) => {
                    return Err(wrong_type(entry, TABLE, "one value"));
                }
                _ => return Err(unknown_key(entry, TABLE, &[&["name"], known.as_slice()].concat())),
            }
        }
        let refused = |reason: &str| {
            let (place, name) = (place.clone(), own.clone());
            let words = format!("the environment {name:?} cannot be defined: {reason}");
            Err(Error::Plan { place, words })
        };
        if own == AS_IS {
            return refused("that name is always there, and stands for what asks nothing of the machine");
        }
        let wanted = serde_json::from_value(Value::Object(values)).expect("each value was checked");
        if environments.insert(own.clone(), wanted).is_some() {
            return refused("a second environment has that name");
        }
    }
    Ok(environments)
}

/// Refuses a value that a technique does not have.
fn check_value(entry: &Entry, value: &Value) -> Result<(), Error> {
    let is_word = |text: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !text.is_empty() && !text.starts_with('-') && text.chars().all(is_name)
    };
    let one_of = |known: &[&str]| match value.as_str() {
        Some(text) if known.contains(&text) => Ok(()),
        Some(text) => Err(Error::UnknownValue {
            place: entry.place.clone(),
            key: entry.key.clone(),
            table: TABLE.to_owned(),
            value: text.to_owned(),
            hint: hint_or_all(text, known),
        }),
        None => Err(wrong_type(entry, TABLE, "text")),
    };
    match entry.key.as_str() {
        "aspm" => one_of(&["default", "performance", "powersave", "powersupersave"]),
        "cpu_dma_latency_us" => match value.as_u64() {
            // The kernel's number is a signed one of 32 bits.
            Some(us) if i32::try_from(us).is_ok() => Ok(()),
            _ => Err(wrong_type(entry, TABLE, "a whole number of microseconds below 2^31")),
        },
        "cpuset" => one_of(&["shield"]),
        "irq_affinity" => one_of(&["away"]),
        "memory" => one_of(&["locked"]),
        "numa" => one_of(&["device"]),
        "scheduler" => match value.as_str().map(str::parse::<measure::conditions::Scheduler>) {
            Some(Ok(_)) => Ok(()),
            Some(Err(reason)) => Err(Error::Plan {
                place: entry.place.clone(),
                words: format!("scheduler in {TABLE}: {reason}"),
            }),
            None => Err(wrong_type(entry, TABLE, "text such as \"fifo:50\"")),
        },
        "stress" => one_of(&["cpu"]),
        "turbo" => one_of(&["off", "on"]),
        // Of governors and profiles the host knows which there are.
        _ if value.as_str().is_some_and(is_word) => Ok(()),
        _ => Err(wrong_type(entry, TABLE, "a name made of letters, digits, '-', '_' and '.'")),
    }
}

/// Refuses environments that nobody defines.
pub(super) fn check(plan: &Plan, filled: &Filled) -> Result<(), Error> {
    let names = filled.axes.get(axis::ENVIRONMENT);
    let Some(unknown) = names.into_iter().find(|name| find(plan, name).is_none()) else { return Ok(()) };
    let defined = plan.environments.keys().map(String::as_str);
    let known: Vec<&str> = Wanted::BUILT_IN.into_iter().chain(defined).collect();
    Err(Error::UnknownValue {
        place: filled.settings.place("environment").unwrap_or_else(|| filled.place.clone()),
        key: "environment".to_owned(),
        table: format!("experiment {:?}", filled.name),
        hint: hint_or_all(&unknown, &known),
        value: unknown,
    })
}

/// What an environment asks of the machine.
pub(super) fn of(plan: &Plan, name: &str) -> Wanted {
    find(plan, name).expect("an environment of a point was looked for when its plan was checked")
}

/// The plan's own before those that are built in.
fn find(plan: &Plan, name: &str) -> Option<Wanted> {
    plan.environments.get(name).cloned().or_else(|| Wanted::built_in(name))
}

/// Those that points are measured in, for the record.
pub(super) fn used(plan: &Plan, points: &[PointSpec]) -> Value {
    let names = points.iter().filter_map(|point| point.axes.get("environment")?.as_str());
    let used: BTreeMap<&str, Wanted> = names.map(|name| (name, of(plan, name))).collect();
    json!(used)
}

const TABLE: &str = "[[environment]]";

#[cfg(test)]
mod tests;
