//! `rdmascope init`: the plan of a measuring command.

use measure::record::Status;

use crate::support::{Scratch, all_measured};

#[test]
fn the_plan_of_a_command_measures_what_the_command_does() {
    let scratch = Scratch::on_one_cpu();
    let text =
        scratch.succeed(&["init", "lat", "send", "-s", "4..64", "-n", "200", "-c", "RC,UC", "--key", "abc"]);
    for line in [
        "# The plan of `rdmascope lat send -s 4..64 -n 200 -c RC,UC --key ...`, written by `rdmascope init`.",
        "pattern = \"ping-pong\"",
        "iterations = 200",
        "service = [\"RC\", \"UC\"]",
        "size_bytes = [4, 8, 16, 32, 64]",
        "# mtu_bytes = \"active\"",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in {text}");
    }
    assert!(!text.contains("abc"), "a key is no part of a plan: {text}");
    let plan = scratch.write("my-plan.toml", text);
    scratch.run(&["run", &plan.to_string_lossy(), "--out", "record"]);
    let (_, points) = scratch.record("record");
    assert!(points.len() == 10 && all_measured(&points), "{points:?}");
    assert!(points.iter().all(|point| point.iterations == Some(200) && point.status == Status::Measured));
}

#[test]
fn the_plan_of_every_example_can_be_run() {
    let scratch = Scratch::new();
    for words in [
        "bw write -a -b",
        "one-way send",
        "fan-out send --peers 1..3",
        "pairs write",
        "open-loop send --rate 1k,2k",
        "overhead -s 64",
        "pipeline shmem",
        "lat tcp -s 1KiB",
        "osu_latency -m 8:64",
        "transfer",
    ] {
        let words: Vec<_> = words.split(' ').collect();
        let ended = scratch.run(&[&["init"][..], &words].concat());
        if words[0] == "transfer" {
            assert_eq!(ended.status, Some(2), "{ended:?}");
            continue;
        }
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{words:?}");
        let plan = scratch.write("plan.toml", ended.stdout);
        let ended = scratch.run(&["run", &plan.to_string_lossy(), "--dry-run"]);
        assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
    }
}

#[test]
fn what_measures_nothing_has_no_plan() {
    let scratch = Scratch::new();
    for words in [&["init", "doctor"][..], &["init", "plans", "quick"]] {
        let ended = scratch.run(words);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("measures nothing"), "{}", ended.stderr);
    }
    for (words, tip) in [
        (&["lat", "snd"][..], "send"),
        (&["latency"], "tip: use 'rdmascope lat'"),
        (&["lat", "send", "--iterations", "4"], "tip: use '--iters'"),
    ] {
        let ended = scratch.run(&[&["init"][..], words].concat());
        assert_eq!(ended.status, Some(2), "{words:?}");
        assert!(ended.stderr.contains(tip), "{words:?}: {}", ended.stderr);
    }
}
