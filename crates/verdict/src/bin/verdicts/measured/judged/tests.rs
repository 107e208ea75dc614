//! Right and wrong verdicts, and what is not promised.

use measure::record::{Fleet, Run};
use measure::store::RunWriter;
use serde_json::{Value, json};

use super::*;

/// The hosts 5 and 2, of leaf switches with two hosts each.
const PLACES: ([usize; 2], usize) = ([5, 2], 2);

fn culprit(kind: Kind, ways: [bool; 2]) -> Culprit {
    Culprit { quantity: "throughput", kind, ways, deficit: 0.2 }
}

/// Evidence that is named or not.
fn evidence(is_named: bool) -> Value {
    json!({
        "screened": -0.2, "visits": [-0.2, -0.2, -0.2], "confirmed": -0.2, "bound": -0.05,
        "is_named": is_named, "peers": 7, "partners": 6,
    })
}

/// A verdict that names these, with what a run prints of a host and a pair.
fn verdict(culprits: &[(usize, Value, [bool; 2])], printed: Option<[f64; 2]>) -> Value {
    let culprit = |(quantity, place, ways): &(usize, Value, [bool; 2])| {
        json!({
            "quantity": quantity, "place": place, "against": "others",
            "send": evidence(ways[0]), "receive": evidence(ways[1]),
        })
    };
    let thresholds = printed.map(|[host, pair]: [f64; 2]| {
        let log = |deficit: f64| -(-deficit).ln_1p();
        json!({ "host": log(host), "pair": log(pair), "cell_scale": 0.01, "host_scale": 0.01, "cells": 7 })
    });
    let judged = |name: &str, directed| {
        json!({
            "name": name, "directed": directed, "cells": [], "effects": null, "thresholds": thresholds,
        })
    };
    json!({
        "verdict": if culprits.is_empty() { "healthy" } else { "culprits" },
        "culprits": culprits.iter().map(culprit).collect::<Vec<Value>>(),
        "congestion": [], "cleared": [], "undecided": [],
        "quantities": [judged("latency", false), judged("throughput", true)],
        "measurements": {
            "passes": 3, "rounds": 21, "is_cut": false, "screening": 84, "again": 0, "confirmation": 0,
            "under_load": 0, "missing": 0,
        },
    })
}

/// The answer to a verdict of a fleet with this culprit, if a run prints 8 % and 9 %.
fn answer(culprit: Option<Culprit>, culprits: &[(usize, Value, [bool; 2])], status: i32) -> Answer {
    let examined = Examined::deserialize(verdict(culprits, Some([0.08, 0.09]))).unwrap();
    judge(culprit.as_ref(), PLACES, &examined, Some(status))
}

fn is_wrong(answer: &Answer) -> bool {
    matches!(answer, Answer::Wrong(_))
}

#[test]
fn the_culprit_alone_is_right() {
    let host = json!({ "host": 5 });
    let pair = json!({ "pair": { "a": 2, "b": 5 } });
    let group = json!({ "group": { "grouping": 0, "group": 2 } });
    for (kind, ways, place, named) in [
        (Kind::Host, [true, false], &host, [true, false]),
        (Kind::Host, [true, true], &host, [true, true]),
        // From 5 to 2 is the way back of the pair 2 and 5.
        (Kind::Pair, [true, false], &pair, [false, true]),
        (Kind::Pair, [true, true], &pair, [true, true]),
        (Kind::Group, [false, true], &group, [false, true]),
    ] {
        let culprit = Some(culprit(kind, ways));
        assert_eq!(answer(culprit, &[(1, place.clone(), named)], 3), Answer::Right, "{culprit:?}");
        let turned = [!named[0], named[1]];
        assert!(is_wrong(&answer(culprit, &[(1, place.clone(), turned)], 3)), "{culprit:?}");
        assert!(is_wrong(&answer(culprit, &[(0, place.clone(), named)], 3)), "the other quantity");
    }
    assert_eq!(answer(None, &[], 0), Answer::Right);
}

#[test]
fn another_place_no_place_and_another_exit_status_are_wrong() {
    let slow = Some(culprit(Kind::Host, [true, false]));
    let is = || (1, json!({ "host": 5 }), [true, false]);
    let other = || (1, json!({ "host": 4 }), [true, false]);
    for (culprit, found, status) in [
        (slow, vec![], 0),
        (slow, vec![other()], 3),
        (slow, vec![is(), other()], 3),
        (slow, vec![(1, json!({ "pair": { "a": 2, "b": 5 } }), [true, false])], 3),
        (slow, vec![is()], 0),
        (None, vec![is()], 3),
        (None, vec![], 1),
    ] {
        assert!(is_wrong(&answer(culprit, &found, status)), "{culprit:?}: {found:?}, {status}");
    }
}

#[test]
fn a_deficit_below_twice_what_is_printed_is_not_promised() {
    let answer = |culprit: &Culprit, printed| {
        let examined = Examined::deserialize(verdict(&[], printed)).unwrap();
        judge(Some(culprit), PLACES, &examined, Some(0))
    };
    let host = culprit(Kind::Host, [true, false]);
    let pair = culprit(Kind::Pair, [true, false]);
    assert!(is_wrong(&answer(&host, Some([0.099, 0.3]))));
    assert_eq!(answer(&host, Some([0.101, 0.05])), Answer::NotPromised);
    assert!(is_wrong(&answer(&pair, Some([0.3, 0.099]))));
    assert_eq!(answer(&pair, Some([0.05, 0.101])), Answer::NotPromised);
    assert_eq!(answer(&host, None), Answer::NotPromised);
}

#[test]
fn a_healthy_fleet_is_promised_nothing_only_if_noise_hides_all() {
    let answer = |reason: Value, culprits: &[(usize, Value, [bool; 2])]| {
        let mut verdict = verdict(culprits, None);
        verdict["undecided"] = json!([{ "quantity": 1, "place": null, "reason": reason }]);
        judge(None, PLACES, &Examined::deserialize(verdict).unwrap(), Some(1))
    };
    assert_eq!(answer(json!("too_noisy"), &[]), Answer::NotPromised);
    assert!(is_wrong(&answer(json!("not_confirmable"), &[])));
    assert!(is_wrong(&answer(json!("too_noisy"), &[(0, json!({ "host": 1 }), [true, false])])));
}

#[test]
fn a_verdict_is_read_from_a_record_and_a_record_without_one_says_so() {
    let directory = std::env::temp_dir().join(format!("verdicts-{}", std::process::id()));
    let of = |examined: Option<Value>| -> Run {
        let fleet = Fleet { examined, ..Fleet::default() };
        serde_json::from_value(json!({
            "schema_version": measure::record::SCHEMA_VERSION, "program": { "name": "rdmascope", "version": "1" },
            "command": [], "started": "", "title": "", "plan": null, "points_planned": 0, "fleet": fleet,
        }))
        .unwrap()
    };
    let writer = RunWriter::create(&directory, &of(None)).unwrap();
    assert_eq!(examined(&directory).unwrap_err(), "the examination has not ended");
    let named = verdict(&[(1, json!({ "host": 5 }), [true, false])], Some([0.08, 0.09]));
    writer.finish(&of(Some(named.clone()))).unwrap();
    let found = examined(&directory);
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(found.unwrap(), Examined::deserialize(named).unwrap());
    assert!(examined(&directory).unwrap_err().contains("verdicts-"), "the record that is missing");
}
