//! Runs that are near, far, and far for a while.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::record::Environment;

const SENTENCE: &str = "core-to-core latency was 188 ns, 6.7 times the best seen on this host (28 ns): a CPU was placed \
                        far away or ran slowly";

fn calibration(before_ns: f64, after_ns: f64, best_ns: Option<f64>) -> Calibration {
    Calibration { before_ns, after_ns, best_ns }
}

/// A point with a calibration and nothing else.
fn point(id: u64, ns: f64, best_ns: Option<f64>) -> Point {
    let calibration = calibration(ns, ns, best_ns);
    let text = json!({
        "id": id, "experiment": "e", "pattern": "ping-pong", "axes": {}, "status": "measured", "repetition": 0,
        "calibration": calibration, "wall_ns": 1,
    });
    serde_json::from_value(text).unwrap()
}

fn placed(points: &[Point]) -> Vec<Placed> {
    points.iter().filter_map(Placed::of).collect()
}

#[test]
fn a_latency_above_three_times_the_best_is_far() {
    // The medians of two runs of the same plan in a row on one host.
    assert_eq!(Far::of(188.4, 28.3).unwrap().to_string(), SENTENCE);
    assert_eq!(Far::of(28.3, 188.4), None);
    assert_eq!(Far::of(28.3, 28.3), None);
    assert_eq!(Far::of(35.0, 26.0), None, "one regime");
    assert_eq!(Far::of(35.0, 14.0), None, "two cores beside two threads of one core");
    assert_eq!(Far::of(300.0, 100.0), None);
    assert!(Far::of(300.1, 100.0).is_some());
    for (ns, best_ns) in
        [(f64::NAN, 28.0), (f64::INFINITY, 28.0), (28.0, f64::NAN), (28.0, 0.0), (28.0, -1.0)]
    {
        assert_eq!(Far::of(ns, best_ns), None, "{ns} {best_ns}");
    }
    assert!(
        Far::of(20.0, 1.5).unwrap().to_string().contains("13.3 times the best seen on this host (1.5 ns)")
    );
}

#[test]
fn the_larger_time_of_a_point_counts_and_only_where_it_was_compared() {
    assert!(far(&calibration(28.0, 188.0, Some(28.0))).is_some());
    assert!(far(&calibration(188.0, 28.0, Some(28.0))).is_some());
    assert_eq!(far(&calibration(28.0, 30.0, Some(27.0))), None);
    assert_eq!(far(&calibration(28.0, 188.0, None)), None);
}

#[test]
fn points_that_ended_before_a_better_time_was_seen_are_marked() {
    let mut points = [point(0, 188.4, Some(188.4)), point(1, 187.0, Some(187.0)), point(2, 28.3, Some(28.3))];
    points[1].unstable = Some("it shifted".to_owned());
    mark(&mut points);
    assert_eq!(points[0].unstable.as_deref(), Some(SENTENCE));
    let second = points[1].unstable.as_deref().unwrap();
    assert!(second.starts_with("it shifted; core-to-core latency was 187 ns, 6.6 times"), "{second}");
    assert_eq!(points[2].unstable, None);
    let verdict = Verdict::of(&placed(&points)).unwrap();
    assert_eq!((verdict.compared, verdict.far, verdict.late), (3, 2, 2));
}

#[test]
fn points_that_say_it_themselves_are_not_marked_twice() {
    let mut points = [point(0, 188.4, Some(28.3)), point(1, 28.3, Some(28.3))];
    points[0].unstable = Some("as the program said it".to_owned());
    let before = points.clone();
    mark(&mut points);
    assert_eq!(points, before);
    let verdict = Verdict::of(&placed(&points)).unwrap();
    assert_eq!((verdict.compared, verdict.far, verdict.late), (2, 1, 0));
    assert_eq!(verdict.headline(), None, "half of them are not all");
}

#[test]
fn records_of_programs_that_compared_nothing_stay_as_they_are() {
    let mut points = [point(0, 188.4, None), point(1, 28.3, None)];
    let before = points.clone();
    mark(&mut points);
    assert_eq!(points, before);
    assert_eq!(Verdict::of(&placed(&points)), None);
    let line = serde_json::to_string(&before[0].calibration).unwrap();
    assert_eq!(line, r#"{"before_ns":188.4,"after_ns":188.4}"#);
}

#[test]
fn a_run_is_far_as_a_whole_where_most_of_it_is() {
    let far: Vec<Point> = (0..40).map(|id| point(id, 188.4, Some(28.3))).collect();
    let near = [point(40, 30.0, Some(28.3))];
    let all = [&far[..], &near[..]].concat();
    let headline = Verdict::of(&placed(&all)).unwrap().headline().unwrap();
    assert_eq!(
        headline,
        "The whole run is unstable: a CPU was placed far away or ran slowly. In 40 of 41 points the core-to-core latency was \
         far above the best seen on this host: at the median 188 ns against 28 ns, 6.7 times as much"
    );
    assert_eq!(Verdict::of(&placed(&near)), None);
    assert_eq!(Verdict::of(&[]), None);
    let one = Verdict::of(&placed(&far[..1])).unwrap().headline().unwrap();
    assert!(one.contains("In 1 of 1 point the"), "{one}");
}

#[test]
fn points_of_another_environment_are_no_measure() {
    let mut points = [point(0, 60.0, Some(60.0)), point(1, 28.3, Some(28.3)), point(2, 62.0, Some(60.0))];
    points[1].axes.insert("environment".to_owned(), Value::from("optimised"));
    let before = points.clone();
    mark(&mut points);
    assert_eq!(points, before);
    assert_eq!(Verdict::of(&placed(&points)), None);
}

/// A rank on a CPU of a host with these facts, as `group.name`.
fn rank(host: &str, cpus: &[u32], facts: &[(&str, &str)]) -> Environment {
    let mut groups = BTreeMap::<String, BTreeMap<String, String>>::new();
    for (name, value) in facts {
        let (group, name) = name.split_once('.').unwrap();
        groups.entry(group.to_owned()).or_default().insert(name.to_owned(), (*value).to_owned());
    }
    Environment {
        hostname: host.to_owned(),
        pinned_cpus: Some(cpus.to_vec()),
        facts: groups,
        ..Default::default()
    }
}

#[test]
fn a_pair_is_told_by_what_both_cpus_share() {
    let facts = [
        ("cpu.model", "Xeon"),
        ("pinned_cpu.core", "0,16"),
        ("pinned_cpu.cache", "0-7,16-23"),
        ("pinned_cpu.package", "0-31"),
        ("numa.node0.cpus", "0-15"),
        ("numa.node1.cpus", "16-31"),
        ("numa.nodes", "2"),
    ];
    let pair = |other: u32| Pair::of(&[rank("a", &[0], &facts), rank("a", &[other], &facts)]).unwrap();
    assert_eq!((pair(16).within, pair(16).cpus), ("core, cache, package".to_owned(), Some([0, 16])));
    assert_eq!(pair(7).within, "cache, package, node");
    assert_eq!(pair(8).within, "package, node");
    assert_eq!(pair(40).within, "");
    let swapped = Pair::of(&[rank("a", &[7], &facts), rank("a", &[0], &facts)]).unwrap();
    assert_eq!(swapped.cpus, Some([0, 7]));
    assert_eq!((&pair(7).host[..], &pair(7).model[..]), ("a", "Xeon"));
}

#[test]
fn numbers_of_cpus_tell_nothing_in_a_virtual_machine() {
    let facts = [("cpu.hypervisor", "KVM")];
    let pair = |cpus: [u32; 2]| Pair::of(&cpus.map(|cpu| rank("a", &[cpu], &facts)));
    assert_eq!(pair([0, 1]), pair([2, 3]));
    assert_eq!(pair([0, 1]).unwrap().cpus, None);
    assert_eq!(pair([0, 1]).unwrap().model, "unknown");
}

#[test]
fn ranks_of_several_hosts_or_of_one_cpu_are_no_pair() {
    let here = |cpus: &[u32]| rank("a", cpus, &[]);
    assert_eq!(Pair::of(&[here(&[0])]), None);
    assert_eq!(Pair::of(&[here(&[0]), here(&[0])]), None);
    assert_eq!(Pair::of(&[here(&[0]), here(&[0, 1])]), None);
    assert_eq!(Pair::of(&[here(&[0]), rank("b", &[1], &[])]), None);
    let unpinned = Environment { pinned_cpus: None, ..here(&[]) };
    assert_eq!(Pair::of(&[here(&[0]), unpinned]), None);
    assert!(Pair::of(&[here(&[0]), here(&[1]), here(&[2])]).is_some(), "the first two");
}
