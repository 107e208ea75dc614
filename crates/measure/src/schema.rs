//! The record as JSON Schema (draft 2020-12), generated from the types of [`crate::record`], whose
//! comments are its descriptions. The published copies are docs/schema/run.schema.json and
//! docs/schema/point.schema.json; a test keeps them fresh.

pub mod reference;

use std::cmp::Ordering;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::record::{Point, Run};

/// JSON Schema of `run.json`.
pub fn run() -> String {
    text::<Run>()
}

/// JSON Schema of a line of `points.jsonl`.
pub fn point() -> String {
    text::<Point>()
}

fn text<T: JsonSchema>() -> String {
    let schema = schema::<T>();
    serde_json::to_string_pretty(&schema).expect("a schema is a tree of maps with text keys") + "\n"
}

fn schema<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    RecursiveTransform(unwrap_description).transform(&mut schema);
    schema
}

/// A key of a table, as its type defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What its value is, in words.
    pub value: String,
    /// Whether the key is required.
    pub is_required: bool,
    /// Its purpose, in one line.
    pub help: String,
}

impl Field {
    /// The order of a reference: required keys first, then by name.
    pub fn by_need(&self, other: &Self) -> Ordering {
        (!self.is_required, &self.name).cmp(&(!other.is_required, &other.name))
    }
}

/// The keys of a table that a type reads, in alphabetical order, required keys first.
pub fn fields<T: JsonSchema>() -> Vec<Field> {
    let schema = schema::<T>().to_value();
    members(&schema, Some(&schema["$defs"]))
}

/// The words that a type reads, each with its meaning in one line.
pub fn variants<T: JsonSchema>() -> Vec<(String, String)> {
    constants(&schema::<T>().to_value())
}

/// Returns the keys of an object, in alphabetical order, required keys first. Their values have the
/// words of the definitions, or without definitions the names of their types.
fn members(schema: &Value, definitions: Option<&Value>) -> Vec<Field> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let field = |(name, property): (&String, &Value)| Field {
        name: name.clone(),
        value: words(property, definitions),
        is_required: required.iter().any(|required| required == name),
        help: description(property),
    };
    let mut fields: Vec<Field> = schema["properties"].as_object().into_iter().flatten().map(field).collect();
    fields.sort_by(Field::by_need);
    fields
}

/// Returns the words of a choice, each with its meaning in one line.
fn constants(schema: &Value) -> Vec<(String, String)> {
    let variant = |of: &Value| Some((of["const"].as_str()?.to_owned(), description(of)));
    schema["oneOf"].as_array().into_iter().flatten().filter_map(variant).collect()
}

/// Returns the description of a schema in one line.
fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace("\n\n", " ")
}

/// Describes a value in words. Without definitions, a type of its own is a link to its section.
fn words(property: &Value, definitions: Option<&Value>) -> String {
    if let Some(name) = property["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return match definitions {
            Some(all) => words(&all[name], definitions),
            None => format!("[{name}](#{})", name.to_lowercase()),
        };
    }
    let is_null = |one: &Value| one["type"] == "null";
    let others = property["anyOf"].as_array().into_iter().flatten().filter(|one| !is_null(one));
    let others: Vec<String> = others.map(|one| words(one, definitions)).collect();
    if !others.is_empty() {
        return others.join(" or ");
    }
    if let Some(variants) = property["oneOf"].as_array() {
        let words = variants.iter().filter_map(|variant| Some(format!("`{}`", variant["const"].as_str()?)));
        return words.collect::<Vec<_>>().join(", ");
    }
    let types = match &property["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        one => one.as_str(),
    };
    match types {
        Some("string") => match property["const"].as_str() {
            Some(word) => format!("`{word}`"),
            None => "text".to_owned(),
        },
        Some("integer") => "whole number".to_owned(),
        Some("number") => "number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") if property["prefixItems"].is_array() => {
            let items = property["prefixItems"].as_array().into_iter().flatten();
            let items: Vec<String> = items.map(|item| words(item, definitions)).collect();
            format!("list of {}", items.join(", "))
        }
        Some("array") => {
            let item = words(&property["items"], definitions);
            let few = property["maxItems"].as_u64().filter(|most| property["minItems"] == *most);
            few.map_or_else(|| format!("list of {item}"), |count| format!("list of {count}, each {item}"))
        }
        Some("object") => "table".to_owned(),
        _ => "any value, or a list".to_owned(),
    }
}

/// Joins the lines of each paragraph of a description: their breaks mean nothing.
fn unwrap_description(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        let paragraphs: Vec<String> =
            description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
}
