//! From the tree of a TOML text to a [`Plan`]: what each key may be, and what is missing.

use measure::figure::{Figure, Reference};
use measure::finding::Finding;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::environments;
use super::keys::{name, require, string, tables, unknown_key, wrong_type};
use super::model::{Base, Experiment, Plan};
use super::names::{hint_or_all, names_of};
use super::settings::{Scalar, Settings};
use super::text::{self, Entry, Node};
use crate::Error;
use crate::axis;
use crate::point::Pattern;

/// Reads a plan from its text.
pub(super) fn plan(text: &str, origin: &str, base: Base) -> Result<Plan, Error> {
    let mut plan = Plan { base, origin: origin.to_owned(), ..Plan::new("", "") };
    let entries = text::parse(text, origin)?;
    for entry in &entries {
        let table = "the plan";
        match entry.key.as_str() {
            "name" => plan.name = name(entry, table)?,
            "title" => plan.title = string(entry, table)?,
            "about" => plan.about = Some(string(entry, table)?),
            "seed" => plan.seed = Some(Scalar { entry, table }.whole()?),
            "experiment" => {
                let tables = tables(entry, table)?.iter();
                plan.experiments =
                    tables.map(|(place, entries)| experiment(place, entries)).collect::<Result<_, _>>()?;
            }
            "environment" => plan.environments = environments::read(tables(entry, table)?)?,
            "figure" => {
                for (place, entries) in tables(entry, table)? {
                    plan.figures.push(figure(place, entries)?);
                    plan.figure_places.push(place.clone());
                }
            }
            "finding" => {
                for (place, entries) in tables(entry, table)? {
                    plan.findings.push(finding(place, entries)?);
                    plan.finding_places.push(place.clone());
                }
            }
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
    // The numbers come from the file; their key is there for the record.
    let known: Vec<_> = names_of::<Reference>().iter().copied().filter(|name| *name != "table").collect();
    for entry in entries.iter().filter(|entry| entry.key == "reference") {
        let Node::Table(reference) = &entry.node else { continue };
        if let Some(wrong) = reference.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            return Err(unknown_key(wrong, "[figure.reference]", &known));
        }
    }
    let words = |title, reason| format!("the figure {title:?} cannot be read: {reason}");
    derived(place, entries, "[[figure]]", "title", words)
}

fn finding(place: &str, entries: &[Entry]) -> Result<Finding, Error> {
    let words = |claim, reason| format!("the finding {claim:?} cannot be asked for: {reason}");
    derived(place, entries, "[[finding]]", "claim", words)
}

/// Reads a table as its type does; errors show the text of the key `titled`.
fn derived<T: DeserializeOwned>(
    place: &str,
    entries: &[Entry],
    heading: &str,
    titled: &str,
    words: impl FnOnce(String, String) -> String,
) -> Result<T, Error> {
    let known = names_of::<T>();
    if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        return Err(unknown_key(entry, heading, known));
    }
    let json = Node::Table(entries.to_vec()).to_json();
    let title = json.get(titled).and_then(Value::as_str).unwrap_or_default().to_owned();
    serde_json::from_value(json).map_err(|error| {
        let words = words(title, error.to_string().replace('`', "\""));
        Error::Plan { place: place.to_owned(), words }
    })
}

const PLAN_KEYS: [&str; 8] =
    ["about", "environment", "experiment", "figure", "finding", "name", "seed", "title"];
const EXPERIMENT_KEYS: [&str; 4] = ["axes", "name", "pattern", "quick"];
