//! Reads a [`Plan`] from the tree of a TOML text, and checks its keys.

use measure::figure::{Figure, Reference};
use measure::finding::Finding;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::applications;
use super::environments;
use super::expectations;
use super::keys::{Key, require};
use super::model::{Base, Experiment, Plan};
use super::names::{hint_or_all, names_of};
use super::selections;
use super::settings::Settings;
use super::text::{self, Entry, Node};
use crate::Error;
use crate::application::Application;
use crate::axis;
use crate::point::Pattern;

/// Reads a plan from its text.
pub(super) fn plan(text: &str, origin: &str, base: Base) -> Result<Plan, Error> {
    let mut plan = Plan { base, origin: origin.to_owned(), ..Plan::new("", "") };
    let entries = text::parse(text, origin)?;
    let mut application_places = Vec::new();
    for entry in &entries {
        let key = Key { entry, table: "the plan" };
        match entry.key.as_str() {
            "name" => plan.name = key.name()?,
            "title" => plan.title = key.text()?,
            "about" => plan.about = Some(key.text()?),
            "mpi" => plan.mpi = Some(key.text()?),
            "seed" => plan.seed = Some(key.count()?),
            "experiment" => {
                let tables = key.tables()?.iter();
                plan.experiments =
                    tables.map(|(place, entries)| experiment(place, entries)).collect::<Result<_, _>>()?;
            }
            "environment" => plan.environments = environments::read(key.tables()?)?,
            "application" => {
                for (place, entries) in key.tables()? {
                    let application = application(place, entries)?;
                    applications::add(&mut plan.applications, application, place)?;
                    application_places.push(place.clone());
                }
            }
            "mode" => plan.modes = applications::modes(key.tables()?)?,
            "variables" => plan.variables = applications::variables(key)?,
            "expect" => {
                for (place, entries) in key.tables()? {
                    plan.expectations.push(expectations::read(place, entries)?);
                    plan.expectation_places.push(place.clone());
                }
            }
            "figure" => {
                for (place, entries) in key.tables()? {
                    plan.figures.push(figure(place, entries)?);
                    plan.figure_places.push(place.clone());
                }
            }
            "finding" => {
                for (place, entries) in key.tables()? {
                    plan.findings.push(finding(place, entries)?);
                    plan.finding_places.push(place.clone());
                }
            }
            _ => return Err(key.unknown(&PLAN_KEYS)),
        }
    }
    applications::placeholders(&plan, &application_places)?;
    for (key, example) in [("name", "name = \"my-plan\""), ("title", "title = \"What is measured\"")] {
        require(&entries, key, origin, "the plan", example)?;
    }
    Ok(plan)
}

fn experiment(place: &str, entries: &[Entry]) -> Result<Experiment, Error> {
    let table = "[[experiment]]";
    let own = require(entries, "name", place, table, "name = \"latency\"")?;
    let kind = require(entries, "pattern", place, table, "pattern = \"ping-pong\" or pattern = \"stream\"")?;
    let mut experiment = Experiment {
        name: Key { entry: own, table }.name()?,
        pattern: pattern(Key { entry: kind, table })?,
        settings: Settings::default(),
        quick: Settings::default(),
        place: own.place.clone(),
    };
    for entry in entries {
        match (entry.key.as_str(), &entry.node) {
            ("name" | "pattern", _) => {}
            ("quick", Node::Table(quick)) => {
                for entry in quick {
                    setting(&mut experiment.quick, Key { entry, table: "[experiment.quick]" })?;
                }
            }
            ("quick", _) => return Err(Key { entry, table }.wrong_type("a table")),
            _ => setting(&mut experiment.settings, Key { entry, table })?,
        }
    }
    Ok(experiment)
}

/// Reads one key of an experiment or of its quick form.
fn setting(settings: &mut Settings, key: Key<'_>) -> Result<(), Error> {
    match (key.entry.key.as_str(), &key.entry.node) {
        ("axes", Node::Table(axes)) => {
            axes.iter().try_for_each(|entry| settings.put_axis(Key { entry, ..key }))
        }
        ("axes", _) => Err(key.wrong_type("a table")),
        (name, _) if Settings::KEYS.contains(&name) => settings.put(key),
        (name, _) if axis::NAMES.contains(&name) => {
            Err(key.unknown_but(": it is an axis; put it below [experiment.axes]"))
        }
        _ => {
            let extra = if key.table == "[[experiment]]" { EXPERIMENT_KEYS.as_slice() } else { &["axes"] };
            Err(key.unknown(&[extra, &Settings::KEYS].concat()))
        }
    }
}

fn pattern(key: Key<'_>) -> Result<Pattern, Error> {
    let text = key.text()?;
    Pattern::named(&text)
        .ok_or_else(|| key.unknown_value(&text, &Pattern::all().map(Pattern::name).collect::<Vec<_>>()))
}

fn figure(place: &str, entries: &[Entry]) -> Result<Figure, Error> {
    // The numbers come from the file. Only the record has the key `table`.
    let known: Vec<_> = names_of::<Reference>().iter().copied().filter(|name| *name != "table").collect();
    for entry in entries.iter().filter(|entry| entry.key == "reference") {
        let Node::Table(reference) = &entry.node else { continue };
        if let Some(wrong) = reference.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            return Err(Key { entry: wrong, table: "[figure.reference]" }.unknown(&known));
        }
    }
    let words = |title, reason| format!("the figure {title:?} cannot be read: {reason}");
    derived(place, entries, ("[[figure]]", "title"), selections::of_figure, words)
}

fn application(place: &str, entries: &[Entry]) -> Result<Application, Error> {
    let words = |name, reason| format!("the application {name:?} cannot be read: {reason}");
    derived(place, entries, ("[[application]]", "name"), |_| Ok(()), words)
}

fn finding(place: &str, entries: &[Entry]) -> Result<Finding, Error> {
    let words = |claim, reason| format!("the finding {claim:?} cannot be answered: {reason}");
    derived(place, entries, ("[[finding]]", "claim"), selections::of_finding, words)
}

/// Reads a table by the `Deserialize` of its type, and then its `values`. Errors show the text of
/// the key `titled`.
fn derived<T: DeserializeOwned>(
    place: &str,
    entries: &[Entry],
    (heading, titled): (&str, &str),
    values: impl FnOnce(&mut T) -> Result<(), String>,
    words: impl FnOnce(String, String) -> String,
) -> Result<T, Error> {
    let known = names_of::<T>();
    if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        return Err(Key { entry, table: heading }.unknown(known));
    }
    let json = Node::Table(entries.to_vec()).to_json();
    let title = json.get(titled).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut place = place;
    let read = serde_json::from_value(json).map_err(|error| {
        let reason = error.to_string().replace('`', "\"");
        match misspelt(&reason, entries) {
            Some((entry, reason)) => {
                place = &entry.place;
                reason
            }
            None => reason,
        }
    });
    let read = read.and_then(|mut read: T| values(&mut read).map(|()| read));
    read.map_err(|reason| Error::Plan { place: place.to_owned(), words: words(title, reason) })
}

/// The entry with a word that its type does not know, and a reason with the nearest word, if that
/// is what serde found.
fn misspelt<'e>(reason: &str, entries: &'e [Entry]) -> Option<(&'e Entry, String)> {
    let (wrong, rest) = reason.strip_prefix("unknown variant \"")?.split_once('"')?;
    let known: Vec<&str> = rest.split('"').skip(1).step_by(2).collect();
    let is_it = |entry: &&Entry| matches!(&entry.node, Node::Leaf(Value::String(text)) if text == wrong);
    let entry = entries.iter().find(is_it)?;
    Some((entry, format!("unknown {} {wrong:?}{}", entry.key, hint_or_all(wrong, &known))))
}

pub(crate) const PLAN_KEYS: [&str; 13] = [
    "about",
    "application",
    "environment",
    "expect",
    "experiment",
    "figure",
    "finding",
    "mode",
    "mpi",
    "name",
    "seed",
    "title",
    "variables",
];
pub(crate) const EXPERIMENT_KEYS: [&str; 4] = ["axes", "name", "pattern", "quick"];
