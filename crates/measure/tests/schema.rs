//! The published JSON Schemas and the reference of the record match the code, and what the code
//! writes has their required fields.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn published(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name)
}

fn assert_fresh(name: &str, schema: &str) {
    let path = published(name);
    if env::var_os("UPDATE_SCHEMA").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, schema).unwrap();
    }
    // Compared as values: the order of keys depends on the features of libraries that other crates
    // of a build enable.
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let on_disk = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        value(&on_disk).is_some() && value(&on_disk) == value(schema),
        "docs/schema/{name} is stale; rewrite it with: UPDATE_SCHEMA=1 cargo test -p measure --test schema"
    );
}

#[test]
fn the_schema_of_a_run_is_fresh() {
    assert_fresh("run.schema.json", &measure::schema::run());
}

#[test]
fn the_schema_of_a_point_is_fresh() {
    assert_fresh("point.schema.json", &measure::schema::point());
}

#[test]
fn the_reference_of_the_record_is_fresh() {
    let path = published("../record-reference.md");
    let text = measure::schema::reference::record();
    if env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let how = "is stale; rewrite it with: UPDATE_SCHEMA=1 cargo test -p measure --test schema";
    assert!(found == text, "docs/record-reference.md {how}");
}

#[test]
fn the_schemas_require_what_readers_need() {
    let required = |text: String| -> Vec<String> {
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        serde_json::from_value(schema["required"].clone()).unwrap()
    };
    let run = required(measure::schema::run());
    assert!(run.contains(&"schema_version".to_owned()), "{run:?}");
    let point = required(measure::schema::point());
    assert!(point.contains(&"axes".to_owned()) && point.contains(&"wall_ns".to_owned()), "{point:?}");
    let schema: serde_json::Value = serde_json::from_str(&measure::schema::point()).unwrap();
    assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(3), "one form for each status of a point");
}
