//! Processes that die at any moment: finished points stay readable, nothing is left behind, the
//! next run works.
//!
//! A moment is a number of finished points and a pseudo-random time after them, so that the moments
//! are spread over a run on a busy machine, too.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::panic::AssertUnwindSafe;
use std::process::Child;
use std::time::{Duration, Instant};

use measure::record::{Point, Status};
use rustix::process::Signal;

use crate::support::moments::Moments;
use crate::support::processes::{agents, signal};
use crate::support::{DEADLINE, SMALL, Scratch, all_measured, collect, wait};

const RUN: [&str; 4] = ["run", "plan.toml", "--out", "record"];
/// Points of [`PLAN`].
const POINTS: usize = 25;
/// Many points of few messages: on a busy machine, two ranks that poll run at the same time only
/// now and then. The time limit matters only to a rank that waits for a dead one.
const PLAN: &str = r#"
name = "many"
title = "Many points"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 1000
timeout = "30s"
[experiment.axes]
service = ["RC", "UC", "UD"]
size_bytes = "2..32"
[[experiment]]
name = "throughput"
pattern = "stream"
iterations = 5000
timeout = "30s"
[experiment.axes]
service = ["RC"]
direction = ["uni", "bi"]
size_bytes = "2..32"
"#;
/// Largest pseudo-random time: about a point's length on an idle machine.
const JITTER: Duration = Duration::from_millis(20);

/// Returns the files of memory that processes share.
fn shared_memory() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    // Browsers of other tests start and end.
    names.filter(|name| !name.contains("chromium")).collect()
}

/// Asserts that every line of the record is a correct point, in order, except for a torn last line.
/// Returns the points.
fn finished_points(scratch: &Scratch) -> Vec<Point> {
    let Ok(text) = fs::read_to_string(scratch.at("record/points.jsonl")) else { return Vec::new() };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let points: Vec<Point> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(points.iter().zip(0..).all(|(point, id)| point.id == id));
    points
}

/// Waits until so many points are finished, or the run has ended.
#[track_caller]
fn await_points(scratch: &Scratch, child: &mut Child, count: usize) {
    let start = Instant::now();
    while finished_points(scratch).len() < count && child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < DEADLINE, "{count} points were not finished within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How often an agent is stopped until it is at work then: one time in six it is between two
/// points.
const TRIES: usize = 8;

/// Returns the messages of a run, without that of a calibration that failed on a busy machine.
fn said(stderr: &str) -> String {
    let is_said = |line: &&str| !line.contains("the core-to-core latency was not measured this time");
    stderr.split_inclusive('\n').filter(is_said).collect()
}

/// Asserts what holds after the death of any process: the reader can read the points, a report can
/// be made, a new run works.
fn assert_clean(scratch: &Scratch, before: &BTreeSet<String>) {
    scratch.assert_nothing_left();
    let new: Vec<String> = shared_memory().difference(before).cloned().collect();
    assert!(
        !new.iter().any(|name| name.contains("rdma") || name.contains("softdev")),
        "left in /dev/shm: {new:?}"
    );
    let points = finished_points(scratch);
    if scratch.at("record/run.json").exists() {
        let (run, known) = scratch.record("record");
        assert_eq!(known, points);
        let ended = scratch.run(&["report", "record", "-o", "again.html"]);
        let is_told = ended.stderr.contains(": the run ended early");
        let whole = points.iter().filter(|point| !point.cut).count();
        let is_whole = whole as u64 == run.points_planned;
        assert_eq!((ended.status, is_told), (Some(0), !is_whole), "{ended:?}");
        for end in points.iter().flat_map(|point| &point.ends) {
            let samples =
                end.samples.as_ref().map(|path| fs::metadata(scratch.at("record").join(path)).unwrap());
            let count = end.latency.as_ref().map(|latency| latency.count * 8);
            assert!(samples.is_none_or(|file| Some(file.len()) == count), "samples are whole");
        }
    } else {
        assert!(points.is_empty());
    }
}

fn assert_next_run_works(scratch: &Scratch) {
    scratch.write("small.toml", SMALL);
    scratch.succeed(&["run", "small.toml", "--out", "next"]);
    assert!(all_measured(&scratch.record("next").1));
}

#[test]
fn a_killed_coordinator_leaves_its_finished_points_and_nothing_else() {
    let mut moments = Moments(0x9E37_79B9_7F4A_7C15);
    let before = shared_memory();
    let mut counts = BTreeSet::new();
    for round in 0..14 {
        let scratch = Scratch::on_one_cpu();
        scratch.write("plan.toml", PLAN);
        let mut child = scratch.program(RUN).spawn().unwrap();
        // The first kills hit the start, which takes some tens of milliseconds.
        if round < 5 {
            std::thread::sleep(moments.next(Duration::from_millis(80)));
        } else {
            await_points(&scratch, &mut child, 2 * (round - 5));
            std::thread::sleep(moments.next(JITTER));
        }
        child.kill().unwrap();
        wait(&mut child);
        assert_clean(&scratch, &before);
        counts.insert(finished_points(&scratch).len());
        if round % 5 == 0 {
            assert_next_run_works(&scratch);
        }
    }
    assert!(counts.len() > 3, "the moments are spread over the run: {counts:?}");
}

#[test]
fn a_killed_agent_costs_its_point_only() {
    let mut moments = Moments(0x0123_4567_89AB_CDEF);
    let before = shared_memory();
    let mut hits = 0;
    for round in 0..8 {
        let scratch = Scratch::on_one_cpu();
        scratch.write("plan.toml", PLAN);
        let mut child = scratch.program(RUN).spawn().unwrap();
        let started = Instant::now();
        while agents(&scratch.token()).len() < 2 && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        await_points(&scratch, &mut child, 2 * round);
        std::thread::sleep(moments.next(JITTER));
        let victims = agents(&scratch.token());
        let victim = victims.get(round % 2).map(|agent| agent.pid);
        victim.into_iter().for_each(|pid| signal(pid, Signal::KILL));
        let ended = collect(child);
        assert_clean(&scratch, &before);
        let points = finished_points(&scratch);
        assert_eq!(points.len(), POINTS, "the run went on: {ended:?}");
        let failed: Vec<_> = points.iter().filter(|p| !matches!(p.status, Status::Measured)).collect();
        assert!(failed.len() <= 1, "{failed:?}");
        for point in &failed {
            let Status::Failed { error } = &point.status else { panic!("{point:?}") };
            assert!(error.contains("was killed by signal 9"), "{error}");
            assert!(ended.stderr.contains(&format!("1 of {POINTS} points failed")), "{ended:?}");
        }
        assert_eq!(ended.status, Some(if failed.is_empty() { 0 } else { 4 }), "{ended:?}");
        hits += failed.len();
    }
    assert!(hits > 0, "no agent was killed at work");
}

/// Between points, a stopped agent costs no point.
#[test]
fn an_agent_that_stops_answering_costs_its_point_only() {
    for _ in 0..TRIES {
        let scratch = Scratch::waiting();
        // The time that the coordinator waits for a stopped agent.
        scratch.write("plan.toml", PLAN.replace("30s", "8s"));
        let before = shared_memory();
        let mut child = scratch.program(RUN).spawn().unwrap();
        await_points(&scratch, &mut child, 3);
        let Some(agent) = agents(&scratch.token()).pop() else { panic!("no agent") };
        signal(agent.pid, Signal::STOP);
        let ended = collect(child);
        let points = finished_points(&scratch);
        let failed: Vec<_> = points.iter().filter(|p| !matches!(p.status, Status::Measured)).collect();
        assert!(points.len() == POINTS && failed.len() <= 1, "{failed:?}");
        assert_eq!(ended.status, Some(if failed.is_empty() { 0 } else { 4 }), "{ended:?}");
        assert_clean(&scratch, &before);
        if failed.len() == 1 {
            return;
        }
        assert!(ended.stderr.contains(" gave no answer within "), "{ended:?}");
    }
    panic!("no agent was stopped at work");
}

#[test]
fn a_signal_ends_the_run_with_a_whole_record_and_a_report() {
    let mut moments = Moments(0xDEAD_BEEF_0BAD_CAFE);
    let before = shared_memory();
    for (round, kind) in [Signal::INT, Signal::TERM].into_iter().cycle().take(6).enumerate() {
        let scratch = Scratch::on_one_cpu();
        scratch.write("plan.toml", PLAN);
        let mut child = scratch.program(RUN).spawn().unwrap();
        let pid = child.id().cast_signed();
        await_points(&scratch, &mut child, round + 1);
        std::thread::sleep(moments.next(JITTER));
        signal(pid, kind);
        let ended = collect(child);
        let (name, status) = if kind == Signal::INT { ("SIGINT", 130) } else { ("SIGTERM", 143) };
        assert_eq!(ended.status, Some(status), "{ended:?}");
        let told = said(&ended.stderr);
        let wanted = format!(
            " of {POINTS} points are missing: `rdmascope run --resume record` measures them, and anew \
             those that were cut\nrdmascope: stopped by {name}: the \
             points that had ended are kept\n"
        );
        assert!(told.ends_with(&wanted) && told.lines().count() == 2, "{told}");
        assert_eq!(ended.stdout.lines().last(), Some("record/report.html"));
        let (run, points) = scratch.record("record");
        assert!(run.ended.is_some() && points.len() < POINTS);
        // The signal may have ended the last point in its warm-up.
        let whole = points.iter().filter(|point| !point.cut).cloned().collect::<Vec<Point>>();
        assert!(all_measured(&whole) && whole.len() + 1 >= points.len(), "{points:?}");
        assert!(fs::metadata(scratch.at("record/report.html")).unwrap().len() > 10_000);
        assert_clean(&scratch, &before);
    }
}

#[test]
fn a_signal_before_the_first_point_leaves_no_directory() {
    let scratch = Scratch::on_one_cpu();
    let via = "sh -c \"sleep 60\"";
    let mut command = scratch.program(["run", "quick", "--out", "record", "--via", via]);
    let child = command.spawn().unwrap();
    while crate::support::processes::with_token(&scratch.token()).len() < 3 {
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(child.id().cast_signed(), Signal::INT);
    let ended = collect(child);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
    assert!(!scratch.at("record").exists(), "a run without a point keeps nothing");
    command = scratch.program(["lat", "send", "--local", "-n", "20", "--out", "record"]);
    assert_eq!(crate::support::finish(command).status, Some(0), "the name is free");
    scratch.assert_nothing_left();
}

#[test]
fn a_test_that_fails_leaves_no_process() {
    let mut started = None;
    let failing = AssertUnwindSafe(|| {
        let scratch = Scratch::new();
        started = scratch.command("sleep").arg("100").spawn().ok();
        panic!("as a test does that fails");
    });
    assert!(std::panic::catch_unwind(failing).is_err());
    assert_eq!(started.unwrap().wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
}
