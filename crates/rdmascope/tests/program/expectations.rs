//! Bounds on numbers: `--expect`, `[[expect]]`, and the exit status.

use crate::support::{Scratch, finish};

const LAT: [&str; 7] = ["lat", "send", "--local", "-s", "64", "-n", "500"];

fn lat<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&LAT[..], more].concat()
}

#[test]
fn a_bound_that_is_not_met_ends_with_3() {
    let scratch = Scratch::on_one_cpu();
    let met = scratch.run(&lat(&["--expect", "counters.packets_sent > 1", "--expect", "no_loss"]));
    assert_eq!((met.status, met.stderr.as_str()), (Some(0), ""));
    assert!(met.stdout.contains(" expectations: 2 met\n"), "{}", met.stdout);
    let not_met = scratch.run(&lat(&["--expect", "counters.packets_sent <= 1", "--out", "run"]));
    assert_eq!(not_met.status, Some(3), "{not_met:?}");
    let why = "rdmascope: an expectation is not met: the tables and the record say why\n";
    assert_eq!(not_met.stderr, why);
    assert!(
        not_met.stdout.contains("1. counters.packets_sent <= 1\n    lat-send  not met; "),
        "{}",
        not_met.stdout
    );
    // The record has the bound, and the report judges it again.
    let (run, _) = scratch.record("run");
    assert_eq!(run.expectations[0].to_string(), "counters.packets_sent <= 1");
    assert!(scratch.succeed(&["report", "run", "--text"]).contains(" expectations: 1 not met\n"));
    let page = std::fs::read_to_string(scratch.at("run/report.html")).unwrap();
    assert!(page.contains("<section id=\"expectations\">") && page.contains("<strong>not met</strong>"));
}

/// With a record or without one.
#[test]
fn a_reader_that_has_gone_hides_no_bound_that_is_not_met() {
    let scratch = Scratch::on_one_cpu();
    for out in ["", "--out run"] {
        let words = format!("lat send --local -s 64,128 -n 500 --expect 'counters.packets_sent <= 1' {out}");
        let script = format!("{{ \"$0\" {words}; echo $? >&2; }} | {{ exec <&-; sleep 0.5; }}");
        let ended = finish(scratch.shell(&script));
        assert!(ended.stderr.ends_with("\n3\n"), "{out}: {ended:?}");
    }
}

#[test]
fn what_is_not_decided_is_no_failure() {
    let scratch = Scratch::on_one_cpu();
    let ended = scratch.run(&lat(&["--expect", "missed <= 0.1%", "--expect", "p99 > 0 ns"]));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let why = "not decided: no point of this run has pipeline.missed_share";
    assert!(ended.stdout.contains(why), "{}", ended.stdout);
}

#[test]
fn a_plan_has_bounds_of_its_own_and_a_resumed_run_keeps_them() {
    let scratch = Scratch::on_one_cpu();
    let plan = "name = \"p\"\ntitle = \"P\"\n[[experiment]]\nname = \"lat\"\npattern = \"ping-pong\"\n\
                iterations = 200\naxes = { size_bytes = [4, 8] }\n[[expect]]\nquantity = \"counters.packets_sent\"\n\
                bound = \"<= 1\"\nwhere = { size_bytes = 8 }\nreason = \"R\"\n";
    let path = scratch.write("plan.toml", plan).display().to_string();
    let ended = scratch.run(&["run", &path, "--out", "run", "--expect", "no_loss"]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let lines = " 1. counters.packets_sent <= 1 (R): 1 not met\n    lat, 8 B  not met; ";
    assert!(ended.stdout.contains(lines), "{}", ended.stdout);
    assert!(ended.stdout.contains(" 2. messages_lost <= 0: 2 met\n"), "{}", ended.stdout);
    let whole = scratch.run(&["run", "--resume", "run"]);
    assert_eq!(whole.status, Some(3), "{whole:?}");
    assert!(whole.stdout.contains(" expectations: 2 met, 1 not met\n"), "{}", whole.stdout);
    let whole = scratch.run(&["run", "--resume", "run", "--json"]);
    assert_eq!(whole.status, Some(3), "{whole:?}");
    let is_point = |line: &str| serde_json::from_str::<measure::record::Point>(line).is_ok();
    assert!(whole.stdout.lines().count() == 2 && whole.stdout.lines().all(is_point), "{}", whole.stdout);
    assert!(whole.stderr.contains(" expectations: 2 met, 1 not met\n"), "{}", whole.stderr);
    // The last point is taken away, and measured again.
    let points = std::fs::read_to_string(scratch.at("run/points.jsonl")).unwrap();
    scratch.write("run/points.jsonl", points.split_inclusive('\n').next().unwrap());
    let resumed = scratch.run(&["run", "--resume", "run"]);
    assert_eq!(resumed.status, Some(3), "{resumed:?}");
    assert!(resumed.stdout.contains(" expectations: 2 met, 1 not met\n"), "{}", resumed.stdout);
}

#[test]
fn a_wrong_bound_is_refused_before_anything_is_measured() {
    let scratch = Scratch::new();
    for (bound, words) in [
        ("p99", "\"p99\" is no quantity with a bound: write one such as"),
        ("p99 <= 5", "latency.p99_ns is a time: give a time such as \"5 us\""),
        ("missed <= 2.5", "pipeline.missed_share is a share: give a share such as \"0.1 %\""),
        ("p98 <= 5us", "unknown quantity \"p98\": did you mean \"p99\"?"),
        ("throughput >= 5us", "throughput.bytes_per_s is a bandwidth: give a bandwidth such as \"12 Gb/s\""),
    ] {
        scratch.refused(&lat(&["--expect", bound]), 2, &[&format!("--expect {bound:?}: "), words]);
        scratch.refused(&["run", "quick", "--expect", bound], 2, &[&format!("--expect {bound:?}: "), words]);
    }
}

#[test]
fn init_writes_the_bounds_into_the_plan() {
    let scratch = Scratch::new();
    let plan = scratch.succeed(&["init", "lat", "send", "--expect", "p99 <= 5us"]);
    assert!(plan.contains("\n[[expect]]\nquantity = \"latency.p99_ns\"\nbound = \"<= 5us\"\n"), "{plan}");
    let path = scratch.write("plan.toml", plan).display().to_string();
    scratch.succeed(&["run", &path, "--dry-run"]);
}
