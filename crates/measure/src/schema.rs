//! The record as JSON Schema (draft 2020-12), generated from the types of [`crate::record`], whose comments are its
//! descriptions. The published copies are docs/schema/run.schema.json and docs/schema/point.schema.json; a test keeps
//! them fresh.

use schemars::{JsonSchema, schema_for};

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
    let schema =
        serde_json::to_string_pretty(&schema_for!(T)).expect("a schema is a tree of maps with text keys");
    schema + "\n"
}
