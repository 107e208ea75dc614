//! The columns of the exported tables as Frictionless Table Schemas
//! (specs.frictionlessdata.io/table-schema), which name the type of each column. The published
//! copies are docs/schema/export.schema.json and docs/schema/export-samples.schema.json; a test
//! keeps them fresh.

use serde_json::{Value, json};

use super::rows::{self, Column};
use super::samples;

/// An axis: its name and its description.
pub type Axis<'a> = (&'a str, &'a str);

/// The schema of the table of numbers. A table has the columns of those axes that its points have.
pub fn numbers(axes: &[Axis<'_>]) -> String {
    let axis = |(name, help): &Axis<'_>| json!({ "name": name, "type": "any", "description": help });
    text(rows::COLUMNS.iter().map(field).chain(axes.iter().map(axis)).collect(), "subset")
}

/// The schema of the table of samples.
pub fn samples() -> String {
    text(samples::COLUMNS.iter().map(field).collect(), "exact")
}

fn field(column: &Column) -> Value {
    let mut field = json!({ "name": column.name, "type": column.kind, "description": column.help });
    if column.is_required {
        field["constraints"] = json!({ "required": true });
    }
    field
}

fn text(fields: Vec<Value>, matching: &str) -> String {
    let schema = json!({
        "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
        "fields": fields,
        "fieldsMatch": matching,
        "missingValues": [""],
    });
    serde_json::to_string_pretty(&schema).expect("a schema is a tree of maps with text keys") + "\n"
}
