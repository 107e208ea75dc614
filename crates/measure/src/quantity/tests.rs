use serde_json::json;

use super::*;

fn point(own: &serde_json::Value) -> Point {
    let mut point = json!({
        "id": 0, "experiment": "e", "pattern": "p", "axes": {}, "status": "measured", "repetition": 0, "wall_ns": 7,
    });
    for (key, value) in own.as_object().unwrap() {
        point[key] = value.clone();
    }
    serde_json::from_value(point).unwrap()
}

fn latency(kind: &str) -> serde_json::Value {
    json!({
        "kind": kind, "count": 100, "min_ns": 1, "p10_ns": 2, "p50_ns": 30, "p90_ns": 44, "p99_ns": 50, "p999_ns": 60,
        "max_ns": 70, "mean_ns": 31.5, "p50_ci95_ns": [28, 32], "share_above": { "40": 0.25 },
        "mavericks": { "rule": "> 2 x mean", "count": 3 },
    })
}

#[test]
fn every_row_has_words_and_paths_that_lead_to_it() {
    for quantity in ALL {
        assert!(!quantity.help.is_empty(), "{}", quantity.path);
        let group = quantity.path.replace("KIND", "rtt");
        let of_group = examples(ALL.iter(), &group);
        assert!(!of_group.is_empty(), "{}", quantity.path);
        for path in of_group {
            assert!(find(&path).is_some(), "{path}");
        }
    }
    let offered = examples(ALL.iter(), "nothing");
    assert!(offered.starts_with(&["latency.p50_ns".to_owned(), "first.p50_ns".to_owned()]), "{offered:?}");
    assert!(offered.iter().all(|path| find(path).is_some()) && offered.contains(&"cpu.0.user_ns".to_owned()));
}

#[test]
fn a_path_leads_to_the_number_of_its_row() {
    let point = point(&json!({
        "axes": { "peers": 2 }, "latency": latency("fan"), "counters": { "rnr_waits": 5 },
        "throughput": { "bytes_per_s": 300.0, "messages_per_s": 3.0, "direction": "uni" },
        "ends": [{ "rank": 4, "latency": latency("rtt"), "cpu": {
            "wall_ns": 1, "user_ns": 2, "system_ns": 3, "voluntary_switches": 4, "involuntary_switches": 5,
        } }],
    }));
    let number = |path: &str| find(path).and_then(|found| found.number(&point));
    for (path, expected) in [
        ("latency.p50_ns", 30.0),
        ("fan.mean_ns", 31.5),
        ("latency.spread_ns", 42.0),
        ("latency.share_above.40", 0.25),
        ("latency.mavericks.count", 3.0),
        ("ends.0.latency.max_ns", 70.0),
        ("cpu.4.system_ns", 3.0),
        ("counters.rnr_waits", 5.0),
        ("throughput.bytes_per_s", 300.0),
        ("wall_ns", 7.0),
    ] {
        assert_eq!(number(path), Some(expected), "{path}");
    }
    let absent =
        ["rtt.p50_ns", "ends.1.latency.p50_ns", "cpu.0.wall_ns", "latency.stddev_ns", "counters.other"];
    assert!(absent.iter().all(|path| number(path).is_none() && find(path).is_some()));
    let unknown = ["latency", "latency.kind", "latency.share_above", "counters", "cpu.x.wall_ns", ""];
    assert!(unknown.iter().all(|path| find(path).is_none()));
}

#[test]
fn a_number_has_the_interval_of_its_row() {
    let round = point(&json!({
        "latency": latency("fan"), "throughput": { "bytes_per_s": 300.0, "messages_per_s": 3.0, "direction": "uni" },
    }));
    let measured = |path: &str| find(path).unwrap().measured(&round).unwrap();
    let median = measured("latency.p50_ns");
    assert_eq!((median.estimate.low, median.estimate.high, median.samples), (28.0, 32.0, Some(100)));
    // The longer the round may have been, the lower the throughput may have been.
    let rate = measured("throughput.bytes_per_s");
    assert_eq!((rate.estimate.low, rate.estimate.value), (300.0 * 30.0 / 32.0, 300.0));
    assert!(rate.has_interval && measured("latency.share_above.40").has_interval);
    assert!(!measured("latency.max_ns").has_interval && measured("latency.count").has_interval);
}

#[test]
fn a_path_says_what_it_measures() {
    for (path, unit) in [
        ("latency.p50_ns", Dimension::Time),
        ("cost.ns", Dimension::Time),
        ("latency.share_above.10", Dimension::Share),
        ("throughput_total.bytes_per_s", Dimension::Bandwidth),
        ("ends.1.throughput.messages_per_s", Dimension::MessageRate),
        ("latency.count", Dimension::Number),
        ("counters.slept_ns", Dimension::Time),
    ] {
        assert_eq!(find(path).unwrap().unit(), unit, "{path}");
    }
    assert_eq!(
        find("first.share_above.10000").unwrap().help(),
        "messages above 10.00 us of the first messages"
    );
}
