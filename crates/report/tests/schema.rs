//! The published schemas of the exported tables match the code.

use std::path::Path;
use std::{env, fs};

use bench::axis;
use report::export::schema;
use serde_json::Value;

fn assert_fresh(name: &str, schema: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    if env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, schema).unwrap();
    }
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let on_disk = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        value(&on_disk).is_some() && value(&on_disk) == value(schema),
        "docs/schema/{name} is stale; rewrite it with: UPDATE_SCHEMA=1 cargo test -p report --test schema"
    );
}

#[test]
fn the_schemas_of_the_tables_are_fresh() {
    let axes: Vec<(&str, &str)> = axis::ROWS.iter().map(|row| (row.name, row.help())).collect();
    assert_fresh("export.schema.json", &schema::numbers(&axes));
    assert_fresh("export-samples.schema.json", &schema::samples());
}

#[test]
fn the_page_names_every_column() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export.md")).unwrap();
    for schema in [schema::numbers(&[]), schema::samples()] {
        let schema: Value = serde_json::from_str(&schema).unwrap();
        for field in schema["fields"].as_array().unwrap() {
            let name = field["name"].as_str().unwrap();
            assert!(page.contains(&format!("`{name}`")), "docs/export.md does not name the column {name}");
        }
    }
}

#[test]
fn no_axis_has_the_name_of_another_column() {
    let schema: Value = serde_json::from_str(&schema::numbers(&[])).unwrap();
    let columns: Vec<&str> =
        schema["fields"].as_array().unwrap().iter().filter_map(|field| field["name"].as_str()).collect();
    assert!(columns.contains(&"quantity"));
    let taken: Vec<&&str> = axis::NAMES.iter().filter(|name| columns.contains(name)).collect();
    assert_eq!(taken, Vec::<&&str>::new());
}
