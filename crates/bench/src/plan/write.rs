//! A plan that was built in code, as the text that [`Plan::parse`] reads to the same plan.

use measure::text::wrapped;
use serde::Serialize;
use serde_json::Value;

use super::model::{Experiment, Plan};
use super::offer::Offered;
use crate::Error;
use crate::axis::Axis;

/// Keys of a table that come first, because they tell the others apart.
const FIRST: [&str; 4] = ["kind", "title", "caption", "quantity"];

/// Writes a plan with its experiments, figures and expectations. The axes that are offered and not
/// set stand in each experiment as comments, with their defaults.
///
/// # Errors
///
/// If a figure or an expectation has no form as TOML.
pub fn text(plan: &Plan, offered: &[Offered]) -> Result<String, Error> {
    let mut out = format!("name = {}\ntitle = {}\n", quoted(&plan.name), quoted(&plan.title));
    for experiment in &plan.experiments {
        out += &experiment_text(experiment, offered);
    }
    for figure in &plan.figures {
        out += &table_text("figure", figure)?;
    }
    for expectation in &plan.expectations {
        out += &table_text("expect", expectation)?;
    }
    Ok(out)
}

fn experiment_text(experiment: &Experiment, offered: &[Offered]) -> String {
    let mut out = format!(
        "\n[[experiment]]\nname = {}\npattern = {}\n",
        quoted(&experiment.name),
        quoted(experiment.pattern.name())
    );
    let settings = experiment.settings.written();
    for (key, value) in &settings {
        out += &format!("{key} = {}\n", toml_of(value));
    }
    out += "\n[experiment.axes]\n";
    let axes = &experiment.settings.axes;
    for axis in axes.iter() {
        out += &documented(axis.row.help());
        out += &format!("{} = {}\n", axis.row.name, values(axis));
    }
    let is_open = |of: &&Offered| of.is_shown && axes.find(of.row.name).is_none();
    for of in offered.iter().filter(is_open).filter(|of| settings.iter().all(|(key, _)| *key != of.row.name))
    {
        out += &documented(of.row.help());
        out += &format!("# {} = {}\n", of.row.name, default(of));
    }
    out
}

/// A figure or an expectation.
fn table_text(heading: &str, table: &impl Serialize) -> Result<String, Error> {
    let cannot =
        |error: serde_json::Error| Error::Plan { place: format!("[[{heading}]]"), words: error.to_string() };
    let Value::Object(mut keys) = serde_json::to_value(table).map_err(cannot)? else {
        return Ok(String::new());
    };
    let mut out = format!("\n[[{heading}]]\n");
    let first: Vec<_> = FIRST.into_iter().filter_map(|key| keys.remove_entry(key)).collect();
    for (key, value) in first.into_iter().chain(keys) {
        out += &format!("{key} = {}\n", toml_of(&value));
    }
    Ok(out)
}

/// The values of an axis: one, or a list.
fn values(axis: &Axis) -> String {
    match axis.values() {
        [value] => toml_of(value),
        values => toml_of(&Value::Array(values.to_vec())),
    }
}

/// The default of an axis, as its flag would have it.
fn default(of: &Offered) -> String {
    match of.row.read_text(&of.default) {
        Ok(values) if !values.is_empty() => self::values(&Axis::read(of.row, values)),
        // The pattern or the system decides it.
        _ => "...".to_owned(),
    }
}

/// A comment of as many lines as it takes.
fn documented(help: &str) -> String {
    wrapped(&format!("# {help}."), "# ")
}

/// A value as TOML writes it, on one line.
fn toml_of(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml_of).collect::<Vec<_>>().join(", "))
        }
        Value::Object(keys) => {
            let pair = |(key, value): (&String, &Value)| format!("{} = {}", quoted_key(key), toml_of(value));
            format!("{{ {} }}", keys.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn quoted_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quoted(key) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::axis;
    use crate::plan::offer::{Offer, start};
    use crate::plan::{Options, Plan, Settings, resolve};
    use crate::point::Pattern;

    fn read(text: &str) -> Plan {
        Plan::parse(text, "written", Path::new(".")).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The plan of a command without flags.
    fn plan_of(pattern: Pattern, settings: Settings) -> Plan {
        let command = pattern.command();
        let title = (command.title)(&settings.axes);
        let plan = Plan::new(command.name, title).experiment("it", pattern, settings);
        (command.figures)(vec!["it".to_owned()]).into_iter().fold(plan, Plan::figure)
    }

    #[test]
    fn the_plan_of_every_command_is_read_to_the_same_plan() {
        let mut written = 0;
        for pattern in Pattern::offered() {
            let subjects: Vec<_> = pattern.command().subjects().map(Some).collect();
            for subject in if subjects.is_empty() { vec![None] } else { subjects } {
                let settings = start(pattern, subject, subject.and_then(|subject| subject.operation));
                let plan = plan_of(pattern, settings);
                let offer = Offer::of(pattern, subject);
                let text = text(&plan, &offer.axes).unwrap();
                let again = read(&text);
                assert_eq!(again.experiments[0].settings.axes, plan.experiments[0].settings.axes, "{text}");
                assert_eq!(again.figures, plan.figures, "{text}");
                let points = |plan: &Plan| resolve(plan, &Options::default()).map(|found| found.points.len());
                assert_eq!(points(&again).unwrap(), points(&plan).unwrap(), "{text}");
                written += 1;
            }
        }
        assert!(written > 20, "{written}");
    }

    #[test]
    fn settings_and_defaults_are_written_as_plans_have_them() {
        let pattern = Pattern::named("ping-pong").unwrap();
        let subject = pattern.command().subjects().next();
        let settings = Settings {
            duration_s: Some(2.5),
            within: Some(0.07),
            bytes_max: Some(65_536),
            keep_samples: Some(false),
            share_above_ns: Some(vec![1000, 10_000]),
            ..start(pattern, subject, subject.and_then(|subject| subject.operation))
        };
        let settings = settings.axis(axis::SIZE_BYTES.values([4, 64]));
        let plan = plan_of(pattern, settings);
        let text = text(&plan, &Offer::of(pattern, subject).axes).unwrap();
        for line in [
            "duration = \"2.5s\"",
            "within = \"7 %\"",
            "bytes_max = 65536",
            "keep_samples = false",
            "share_above_ns = [1000, 10000]",
            "size_bytes = [4, 64]",
            "# mtu_bytes = \"active\"",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line}: {text}");
        }
        let again = read(&text);
        assert_eq!(again.experiments[0].settings.written(), plan.experiments[0].settings.written());
        assert_eq!(quoted_key("a.b"), "\"a.b\"");
    }
}
