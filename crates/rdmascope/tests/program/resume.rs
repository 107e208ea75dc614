//! A run that is stopped keeps what its running point has measured, and a run that ended early is
//! resumed.

use std::fs::{self, OpenOptions};
use std::process::Child;
use std::time::Duration;

use measure::record::Status;
use rustix::process::Signal;

use crate::support::processes::signal;
use crate::support::{Ended, Scratch, collect, finish};

/// Two short points, one of some seconds, and one more.
const PLAN: &str = r#"
name = "stopped"
title = "Stopped"
[[experiment]]
name = "short"
pattern = "ping-pong"
iterations = 100
axes = { size_bytes = [2, 4] }
[[experiment]]
name = "long"
pattern = "ping-pong"
duration = "3s"
[[experiment]]
name = "last"
pattern = "stream"
iterations = 100
"#;

fn lines(scratch: &Scratch) -> usize {
    fs::read_to_string(scratch.at("record/points.jsonl")).unwrap_or_default().lines().count()
}

/// Starts a command line, and waits until its record has so many points and another is running.
fn until(scratch: &Scratch, words: &[&str], points: usize) -> Child {
    let mut child = scratch.program(words).spawn().unwrap();
    while lines(scratch) < points {
        assert!(child.try_wait().unwrap().is_none(), "it ends after {} points", lines(scratch));
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    child
}

fn stop(scratch: &Scratch, words: &[&str], points: usize) -> Ended {
    let child = until(scratch, words, points);
    signal(child.id().cast_signed(), Signal::INT);
    collect(child)
}

/// Asserts that a record has all points of the plan, each once and whole.
fn assert_whole(scratch: &Scratch) {
    let (run, points) = scratch.record("record");
    assert_eq!(points.iter().map(|point| point.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(points.iter().all(|point| point.status == Status::Measured && !point.cut), "{points:?}");
    assert!(points[2].wall_ns >= 3_000_000_000, "measured for its whole time: {}", points[2].wall_ns);
    assert!(run.ended.is_some() && run.points_planned == 4, "{run:?}");
    assert_eq!(run.environments.len(), 2);
}

#[test]
fn a_point_that_is_interrupted_keeps_its_messages_and_is_measured_again() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", PLAN);
    let ended = stop(&scratch, &["run", "plan.toml", "--out", "record"], 2);
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stderr.ends_with("rdmascope: stopped by SIGINT: the points that had ended are kept\n"));
    assert!(ended.stdout.contains("  cut\n") && ended.stdout.contains("\n cut: a signal ended"), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert_eq!((points.len(), run.points_planned), (3, 4));
    let cut = &points[2];
    let latency = cut.latency.as_ref().unwrap();
    assert!(cut.cut && latency.count > 10 && cut.wall_ns < 3_000_000_000, "{cut:?}");
    assert!(scratch.at("record/report.html").exists());

    let ended = scratch.run(&["run", "--resume", "record"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.starts_with("rdmascope: resuming `"), "{ended:?}");
    for name in [" short: ", " long: ", " last: "] {
        assert!(ended.stdout.contains(name), "all points of the record are shown: {ended:?}");
    }
    assert!(!ended.stdout.contains("  cut\n"), "{ended:?}");
    assert_whole(&scratch);

    let ended = scratch.run(&["run", "--resume", "record"]);
    let told = "\nrdmascope: the record in record has all points of its plan\n";
    assert!(ended.status == Some(0) && ended.stderr.ends_with(told), "{ended:?}");
    assert_whole(&scratch);
    scratch.assert_nothing_left();
}

#[test]
fn a_run_that_was_killed_is_resumed() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", PLAN);
    let mut child = until(&scratch, &["run", "plan.toml", "--out", "record"], 2);
    // As long as it runs, nobody else may write.
    scratch.refused(&["run", "--resume", "record"], 2, &["another program still writes the run in record"]);
    child.kill().unwrap();
    child.wait().unwrap();
    // As if the kill had torn the second point.
    let path = scratch.at("record/points.jsonl");
    let bytes = fs::metadata(&path).unwrap().len();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes - 20).unwrap();
    let ended = scratch.run(&["run", "--resume", "record"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.starts_with("rdmascope: resuming `"), "{ended:?}");
    assert_whole(&scratch);
    scratch.assert_nothing_left();
}

/// All planned points are there, but not as many repetitions as `within` asks for.
#[test]
fn a_run_that_lacks_only_repetitions_is_resumed() {
    let scratch = Scratch::on_one_cpu();
    // Throughputs are never equal, as medians of three repetitions can be.
    let plan = r#"
name = "repeated"
title = "Repeated"
[[experiment]]
name = "one"
pattern = "stream"
duration = "300ms"
within = "0.0001%"
repetitions_max = 8
"#;
    scratch.write("plan.toml", plan);
    let mut child = until(&scratch, &["run", "plan.toml", "--out", "record"], 4);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lines(&scratch) < 8, "it was killed too late");
    let ended = scratch.run(&["run", "--resume", "record"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert_eq!(points.iter().map(|point| point.id).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!((run.points_planned, run.ended.is_some()), (8, true));
    let ended = scratch.run(&["run", "--resume", "record"]);
    assert!(ended.stderr.contains("has all points of its plan"), "{ended:?}");
    scratch.assert_nothing_left();
}

#[test]
fn what_cannot_be_resumed_is_refused_with_the_reason() {
    let scratch = Scratch::on_one_cpu();
    let resume = ["run", "--resume", "record"];
    scratch.refused(&resume, 2, &["record", "there is no such directory"]);
    scratch.succeed(&["lat", "send", "--local", "-n", "10", "--out", "record"]);
    let words =
        ["cannot resume record: `rdmascope lat` recorded it", "only a run of `rdmascope run` can be resumed"];
    scratch.refused(&resume, 2, &words);
    let ended = scratch.run(&["run", "quick", "--resume", "record"]);
    assert!(ended.status == Some(2) && ended.stderr.contains("cannot be used with '--resume"), "{ended:?}");
    let ended = scratch.run(&["run", "--resume", "record", "--expect", "no_loss"]);
    assert!(ended.status == Some(2) && ended.stderr.contains("cannot be used with '--expect"), "{ended:?}");
    fs::remove_dir_all(scratch.at("record")).unwrap();

    scratch.write("plan.toml", PLAN);
    let ended = stop(&scratch, &["run", "plan.toml", "--out", "record"], 2);
    assert_eq!(ended.status, Some(130), "{ended:?}");
    let kept = || fs::read(scratch.at("record/points.jsonl")).unwrap();
    let before = kept();
    assert_eq!(lines(&scratch), 3, "the cut point is in the record");
    scratch.write("plan.toml", PLAN.replace("3s", "1s"));
    let words = [
        "cannot resume record: the plan plan.toml has changed since",
        "duration_s differs",
        "start a new run",
    ];
    scratch.refused(&resume, 2, &words);

    // Another host: the record says so.
    scratch.write("plan.toml", PLAN);
    let path = scratch.at("record/run.json");
    let mut run: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    run["environments"][1]["hostname"] = "elsewhere".into();
    scratch.write("record/run.json", run.to_string());
    let ended = scratch.run(&resume);
    let told = "rank 1: the host was elsewhere and is ";
    assert!(ended.status == Some(1) && ended.stderr.contains(told), "{ended:?}");
    // A plan with a key more.
    scratch.write("plan.toml", format!("mpi = \"mpirun -np {{ranks}}\"\n{PLAN}"));
    scratch.refused(&resume, 2, &["has changed since (mpi differs)"]);
    scratch.write("plan.toml", format!("{PLAN}\n[[expect]]\nquantity = \"no_loss\"\n"));
    scratch.refused(&resume, 2, &["has changed since (expect differs)"]);
    assert_eq!(kept(), before, "a run that is refused is not changed");
    scratch.assert_nothing_left();
}

/// timeout(1) sends its signal to the process and to its group: the second one is not another wish.
#[test]
fn a_signal_that_arrives_twice_at_once_is_one_and_cuts_the_point_of_each_pattern() {
    let scratch = Scratch::on_one_cpu();
    for words in [
        "lat send --local -D 30",
        "bw write --local -D 30",
        "open-loop send --rate 1000 -D 30",
        "one-way send --local --pause 1ms -n 30k --warmup 10",
        "one-way send --local -c UC --burst 7 --pause 1ms -n 30k --warmup 10",
        "pipeline tcp --local --rate 1000 -D 30 --warmup 10",
        "overhead --local -n 1M --step post_send --warmup 10",
        "bw send --local -n 1G --warmup 10",
        "bw write --local -n 1G --warmup 10",
        "pairs send --pairs 2 -n 1M --warmup 10",
        "pairs send --stream -n 1G --warmup 10",
    ] {
        let mut shell = scratch.shell(&format!("timeout -s INT 1 rdmascope {words}"));
        let folder = scratch.at("bin");
        if !folder.exists() {
            fs::create_dir(&folder).unwrap();
            std::os::unix::fs::symlink(*crate::support::PROGRAM, folder.join("rdmascope")).unwrap();
        }
        shell.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
        let ended = finish(shell);
        assert!(ended.status == Some(124) && ended.stderr.contains("stopped by SIGINT"), "{ended:?}");
        assert!(ended.stdout.contains("  cut\n"), "{ended:?}");
    }
    // The warm-up is a tenth of the messages: three seconds.
    let ended =
        finish(scratch.shell("timeout -s INT 1 bin/rdmascope one-way send --local --pause 1ms -n 30k"));
    assert!(ended.stdout.contains("a signal ended the point before it had measured anything"), "{ended:?}");
    scratch.assert_nothing_left();
}
