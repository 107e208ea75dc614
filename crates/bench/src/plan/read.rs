//! From the tree of a TOML text to a [`Plan`]: what each key may be, and what is missing.

use measure::figure::{Figure, Reference};
use measure::finding::Finding;
use serde_json::Value;

use super::names::{hint_or_all, names_of};
use super::settings::{unknown_key, wrong_type};
use super::text::{self, Entry, Node};
use super::{Base, Experiment, Plan, Settings, environments};
use crate::Error;
use crate::axis;
use crate::point::Pattern;

/// Reads a plan from its text.
pub(super) fn plan(text: &str, origin: &str, base: Base) -> Result<Plan, Error> {
    let mut plan = Plan { base, origin: origin.to_owned(), ..Plan::new("", "") };
    let entries = text::parse(text, origin)?;
    for entry in &entries {
        let table = "the plan";
        match (entry.key.as_str(), &entry.node) {
            ("name", _) => plan.name = name(entry, table)?,
            ("title", _) => plan.title = string(entry, table)?,
            ("about", _) => plan.about = Some(string(entry, table)?),
            ("seed", Node::Leaf(value)) if value.is_u64() => plan.seed = value.as_u64(),
            ("seed", _) => return Err(wrong_type(entry, table, "a whole number")),
            ("experiment", Node::Tables(tables)) => {
                let read = |(place, entries): &(String, Vec<Entry>)| experiment(place, entries);
                plan.experiments = tables.iter().map(read).collect::<Result<_, _>>()?;
            }
            ("experiment", _) => return Err(wrong_type(entry, table, "given as [[experiment]]")),
            ("environment", Node::Tables(tables)) => plan.environments = environments::read(tables)?,
            ("environment", _) => return Err(wrong_type(entry, table, "given as [[environment]]")),
            ("figure", Node::Tables(tables)) => {
                plan.figures =
                    tables.iter().map(|(place, entries)| figure(place, entries)).collect::<Result<_, _>>()?;
                plan.figure_places = tables.iter().map(|(place, _)| place.clone()).collect();
            }
            ("figure", _) => return Err(wrong_type(entry, table, "given as [[figure]]")),
            ("finding", Node::Tables(tables)) => {
                plan.findings = tables
                    .iter()
                    .map(|(place, entries)| finding(place, entries))
                    .collect::<Result<_, _>>()?;
                plan.finding_places = tables.iter().map(|(place, _)| place.clone()).collect();
            }
            ("finding", _) => return Err(wrong_type(entry, table, "given as [[finding]]")),
            _ => return Err(unknown_key(entry, table, &PLAN_KEYS)),
        }
    }
    for (key, example) in [("name", "name = \"my-plan\""), ("title", "title = \"What is measured\"")] {
        require(&entries, key, origin, "the plan", example)?;
    }
    Ok(plan)
}

fn experiment(place: &str, entries: &[Entry]) -> Result<Experiment, Error> {
    let heading = "[[experiment]]";
    let own = require(entries, "name", place, heading, "name = \"latency\"")?;
    let kind =
        require(entries, "pattern", place, heading, "pattern = \"ping-pong\" or pattern = \"stream\"")?;
    let mut experiment = Experiment {
        name: name(own, heading)?,
        pattern: pattern(kind, heading)?,
        settings: Settings::default(),
        quick: Settings::default(),
        place: own.place.clone(),
    };
    for entry in entries {
        match (entry.key.as_str(), &entry.node) {
            ("name" | "pattern", _) => {}
            ("quick", Node::Table(quick)) => {
                quick
                    .iter()
                    .try_for_each(|entry| setting(&mut experiment.quick, entry, "[experiment.quick]"))?;
            }
            ("quick", _) => return Err(wrong_type(entry, heading, "a table")),
            _ => setting(&mut experiment.settings, entry, heading)?,
        }
    }
    Ok(experiment)
}

/// Reads one key of an experiment or of its quick form.
fn setting(settings: &mut Settings, entry: &Entry, table: &str) -> Result<(), Error> {
    match (entry.key.as_str(), &entry.node) {
        ("axes", Node::Table(axes)) => axes.iter().try_for_each(|axis| settings.put_axis_entry(axis, table)),
        ("axes", _) => Err(wrong_type(entry, table, "a table")),
        (key, _) if Settings::KEYS.contains(&key) => settings.put(entry, table),
        (key, _) if axis::NAMES.contains(&key) => Err(Error::UnknownKey {
            place: entry.place.clone(),
            key: entry.key.clone(),
            table: table.to_owned(),
            hint: ": it is an axis, so put it below [experiment.axes]".to_owned(),
        }),
        _ => {
            let extra = if table == "[[experiment]]" { EXPERIMENT_KEYS.as_slice() } else { &["axes"] };
            Err(unknown_key(entry, table, &[extra, &Settings::KEYS].concat()))
        }
    }
}

fn pattern(entry: &Entry, table: &str) -> Result<Pattern, Error> {
    let text = string(entry, table)?;
    let names: Vec<_> = Pattern::all().map(Pattern::name).collect();
    Pattern::named(&text).ok_or_else(|| Error::UnknownValue {
        place: entry.place.clone(),
        key: entry.key.clone(),
        table: table.to_owned(),
        hint: hint_or_all(&text, &names),
        value: text,
    })
}

fn figure(place: &str, entries: &[Entry]) -> Result<Figure, Error> {
    for entry in entries {
        if !names_of::<Figure>().contains(&entry.key.as_str()) {
            return Err(unknown_key(entry, "[[figure]]", names_of::<Figure>()));
        }
        if let ("reference", Node::Table(reference)) = (entry.key.as_str(), &entry.node) {
            // The numbers come from the file; the key is there for the record.
            let known: Vec<&str> =
                names_of::<Reference>().iter().copied().filter(|name| *name != "table").collect();
            if let Some(wrong) = reference.iter().find(|entry| !known.contains(&entry.key.as_str())) {
                return Err(unknown_key(wrong, "[figure.reference]", &known));
            }
        }
    }
    let json = Node::Table(entries.to_vec()).to_json();
    let title = json.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
    serde_json::from_value(json).map_err(|err| {
        let reason = err.to_string().replace('`', "\"");
        Error::BadFigure { place: place.to_owned(), title, reason }
    })
}

fn finding(place: &str, entries: &[Entry]) -> Result<Finding, Error> {
    let known = names_of::<Finding>();
    if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        return Err(unknown_key(entry, "[[finding]]", known));
    }
    let json = Node::Table(entries.to_vec()).to_json();
    let claim = json.get("claim").and_then(Value::as_str).unwrap_or_default().to_owned();
    serde_json::from_value(json).map_err(|err| {
        let reason = err.to_string().replace('`', "\"");
        Error::BadFinding { place: place.to_owned(), claim, reason }
    })
}

pub(super) fn string(entry: &Entry, table: &str) -> Result<String, Error> {
    match &entry.node {
        Node::Leaf(Value::String(text)) => Ok(text.clone()),
        _ => Err(wrong_type(entry, table, "text")),
    }
}

pub(super) fn name(entry: &Entry, table: &str) -> Result<String, Error> {
    let name = string(entry, table)?;
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Ok(name);
    }
    Err(Error::BadName { place: entry.place.clone(), name })
}

pub(super) fn require<'a>(
    entries: &'a [Entry],
    key: &str,
    place: &str,
    table: &str,
    example: &str,
) -> Result<&'a Entry, Error> {
    entries.iter().find(|entry| entry.key == key).ok_or_else(|| Error::Missing {
        place: place.to_owned(),
        key: key.to_owned(),
        table: table.to_owned(),
        example: example.to_owned(),
    })
}

const PLAN_KEYS: [&str; 8] =
    ["about", "environment", "experiment", "figure", "finding", "name", "seed", "title"];
const EXPERIMENT_KEYS: [&str; 4] = ["axes", "name", "pattern", "quick"];
