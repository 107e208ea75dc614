//! The reference of the record, generated from its schemas: docs/record-reference.md.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Field, constants, description, members, schema};
use crate::record::{Point, Run};
use crate::text::{sentence, wrapped};

/// The reference as Markdown. It lists the keys of `run.json`, those of `points.jsonl`, and then
/// those of each type.
pub fn record() -> String {
    let mut text = HEAD.to_owned();
    let mut types = BTreeMap::new();
    for (title, schema) in [("`run.json`", schema::<Run>()), ("`points.jsonl`", schema::<Point>())] {
        let schema = schema.to_value();
        text += &section(title, &schema);
        let definitions = schema["$defs"].as_object().into_iter().flatten();
        types.extend(definitions.map(|(name, definition)| (name.clone(), definition.clone())));
    }
    text + &types.iter().map(|(name, schema)| section(name, schema)).collect::<String>()
}

/// The section of a file or a type: its purpose, its keys, its words, and its forms if it has
/// several.
fn section(title: &str, schema: &Value) -> String {
    let mut lists = members(schema, None).iter().map(|field| key(field, "")).collect::<String>();
    for (word, help) in constants(schema) {
        lists += &item("", &format!("`{word}`: {}", plain(&help)));
    }
    let is_form = |form: &&Value| form["properties"].is_object();
    let forms: Vec<&Value> = schema["oneOf"].as_array().into_iter().flatten().filter(is_form).collect();
    if !forms.is_empty() {
        lists += &item("", "One of these forms:");
    }
    for form in forms {
        lists += &item("", &plain(&description(form)));
        lists += &members(form, None).iter().map(|field| key(field, "  ")).collect::<String>();
    }
    let lists = if lists.is_empty() { lists } else { format!("\n{lists}") };
    format!("\n## {title}\n\n{}{lists}", wrapped(&plain(&description(schema)), ""))
}

/// The line of a key.
fn key(field: &Field, indent: &str) -> String {
    let Field { name, value, is_required, help } = field;
    let required = if *is_required { ", required" } else { "" };
    let help = if help.is_empty() { String::new() } else { format!(": {}", plain(help)) };
    item(indent, &format!("`{name}` ({value}{required}){help}"))
}

fn item(indent: &str, text: &str) -> String {
    wrapped(&format!("{indent}- {text}"), &format!("{indent}  "))
}

/// Turns documentation into a sentence in which keys and words have their names of the record.
fn plain(help: &str) -> String {
    sentence(help, |path| match path.rsplit_once("::") {
        Some((_, name)) => kebab(name),
        None => path.to_owned(),
    })
}

/// Spells the name of a variant as the record does.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

const HEAD: &str = "\
# Record reference

This page lists every key of a record. It is generated from the JSON Schemas
[run.schema.json](schema/run.schema.json) and [point.schema.json](schema/point.schema.json), which
are generated from the types that write the record. [Record](record.md) explains the files, the
samples, and what readers may rely on.

A required key is in every record of this version. Any other key is absent where it does not apply.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_every_type_has_its_place() {
        let text = record();
        for line in [
            "## `run.json`",
            "- `schema_version` (whole number, required): ",
            "- `fleet` ([Fleet](#fleet)): ",
            "- `environments` (list of [Environment](#environment)): ",
            "  - `status` (`not_measured`, required)",
            "## Latency",
            "- `rtt_half`: ",
        ] {
            assert!(text.lines().any(|found| found.starts_with(line)), "{line}");
        }
    }

    #[test]
    fn names_of_rust_are_those_of_the_record() {
        assert_eq!(
            plain("of [`FigureKind::LinkRates`] in [`Run::launches`](x), [`Gaps`]"),
            "of `link-rates` in `launches`, `Gaps`."
        );
    }
}
