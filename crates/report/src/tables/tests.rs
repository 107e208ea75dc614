use measure::quantity;
use measure::quantity::STATISTICS;
use measure::table::Cell;
use serde_json::json;

use super::*;

/// A point of a pattern with everything that a table is chosen by.
fn point(pattern: &str, endpoint: &str, own: &serde_json::Value) -> Point {
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
    let mut titles = Vec::new();
    for shown in ALL {
        for (endpoint, own) in
            ["verbs", "udp"].iter().flat_map(|one| numbers.iter().map(move |own| (one, own)))
        {
            let table = table(&point(shown.pattern, endpoint, own)).unwrap();
            titles.push(table.title);
            for column in table.columns {
                let is_known = match column.cell {
                    Cell::Number(path, _) => quantity::find(path).is_some(),
                    Cell::Statistic(field, _) => STATISTICS.iter().any(|known| known.field == field),
                    Cell::Axis(axis) => shown.has_column(axis),
                    Cell::Above | Cell::Kind | Cell::OfLink | Cell::Text(_) => true,
                };
                assert!(is_known, "{}: {}", shown.pattern, column.head);
            }
        }
    }
    titles.sort_unstable();
    titles.dedup();
    assert_eq!(titles.len(), 7, "{titles:?}");
}

#[test]
fn a_pattern_is_shown_once_and_an_unknown_one_as_its_numbers_are() {
    for (index, shown) in ALL.iter().enumerate() {
        assert!(std::ptr::eq(of(shown.pattern), *shown), "{}", shown.pattern);
        assert!(ALL[..index].iter().all(|other| other.pattern < shown.pattern), "{}", shown.pattern);
        assert!(shown.own.iter().all(|path| quantity::find(path).is_some_and(|found| found.quantity.is_own)));
    }
    assert_eq!(of("nop").row_axes, ["size_bytes"]);
    assert!(table(&point("nop", "verbs", &json!({}))).is_none());
}
