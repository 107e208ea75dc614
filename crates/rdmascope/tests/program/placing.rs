//! What a run reports about a placement that is worse than the best that this host has had.

use std::fs;
use std::path::PathBuf;

use measure::record::Point;

use crate::support::{SMALL, Scratch, all_measured, finish, skip};

const HEADLINE: &str = "The whole run is unstable: ";

/// Returns the cache file of the scratch user.
fn kept(scratch: &Scratch) -> PathBuf {
    scratch.at("cache/rdmascope/core-to-core.json")
}

fn compared(points: &[Point]) -> Vec<(f64, f64, f64)> {
    let calibrations = points.iter().filter_map(|point| point.calibration.as_ref());
    calibrations.map(|c| (c.before_ns, c.after_ns, c.best_ns.expect("it was compared"))).collect()
}

/// Replaces every best latency in the file.
fn remember(scratch: &Scratch, best_ns: f64) {
    let text = fs::read_to_string(kept(scratch)).unwrap();
    let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
    for best in file["best"].as_array_mut().unwrap() {
        best["best_ns"] = best_ns.into();
    }
    scratch.write("cache/rdmascope/core-to-core.json", file.to_string());
}

/// No machine has such CPUs, so that any placement of this machine is far from the remembered best.
#[test]
fn a_run_that_is_far_from_the_best_as_a_whole_says_so_first() {
    let scratch = Scratch::alone();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "first"]);
    let points = scratch.record("first").1;
    if compared(&points).is_empty() {
        return skip("two CPUs", "the ranks share CPUs, or were preempted");
    }
    for (before_ns, after_ns, best_ns) in compared(&points) {
        assert!(best_ns <= before_ns.min(after_ns), "{best_ns} of {before_ns} and {after_ns}");
    }

    remember(&scratch, 1.0);
    let stdout = scratch.succeed(&["run", "plan.toml", "--out", "far"]);
    let (before, after) = stdout.split_once("#bytes").unwrap();
    let warning = before.lines().find(|line| line.contains("times the best seen on this host (1.0 ns)"));
    let warning = warning.expect("it is said before anything is measured");
    assert!(warning.starts_with("# warning: core-to-core latency was "), "{warning}");
    assert!(
        warning.ends_with(&format!("remove {} if the host itself has changed", kept(&scratch).display()))
    );
    assert_eq!(before.matches("# warning: core-to-core").count(), 1, "{before}");
    assert!(after.contains(HEADLINE), "{after}");
    let points = scratch.record("far").1;
    assert!(all_measured(&points), "the run goes on: {points:?}");
    for point in points.iter().filter(|point| point.calibration.is_some()) {
        assert_eq!(point.calibration.as_ref().unwrap().best_ns, Some(1.0));
        let reason = point.unstable.as_deref().unwrap_or_default();
        assert!(
            reason.contains("times the best seen on this host (1.0 ns): a CPU was placed far"),
            "{reason}"
        );
    }

    // As on another host, which knows nothing of this one.
    fs::remove_file(kept(&scratch)).unwrap();
    let text = scratch.succeed(&["report", "far", "--text"]);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with(&format!("! {HEADLINE}")), "{first}");
    scratch.succeed(&["report", "far", "-o", "far.html"]);
    let html = fs::read_to_string(scratch.at("far.html")).unwrap();
    let head = html.split("<header>").nth(1).unwrap();
    assert!(head.starts_with(&format!("<p class=\"warnings\" role=\"note\">{HEADLINE}")), "{head:.300}");
    assert_eq!(html, fs::read_to_string(scratch.at("far/report.html")).unwrap());
}

/// A remembered latency that every placement beats marks no point, and is replaced. The placement
/// may change during the run, so a point may be marked for its own best latency.
#[test]
fn a_run_that_is_better_than_the_best_is_remembered() {
    let scratch = Scratch::alone();
    scratch.succeed(&["lat", "send", "--local", "-n", "100", "--out", "first"]);
    if compared(&scratch.record("first").1).is_empty() {
        return skip("two CPUs", "the ranks share CPUs, or were preempted");
    }
    remember(&scratch, 1e9);
    let stdout = scratch.succeed(&["lat", "send", "--local", "-n", "100", "--out", "second"]);
    assert!(!stdout.contains("best seen on this host (1000000000"), "{stdout}");
    let text = fs::read_to_string(kept(&scratch)).unwrap();
    assert!(!text.contains("1000000000"), "{text}");
}

#[test]
fn ranks_that_share_a_cpu_are_compared_with_nothing() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "100", "--out", "record"]);
    assert_eq!(scratch.record("record").1[0].calibration, None);
    assert!(!kept(&scratch).exists());
}

/// Measuring needs no cache directory, and reports nothing if there is none.
#[test]
fn without_a_cache_directory_runs_are_as_they_were() {
    let scratch = Scratch::alone();
    let home = scratch.write("file", "");
    for (cache_home, home) in
        [(None, None), (Some("/dev/null"), None), (Some("/proc"), None), (None, home.to_str())]
    {
        let mut program = scratch.program(["lat", "send", "--local", "-n", "100"]);
        for (name, value) in [("XDG_CACHE_HOME", cache_home), ("HOME", home)] {
            match value {
                Some(value) => program.env(name, value),
                None => program.env_remove(name),
            };
        }
        let ended = finish(program);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{cache_home:?} {home:?}");
    }
}
