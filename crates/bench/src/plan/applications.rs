//! The applications of a plan: the values of the axes `application` and `mode`.

use std::collections::{BTreeMap, BTreeSet};

use measure::conditions::Wanted;
use measure::record::Axes;
use serde_json::{Value, json};

use super::environments;
use super::keys::{Key, require};
use super::model::{Base, Plan};
use super::names::{hint_or_all, is_name};
use super::settings::Settings;
use super::text::{Entry, Node};
use crate::Error;
use crate::application::{
    Application, ApplicationSpec, DIRECTORY, Fault, File, RANKS, STDERR, STDOUT, Starter, VALUE, expression,
    fill,
};
use crate::axis;
use crate::mpi_endpoint;
use crate::pattern::check::Check;
use crate::pattern::experiment::Filled;
use crate::point::Pattern;

/// Adds an application, if it is valid.
pub(super) fn add(known: &mut Vec<Application>, new: Application, place: &str) -> Result<(), Error> {
    let fault = if known.iter().any(|other| other.name == new.name) {
        Some("another application has this name".to_owned())
    } else {
        fault(&new)
    };
    if let Some(fault) = fault {
        let words = format!("the application {:?} cannot be run: {fault}", new.name);
        return Err(Error::Plan { place: place.to_owned(), words });
    }
    known.push(new);
    Ok(())
}

/// What is wrong with an application, without the rest of the plan.
fn fault(new: &Application) -> Option<String> {
    if !is_name(&new.name) {
        return Some("names are made of letters, digits, '-' and '_'".to_owned());
    }
    if new.command.is_empty() {
        return Some("its command has no words: give the program and its arguments as a list".to_owned());
    }
    if new.metric.is_empty() {
        return Some("it has no metric: add an [[application.metric]] with a name and a pattern".to_owned());
    }
    let mut names = BTreeSet::new();
    for metric in &new.metric {
        if !is_name(&metric.name) || !names.insert(&metric.name) {
            let why = "names are made of letters, digits, '-' and '_', and each metric has a different one";
            return Some(format!("a metric cannot be named {:?}: {why}", metric.name));
        }
    }
    if let Some(fault) = of_launcher(&new.launcher) {
        return Some(fault);
    }
    if let Some(fault) = of_files(new) {
        return Some(fault);
    }
    let metrics = new.metric.iter().map(|metric| (&metric.pattern, &metric.place, true));
    let verify = new.verify.iter().map(|said| (&said.pattern, &said.place, false));
    metrics.chain(verify).find_map(|(pattern, place, has_value)| of_expression(pattern, place, has_value))
}

/// What is wrong with the launcher of an application.
fn of_launcher(launcher: &Starter) -> Option<String> {
    let Starter::Template(template) = launcher else { return None };
    if !template.contains("{ranks}") {
        return Some(format!(
            "the launcher {template:?} always starts the same number of ranks: write {{ranks}} in place of the number"
        ));
    }
    let has_others = fill(template, &|name| (name == "ranks").then(String::new)).is_err();
    has_others.then(|| format!("its launcher {template:?} has another placeholder than {{ranks}}: remove it"))
}

/// What is wrong with the files of an application.
fn of_files(new: &Application) -> Option<String> {
    let is_taken = |name: &String| axis::find(name).is_some() || name == DIRECTORY || !is_name(name);
    if let Some(name) = new.files.keys().find(|name| is_taken(name)) {
        let why = "names are made of letters, digits, '-' and '_', and names of axes and dir are taken";
        return Some(format!("a file cannot be named {name:?}: {why}"));
    }
    let mut names = BTreeSet::new();
    new.files.values().find_map(|file| match file {
        _ if matches!(file.name(), "" | "." | "..") || file.name().contains('/') => {
            Some(format!("{:?} is not the name of a file in its directory", file.name()))
        }
        _ if !names.insert(file.name()) => Some(format!("two of its files are named {:?}", file.name())),
        File::Text { name, .. } if name.contains(['{', '}']) => {
            Some(format!("the name {name:?} of a file has a brace: only the text may have placeholders"))
        }
        File::Text { name, text } if text.len() > TEXT_BYTES_MAX => {
            Some(format!("the text of {name:?} is longer than {TEXT_BYTES_MAX} B: give the path of a file"))
        }
        File::Copy(_) | File::Text { .. } => None,
    })
}

/// What is wrong with an expression.
fn of_expression(pattern: &str, place: &str, has_value: bool) -> Option<String> {
    let is_file = !place.is_empty() && !place.split('/').any(|part| matches!(part, "" | "." | ".."));
    if place != STDOUT && place != STDERR && !is_file {
        return Some(format!("{place:?} is not the path of a file in its directory"));
    }
    let compiled = match expression(pattern) {
        Ok(compiled) => compiled,
        Err(why) => return Some(format!("the expression {pattern:?} cannot be read: {why}")),
    };
    let groups: Vec<&str> = compiled.capture_names().flatten().collect();
    if has_value && !groups.contains(&VALUE) {
        return Some(format!(
            "the expression {pattern:?} has no group {VALUE}: write (?<{VALUE}>...) around the number"
        ));
    }
    let stray = groups.into_iter().find(|group| *group != RANKS && (*group != VALUE || !has_value))?;
    let hint = hint_or_all(stray, if has_value { &[VALUE, RANKS] } else { &[RANKS] });
    Some(format!("the expression {pattern:?} has an unknown group {stray:?}{hint}"))
}

/// Refuses unknown placeholders. `places` are the places of the applications.
pub(super) fn placeholders(plan: &Plan, places: &[String]) -> Result<(), Error> {
    for (application, place) in plan.applications.iter().zip(places) {
        let refuse = |why: String| {
            let words = format!("the application {:?} cannot be run: {why}", application.name);
            Err(Error::Plan { place: place.clone(), words })
        };
        let known = names(plan, application);
        let is_known = |name: &str| known.iter().any(|one| one == name).then(String::new);
        let modes = plan.modes.values().flat_map(BTreeMap::values);
        // Line by line, so that an error quotes only the wrong line.
        for text in texts(application).chain(modes.map(String::as_str)).flat_map(str::lines) {
            match fill(text, &is_known) {
                Ok(_) => {}
                Err(Fault::Unpaired) => {
                    return refuse(format!(
                        "{text:?} has an unpaired brace: write {{{{ or }}}} for a literal brace"
                    ));
                }
                Err(Fault::Unknown(name)) => {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let hint = hint_or_all(&name, &known);
                    return refuse(format!("unknown placeholder {{{name}}}{hint}"));
                }
            }
        }
        if matches!(plan.base, Base::Bundled)
            && let Some(File::Copy(path)) = application.files.values().find(|file| is_relative(file))
        {
            return refuse(format!(
                "the plan has no directory for the file {path:?}: give the text of the file"
            ));
        }
    }
    Ok(())
}

fn is_relative(file: &File) -> bool {
    matches!(file, File::Copy(path) if !path.starts_with(['/', '{']))
}

/// The texts of an application that may have placeholders.
fn texts(application: &Application) -> impl Iterator<Item = &str> {
    let Application { command, files, environment, version_command, .. } = application;
    let files = files.values().map(|file| match file {
        File::Copy(path) => path,
        File::Text { text, .. } => text,
    });
    let all = command.iter().chain(version_command).chain(environment.values()).chain(files);
    all.map(String::as_str)
}

/// The names that placeholders of an application may have.
fn names(plan: &Plan, application: &Application) -> Vec<String> {
    let axes = Pattern::APPLICATION.row().only_axes.into_iter().flatten().map(|row| row.name.to_owned());
    let own = application.files.keys().chain(plan.variables.keys()).cloned();
    axes.chain(own).chain([DIRECTORY.to_owned()]).collect()
}

/// Reads the `[[mode]]` tables of a plan: a name, and the variables of its environment.
pub(super) fn modes(
    tables: &[(String, Vec<Entry>)],
) -> Result<BTreeMap<String, BTreeMap<String, String>>, Error> {
    let mut modes = BTreeMap::new();
    for (place, entries) in tables {
        let name = require(entries, "name", place, MODE, "name = \"tcp\"")?;
        let own = Key { entry: name, table: MODE }.name()?;
        let mut variables = BTreeMap::new();
        for entry in entries {
            let key = Key { entry, table: MODE };
            match entry.key.as_str() {
                "name" => {}
                "environment" => variables = texts_of(key)?,
                _ => return Err(key.unknown(&["environment", "name"])),
            }
        }
        if modes.insert(own.clone(), variables).is_some() {
            let words = format!("two modes are named {own:?}: give each mode a different name");
            return Err(Error::Plan { place: place.clone(), words });
        }
    }
    Ok(modes)
}

/// Reads the `[variables]` of a plan.
pub(super) fn variables(key: Key<'_>) -> Result<BTreeMap<String, String>, Error> {
    let variables = texts_of(key)?;
    let is_key =
        |name: &str| axis::find(name).is_some() || Settings::KEYS.contains(&name) || name == DIRECTORY;
    match variables.keys().find(|name| is_key(name) || !is_name(name)) {
        Some(name) => {
            let why = "names are made of letters, digits, '-' and '_', and names of axes, settings and dir are taken";
            Err(key.unreadable(format!("a variable cannot be named {name:?}: {why}")))
        }
        None => Ok(variables),
    }
}

/// A table of texts.
fn texts_of(key: Key<'_>) -> Result<BTreeMap<String, String>, Error> {
    let Node::Table(entries) = &key.entry.node else { return Err(key.wrong_type("a table of texts")) };
    entries.iter().map(|entry| Ok((entry.key.clone(), Key { entry, ..key }.text()?))).collect()
}

/// Refuses applications and modes that are not defined, and experiments without an application.
pub(super) fn check(plan: &Plan, filled: &Filled) -> Result<(), Error> {
    if filled.pattern != Pattern::APPLICATION {
        return Ok(());
    }
    let check = Check(filled);
    let given = filled.axes.get(axis::APPLICATION);
    if given.is_empty() {
        let words = format!("{check} names no application: add application = \"NAME\" to its axes");
        return check.wrong(axis::APPLICATION.row.name, words);
    }
    let programs: Vec<&str> = plan.applications.iter().map(|one| one.name.as_str()).collect();
    let modes: Vec<&str> = plan.modes.keys().map(String::as_str).collect();
    let named = filled.axes.get(axis::MODE).into_iter().flatten().collect();
    for (row, names, known) in [(axis::APPLICATION.row, given, programs), (axis::MODE.row, named, modes)] {
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            let hint = hint_or_all(unknown, &known);
            let words = format!("unknown {} {unknown:?} in {check}{hint}", row.name);
            return check.wrong(row.name, words);
        }
    }
    arranged(plan, filled)
}

/// Refuses axes of a launcher for applications without a launcher, and techniques that only work
/// for the ranks of rdmascope.
fn arranged(plan: &Plan, filled: &Filled) -> Result<(), Error> {
    let check = Check(filled);
    let named = filled.axes.get(axis::APPLICATION);
    let mut programs = plan.applications.iter().filter(|one| named.contains(&one.name));
    let given = &filled.settings.axes;
    let of_launcher = [axis::MPI_TRANSPORT.row, axis::MPI_MAP.row, axis::LINK.row];
    if let Some(alone) = programs.find(|one| one.launcher == Starter::None)
        && let Some(row) = of_launcher.into_iter().find(|row| given.find(row.name).is_some())
    {
        let why = format!("{:?} has no launcher: give it a separate experiment", alone.name);
        return check.refuse(row.name, &format!("{} of an application without a launcher", row.name), &why);
    }
    mpi_endpoint::check_link(&check)?;
    for name in filled.axes.get(axis::ENVIRONMENT) {
        let Wanted { cpuset, memory, numa, scheduler, .. } = environments::of(plan, &name);
        let techniques = [
            ("cpuset", cpuset.is_some()),
            ("memory", memory.is_some()),
            ("numa", numa.is_some()),
            ("scheduler", scheduler.is_some()),
        ];
        if let Some((technique, _)) = techniques.into_iter().find(|(_, is_wanted)| *is_wanted) {
            let why = format!("{technique} works only for ranks of rdmascope: use an environment without it");
            return check.refuse(
                axis::ENVIRONMENT.row.name,
                &format!("an application in the environment {name:?}"),
                &why,
            );
        }
    }
    Ok(())
}

/// Refuses a path to a metric that no application of some experiments has, or that applications
/// report in different units.
pub(super) fn metric(plan: &Plan, experiments: &[String], path: &str) -> Result<(), String> {
    let Some(name) = path.strip_prefix(METRICS) else { return Ok(()) };
    let shown = plan.experiments.iter().filter(|one| experiments.contains(&one.name));
    let named: BTreeSet<String> = shown.flat_map(|one| one.settings.axes.get(axis::APPLICATION)).collect();
    let programs = plan.applications.iter().filter(|one| named.contains(&one.name));
    let metrics: Vec<_> = programs.flat_map(|one| &one.metric).collect();
    let units: BTreeSet<&str> =
        metrics.iter().filter(|metric| metric.name == name).map(|metric| metric.unit.as_str()).collect();
    if units.is_empty() {
        let known: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        return Err(hint_or_all(name, &known));
    }
    match units.len() {
        1 => Ok(()),
        _ => {
            let units = units.into_iter().collect::<Vec<_>>().join(" and ");
            Err(format!(": applications report it in {units}, so show them in separate figures"))
        }
    }
}

/// The application of a point with these axes, if it has one.
pub(super) fn of_point(plan: &Plan, axes: &Axes) -> Option<Box<ApplicationSpec>> {
    let name = axis::APPLICATION.at(axes)?;
    let application = plan.applications.iter().find(|one| one.name == name)?;
    let of_axes = axes.iter().map(|(name, value)| (name.clone(), measure::text::value(value)));
    let values: BTreeMap<String, String> = plan.variables.clone().into_iter().chain(of_axes).collect();
    let named = |file: &File| {
        let filled = fill(file.name(), &|name| values.get(name).cloned()).unwrap_or_default();
        File::Copy(filled).name().to_owned()
    };
    let own: Vec<_> = application.files.iter().map(|(name, file)| (name.clone(), named(file))).collect();
    let values = values.into_iter().chain(own).collect();
    let mode = axis::MODE.at(axes).flatten();
    let base = match &plan.base {
        Base::Bundled => None,
        // The application runs in another directory.
        Base::Directory(path) => {
            std::path::absolute(path).ok().map(|path| path.to_string_lossy().into_owned())
        }
    };
    Some(Box::new(ApplicationSpec {
        application: application.clone(),
        ranks: axis::RANKS.at(axes).unwrap_or(1),
        values,
        mode: mode.and_then(|mode| plan.modes.get(&mode).cloned()).unwrap_or_default(),
        base,
        started: None,
    }))
}

/// Adds the applications of a plan to the plan in the record.
pub(super) fn record(plan: &Plan, json: &mut Value) {
    if !plan.applications.is_empty() {
        json["applications"] = json!(plan.applications);
        json["modes"] = json!(plan.modes);
        json["variables"] = json!(plan.variables);
    }
}

const MODE: &str = "[[mode]]";
/// The path of the metrics of an application in a point.
const METRICS: &str = "application.metrics.";
/// The longest text of a file. The texts of a point's application travel in one message.
const TEXT_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests;
