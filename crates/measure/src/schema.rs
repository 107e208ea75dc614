//! The record as JSON Schema (draft 2020-12), generated from the types of [`crate::record`], whose
//! comments are its descriptions. The published copies are docs/schema/run.schema.json and
//! docs/schema/point.schema.json; a test keeps them fresh.

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
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    RecursiveTransform(unwrap_description).transform(&mut schema);
    serde_json::to_string_pretty(&schema).expect("a schema is a tree of maps with text keys") + "\n"
}

/// Lets a paragraph of a description be one line: where its comment breaks lines says nothing.
fn unwrap_description(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        let paragraphs: Vec<String> =
            description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
}
