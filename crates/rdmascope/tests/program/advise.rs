//! `rdmascope advise` on the software device: it recommends what its record shows, and refuses what
//! it cannot do.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use measure::record::Status;
use rustix::process::Signal;

use crate::support::processes::signal;
use crate::support::{Ended, Scratch, collect};

/// Runs `advise` with a record.
fn advised(flags: &str) -> (Scratch, Ended) {
    let scratch = Scratch::on_one_cpu();
    let mut words: Vec<&str> = flags.split(' ').collect();
    words.extend(["--local", "-d", "softdev0", "--out", "record"]);
    let ended = scratch.run(&words);
    (scratch, ended)
}

/// Returns the line of the recommended command.
fn command(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("  rdmascope ")).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_recommendation_stands_on_a_record_of_interleaved_rounds() {
    let (scratch, ended) = advised("advise -n 150 -c RC,UD --operation send");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert_eq!(run.points_planned, points.len() as u64);
    assert!(points.iter().enumerate().all(|(at, point)| point.id == at as u64), "numbered through");
    let coarse: Vec<_> = points.iter().filter(|point| point.experiment == "coarse").collect();
    // Five rounds, and rounds that were measured again.
    assert!(coarse.len() >= 2 * 4 * 5 && coarse.len() % 8 == 0, "{}", coarse.len());
    assert!(coarse.iter().enumerate().all(|(at, point)| point.repetition as usize == at / 8), "in rounds");
    let planned = run.plan["experiments"].as_array().unwrap().iter();
    let repetitions = planned.map(|experiment| experiment["repetitions"].as_u64().unwrap());
    assert_eq!(repetitions.sum::<u64>(), points.len() as u64);
    // The recommended configuration was measured together with all possible steps.
    let steps: BTreeSet<_> = points
        .iter()
        .filter(|point| point.experiment == "steps-1" && point.status == Status::Measured)
        .map(|point| format!("{} {}", point.axes["poll"], point.axes["inline"]))
        .collect();
    assert!(steps.len() >= 5, "four ways to poll, and inline: {steps:?}");
    for words in
        ["Recommended for 32 B, one message at a time, least one-way median:", "IBV_QPT_", "IBV_WR_SEND"]
    {
        assert!(ended.stdout.contains(words), "{ended:?}");
    }
    let table = ended.stdout.split("One step away").nth(1).unwrap();
    for row in ["service    UC", "operation  write_imm", "signalled  every 64"] {
        let line = table.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("{row}: {table}"));
        assert!(line.contains("not measured: "), "{line}");
    }
    for row in ["inline     yes", "buffers    4096"] {
        assert!(!table.lines().any(|line| line.contains(row) && line.contains("not measured")), "{table}");
    }
    let report = std::fs::read_to_string(scratch.at("record/report.html")).unwrap();
    assert!(report.contains("Configurations: steps-1"));
    // The recommended command works.
    let words: Vec<&str> = command(&ended.stdout).split(' ').collect();
    assert_eq!(scratch.run(&words).status, Some(0), "{words:?}");
    scratch.assert_nothing_left();
}

/// A process that sleeps takes microseconds to wake, a process that polls does not: the noise of a
/// test machine cannot hide that.
#[test]
fn goals_are_told_apart() {
    let ended = advised("advise -n 300 -c RC --operation send --goal median").1;
    let fast = command(&ended.stdout).to_owned();
    assert!(fast.contains("--poll busy") || fast.contains("--poll hybrid"), "{ended:?}");
    // A message every 5 ms: ranks that poll use all of this time on two CPUs, ranks that sleep some
    // microseconds. On a machine that runs other tests, they may wake half a millisecond late: that
    // is within the tenth by which the rate may be missed.
    let ended = advised("advise -n 5 -c RC --operation send --goal cpu --rate 200").1;
    let cheap = command(&ended.stdout).to_owned();
    assert!(cheap.contains("--poll event") && cheap.contains("--burst all --pause 5ms"), "{ended:?}");
    assert!(ended.stdout.contains("least CPU time of both ranks per message"), "{ended:?}");
}

#[test]
fn a_trial_fits_the_rounds_to_the_budget_and_a_flood_to_few_signals() {
    let (scratch, ended) = advised("advise --budget 1ms --rate asap -c UC --operation write --goal p99.9");
    assert!(ended.stdout.contains("# trial: 4 configurations, 1 round of 200 messages"), "{ended:?}");
    assert!(ended.stdout.contains("# coarse: 4 configurations, 5 rounds of 100 messages"), "{ended:?}");
    assert!(scratch.record("record").1.iter().any(|point| point.axes["signal_interval"] == 64), "{ended:?}");
    let is_said = ended.stdout.contains("A round has 100 messages");
    assert!(is_said || ended.stdout.contains("Nothing can be recommended:"), "{ended:?}");
}

#[test]
fn bad_questions_are_refused_in_a_sentence() {
    let scratch = Scratch::on_one_cpu();
    let local = |flags: &[&str], words: &[&str]| {
        scratch.refused(&[&["advise", "--local"][..], flags].concat(), 2, words);
    };
    local(&["-c", "UD", "--operation", "write"], &["nothing to measure", "datagrams have Send only"]);
    local(&["-c", "UD", "-s", "8KiB"], &["a datagram is no longer than the path MTU, 4096 B"]);
    local(&["-s", "0"], &["at least 1 byte"]);
    local(&["-m", "5000"], &["not a path MTU"]);
    local(&["-t", "0"], &["tx_depth"]);
    local(&["--rx-fill", "600", "-r", "500"], &["600", "500"]);
    local(&["--poll", "busy"], &["--poll: advise chooses how to wait for completions"]);
    // Messages that no device can send: known when the agents have reported the limits.
    local(
        &["-n", "10", "-c", "RC", "-s", "3GiB"],
        &["nothing of this plan can be measured", "messages of at most"],
    );
    local(&["-d", "mlx5_7"], &["no device named \"mlx5_7\""]);
    for (flags, words) in [
        (["--rate", "10khz"], "such as 500, 10k or 2M, or `asap`"),
        (["--rate", "0"], "from one message a minute"),
        (["--goal", "mean"], "median, p99.9, cpu"),
        (["--rounds", "4"], "give a number from 5 to 20"),
        (["--operation", "read"], "send, write"),
        (["--budget", "90d"], "\"d\" is no unit of time"),
    ] {
        let ended = scratch.run(&[&["advise", "--local"][..], &flags].concat());
        assert!(ended.status == Some(2) && ended.stderr.contains(words), "{flags:?}: {ended:?}");
    }
}

#[test]
fn who_stops_a_search_is_told_what_is_kept() {
    for (out, words) in
        [("", "without --out no point is kept"), ("kept", "the points that had ended are kept")]
    {
        let scratch = Scratch::on_one_cpu();
        let mut command =
            scratch.program(["advise", "--local", "-d", "softdev0", "-n", "100", "--rate", "1kHz"]);
        if !out.is_empty() {
            command.args(["--out", out]);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("# coarse")), "the search did not start");
        signal(child.id().cast_signed(), Signal::INT);
        let rest = std::thread::spawn(move || lines.count());
        let ended = collect(child);
        rest.join().unwrap();
        assert!(
            ended.status == Some(130) && ended.stderr.contains("rdmascope: stopped by SIGINT: "),
            "{ended:?}"
        );
        assert!(ended.stderr.contains(words), "{ended:?}");
        scratch.assert_nothing_left();
    }
}
