use std::ptr;

use measure::figure::Unit;
use measure::quantity::STATISTICS;
use measure::record::Point;
use measure::table::{Cell, Column, Place, View};
use serde_json::{Value, json};

use super::*;

/// A point of a pattern with everything that a table is chosen by.
fn point(pattern: &str, endpoint: &str, own: &Value) -> Point {
    let mut point = json!({
        "id": 0, "experiment": "e", "pattern": pattern, "axes": { "endpoint": endpoint }, "status": "measured",
        "repetition": 0, "wall_ns": 1,
    });
    for (key, value) in own.as_object().unwrap() {
        point[key] = value.clone();
    }
    serde_json::from_value(point).unwrap()
}

#[test]
fn every_column_shows_a_number_that_has_a_row() {
    let latency = json!({
        "kind": "rtt", "count": 1, "min_ns": 1, "p10_ns": 1, "p50_ns": 1, "p90_ns": 1, "p99_ns": 1, "p999_ns": 1,
        "max_ns": 1, "mean_ns": 1.0, "mavericks": { "rule": "", "count": 0 },
    });
    let cost = json!({ "step": "x", "calls": 1, "ns": 1.0, "stamp_ns": 1.0 });
    let throughput = |direction: &str| {
        let throughput = json!({ "bytes_per_s": 1.0, "messages_per_s": 1.0, "direction": direction });
        json!({ "throughput": throughput })
    };
    let numbers = [
        json!({ "latency": latency }),
        json!({ "latency": latency, "cost": cost }),
        json!({ "latency": latency, "kinds": [{ "latency": latency }] }),
        throughput("uni"),
        throughput("bi_one"),
    ];
    let own = |own: Value| json!({ "own": { "collective": own, "halo": own, "application": own, "transfer": own } });
    let numbers = numbers.into_iter().chain([own(json!({})), own(json!({ "t_pure_ns": 1.0 }))]);
    let numbers: Vec<Value> = numbers.collect();
    let mut titles = Vec::new();
    for (pattern, shown) in PATTERNS.all() {
        for (endpoint, own) in
            ["verbs", "udp"].iter().flat_map(|one| numbers.iter().map(move |own| (one, own)))
        {
            let point = point(pattern, endpoint, own);
            let Some(table) = PATTERNS.table(&point) else { continue };
            titles.push(table.title);
            let view =
                View { point: &point, bandwidth: Unit::MiBPerS, line: None, has_link: true, of_link: None };
            let needed =
                table.columns.iter().filter(|column| column.place != Place::Extra && (column.shown)(&view));
            let characters = |column: &Column| {
                1 + column.characters(&column.head.replace("{unit}", "MiB/s").replace("{>above}", ">50us[%]"))
            };
            let needed: usize = needed.map(characters).sum();
            // Three more for the mark of an unstable point.
            assert!(needed + 3 <= 80, "{pattern}: {}: {needed}", table.title);
            for column in table.columns {
                let is_known = match column.cell {
                    Cell::Number(path, _) => PATTERNS.find_at(&point, path).is_some(),
                    Cell::Statistic(field, _) => STATISTICS.iter().any(|known| known.field == field),
                    Cell::Axis(axis) => shown.has_column(axis),
                    Cell::Above | Cell::Bound | Cell::Kind | Cell::OfLink | Cell::Text(_) => true,
                };
                assert!(is_known, "{pattern}: {}", column.head);
                assert!(
                    !column.head.trim().contains(' '),
                    "{:?}: scripts split lines at spaces",
                    column.head
                );
            }
        }
    }
    titles.sort_unstable();
    titles.dedup();
    assert_eq!(titles.len(), 12, "{titles:?}");
}

#[test]
fn a_pattern_is_listed_once_and_an_unknown_one_is_shown_as_its_numbers_are() {
    let names: Vec<&str> = PATTERNS.all().map(|(name, _)| name).collect();
    assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    assert_eq!(PATTERNS.of("nop").row_axes, ["size_bytes"]);
    assert!(PATTERNS.table(&point("nop", "verbs", &json!({}))).is_none());
}

#[test]
fn a_number_of_one_pattern_has_words_and_a_path_and_is_no_other_patterns() {
    let nop = point("nop", "verbs", &json!({}));
    for (pattern, shown) in PATTERNS.all() {
        let own = point(pattern, "verbs", &json!({}));
        for quantity in shown.quantities {
            assert!(!quantity.help.is_empty(), "{}", quantity.path);
            let paths = PATTERNS.examples(quantity.path);
            assert!(!paths.is_empty(), "{}", quantity.path);
            for path in &paths {
                let is_own = |point: &Point| {
                    let found = PATTERNS.find_at(point, path).map(|found| found.quantity);
                    found.is_some_and(|found| shown.quantities.iter().any(|own| ptr::eq(own, found)))
                };
                assert!(is_own(&own) && !is_own(&nop), "{path}");
            }
        }
    }
}
