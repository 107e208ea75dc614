//! `rdmascope compare` and `rdmascope trend`, as users run them.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::processes::signal;
use crate::support::{DEADLINE, Ended, PROGRAM, Scratch, collect, finish, python};

/// A short measurement whose latency the link model sets, whatever the machine is doing. Its ranks
/// are not pinned, so the core-to-core latency is not measured: a machine that moves its CPUs would
/// leave too few turns of one placement.
const LINK: &str = "lat send --local --cpus none -n 20 -s 64 --link '4X FDR,latency=2ms'";
/// The same, slower by more than a busy machine adds.
const SLOWER: &str = "lat send --local --cpus none -n 20 -s 64 --link '4X FDR,latency=6ms'";
/// Links whose latencies differ by 10 %, far beyond what a busy machine adds to them.
const LONG: &str = "lat send --local --cpus none -n 50 -s 64 --link '4X FDR,latency=2ms'";
const LONGER: &str = "lat send --local --cpus none -n 50 -s 64 --link '4X FDR,latency=2200us'";

/// Compares two commands by turns.
fn by_turns(scratch: &Scratch, pairs: &str, commands: [&str; 2], out: &str, flags: &[&str]) -> Ended {
    let words = ["compare", "--interleave", pairs, commands[0], commands[1], "--out", out];
    scratch.run(&[&words[..], flags].concat())
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn turns_of_one_build_are_not_worse_and_ends_with_0() {
    let scratch = Scratch::alone();
    let ended = by_turns(&scratch, "6", [LINK, LINK], "turns", &["--format", "json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let found = json(&ended);
    assert!(matches!(found["verdict"].as_str(), Some("same" | "undecided")), "{found}");
    assert_eq!((&found["order"], &found["runs"]), (&"turns".into(), &serde_json::json!([6, 6])));
    assert_eq!(found["rows"].as_array().unwrap().len(), 1);
    assert_eq!(found["differences"], serde_json::json!([]), "one build on one machine");
    let kept: Value = serde_json::from_slice(&fs::read(scratch.at("turns/turns.json")).unwrap()).unwrap();
    assert_eq!(kept["new_first"].as_array().unwrap().len(), 6);
    scratch.assert_nothing_left();
}

#[test]
fn a_slower_link_is_worse_by_the_ratio_of_the_links_and_ends_with_3() {
    /// One disturbed turn must not decide: of six pairs, the interval has all of them.
    const PAIRS: &str = "10";
    /// The smallest latency is that of the link, whatever the machine is doing.
    const MIN: [&str; 2] = ["--quantity", "min"];
    let scratch = Scratch::alone();
    let commands = [LONG, LONGER];
    let flags = |more: &[&'static str]| [&MIN[..], more].concat();
    let ended = by_turns(&scratch, PAIRS, commands, "turns", &flags(&["--html", "page.html"]));
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stdout.ends_with(" verdict: worse\n"), "{ended:?}");
    // A pipe gets the commands as they are, in a line each.
    let lines = ended.stdout.lines().filter(|line| !line.contains("lat send"));
    assert!(lines.map(|line| line.chars().count()).max() <= Some(80), "{}", ended.stdout);
    assert!(ended.stdout.contains("link: 4X FDR,latency=2ms -> 4X FDR,latency=2200us"), "{ended:?}");
    let page = fs::read_to_string(scratch.at("page.html")).unwrap();
    assert!(page.contains("Verdict: worse") && page.contains("<svg class=\"forest\""), "{page}");
    assert!(!page.contains("<script"), "the page needs no script");

    // All turns are there: the same command measures nothing and says the same.
    let again = by_turns(&scratch, PAIRS, commands, "turns", &flags(&["--format", "json"]));
    assert!(again.status == Some(3) && !again.stderr.contains("turn 1 "), "{again:?}");
    let row = &json(&again)["rows"][0];
    let [low, high] = [0, 1].map(|end| row["interval"][end].as_f64().unwrap());
    let ratio = row["ratio"].as_f64().unwrap();
    assert!(low <= ratio && ratio <= high, "{row}");
    assert!((ratio - 1.1).abs() < 0.03, "{ratio}, not 1.1");

    // So does their directory alone, also of another number.
    let alone = scratch.run(&[&["compare", "turns"], &flags(&["--format", "json"])[..]].concat());
    assert_eq!((alone.status, &alone.stdout), (again.status, &again.stdout));
    let other = scratch.run(&["compare", "turns", "--format", "json"]);
    assert_eq!(json(&other)["rows"][0]["quantity"], "latency.p50_ns", "{other:?}");
    scratch.refused(&["compare", "turns/base"], 2, &["turns/base has no turns.json", "name two sides"]);

    // The runs alone are in a mixed order: they decide, if the link may differ.
    let apart = ["compare", "turns/base", "turns/new"];
    scratch.refused(&apart, 1, &["differ in what matters", "link: 4X FDR,latency=2ms", "--anyway"]);
    let anyway = scratch.run(&[&apart[..], &flags(&["--anyway"])].concat());
    assert_eq!(anyway.status, Some(3), "{anyway:?}");
    assert!(
        anyway.stdout.contains("worse; compared anyway, despite 1 difference that matters"),
        "{anyway:?}"
    );
    let faster = scratch.run(&[&["compare", "turns/new", "turns/base"], &flags(&["--anyway"])[..]].concat());
    assert_eq!(faster.status, Some(0), "{faster:?}");
    assert!(faster.stdout.contains("verdict: better"), "{faster:?}");
}

/// The first word of a command may be another program: here a shell, whose scripts add a link to
/// what they are given.
#[test]
fn two_programs_are_measured_by_turns() {
    let scratch = Scratch::alone();
    let program = *PROGRAM;
    for (name, latency) in [("old", "2ms"), ("young", "6ms")] {
        scratch.write(name, format!("exec {program} \"$@\" --link '4X FDR,latency={latency}'\n"));
    }
    let words = "lat send --local --cpus none -n 20 -s 64";
    let commands = ["old", "young"].map(|name| format!("/bin/sh {name} {words}"));
    let ended = by_turns(&scratch, "5", [&commands[0], &commands[1]], "turns", &[]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stdout.ends_with(" verdict: worse\n"), "{ended:?}");
    let ended = by_turns(&scratch, "5", [&commands[0], "./none/rdmascope lat send"], "other", &[]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot start './none/rdmascope lat send'"), "{ended:?}");
}

#[test]
fn every_format_has_the_verdict() {
    let scratch = Scratch::alone();
    by_turns(&scratch, "5", [LINK, SLOWER], "turns", &[]);
    let format = |format: &str| {
        let ended = by_turns(&scratch, "5", [LINK, SLOWER], "turns", &["--format", format]);
        assert_eq!(ended.status, Some(3), "{ended:?}");
        ended.stdout
    };
    let begun = by_turns(&scratch, "5", [LINK, SLOWER], "turns", &[]).stderr;
    assert!(begun.contains("5 pairs in random order, seed ") && begun.contains("; enough for 1 question\n"));
    let markdown = format("markdown");
    assert!(markdown.starts_with("**verdict: worse**\n"), "{markdown}");
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    let cells: Vec<usize> = rows.iter().map(|row| row.matches('|').count()).collect();
    assert_eq!(cells, [8, 8, 8], "{markdown}");
    let junit = format("junit");
    let count = |what: &str| junit.matches(what).count();
    let tags = [
        "<testsuites>",
        "<testsuite ",
        "<testcase ",
        "<failure ",
        "</testcase>",
        "</testsuite>",
        "</testsuites>",
    ];
    assert_eq!(tags.map(count), [1; 7], "{junit}");
    assert_eq!(count("tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""), 1, "{junit}");
    assert!(!junit.contains("latency='"), "quotes of commands are escaped: {junit}");
    let json: Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!(json["rows"][0]["verdict"], "worse");
}

/// Measures a run in a directory.
fn measured(scratch: &Scratch, command: &str, out: &str) {
    let mut shell = scratch.shell(&format!("\"$0\" {command} --out {out}"));
    shell.env("COLUMNS", "100");
    let ended = collect(shell.spawn().unwrap());
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

/// Repetitions of one point, in a plan.
fn repeated(scratch: &Scratch, name: &str, link: &str) {
    scratch.write(
        &format!("{name}.toml"),
        format!(
            "name = \"repeated\"\ntitle = \"Repeated\"\n[[experiment]]\nname = \"one\"\npattern = \"ping-pong\"\n\
             iterations = 20\nrepetitions = 6\naxes = {{ size_bytes = 64, link = \"{link}\" }}\n"
        ),
    );
}

#[test]
fn single_sessions_never_end_with_3_without_a_history() {
    let scratch = Scratch::alone();
    repeated(&scratch, "base", "4X FDR,latency=5000us");
    repeated(&scratch, "new", "4X FDR,latency=15000us");
    measured(&scratch, "run base.toml --cpus none", "base");
    measured(&scratch, "run new.toml --cpus none", "new");
    let words = ["compare", "base", "new", "--anyway"];
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stdout.contains(" verdict: differs, but one session a side; compared anyway"), "{ended:?}");
    let same = scratch.run(&["compare", "base", "base"]);
    assert_eq!(same.status, Some(0), "{same:?}");

    // With a history of sessions, the floor is known.
    scratch.refused(
        &[&words[..], &["--history", "base,new"]].concat(),
        2,
        &["has 0 runs besides", "at least 5"],
    );
    for session in 1..=5 {
        let name = format!("history/{session}");
        fs::create_dir_all(scratch.at(&name)).unwrap();
        for file in ["run.json", "points.jsonl"] {
            fs::copy(scratch.at("base").join(file), scratch.at(&name).join(file)).unwrap();
        }
    }
    // A link to the last session is no session.
    std::os::unix::fs::symlink("5", scratch.at("history/latest")).unwrap();
    let held = scratch.run(&[&words[..], &["--history", "history"]].concat());
    assert_eq!(held.status, Some(3), "{held:?}");
    assert!(held.stdout.contains("history of 5 sessions"), "{held:?}");
    assert!(
        held.stderr.contains("history/latest is left out: it is the same run as another one"),
        "{held:?}"
    );
    // A reader that has gone hides no verdict.
    let script =
        "{ \"$0\" compare base new --anyway --history history; echo $? >&2; } | { exec <&-; sleep 0.5; }";
    let unread = finish(scratch.shell(script));
    assert!(unread.stderr.ends_with("\n3\n"), "{unread:?}");
}

/// A run of one point ends with 1 if that point failed, and a fleet if too little was measured. The
/// record decides whether a turn is whole.
#[test]
fn a_turn_with_a_whole_record_counts_whatever_its_status() {
    let scratch = Scratch::alone();
    scratch.write("one", format!("{} \"$@\"\nexit 1\n", *PROGRAM));
    let one = format!("/bin/sh one {LINK}");
    for attempt in ["first", "again"] {
        let ended = by_turns(&scratch, "1", [LINK, &one], "turns", &[]);
        assert_eq!(ended.status, Some(0), "{attempt}: {ended:?}");
        assert!(ended.stdout.contains("needs at least 5 pairs"), "{attempt}: {ended:?}");
    }
}

#[test]
fn turns_whose_expectations_are_not_met_are_whole() {
    let scratch = Scratch::alone();
    let strict = format!("{LINK} --expect 'p99 <= 1 ns'");
    let ended =
        by_turns(&scratch, "1", [&strict, LINK], "turns", &["--quantity", "latency.p50_ns,latency.p99_ns"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let few =
        "too few pairs for 2 questions: measure at least 8, or ask fewer questions with --by experiment";
    assert!(ended.stderr.contains(few) && ended.stdout.contains("needs at least 8 pairs"), "{ended:?}");
    // It is said before the first turn, too.
    let before = ended.stderr.split("turn 1 of 2").next().unwrap();
    assert!(before.contains("; too few to decide anything: measure at least 5\n"), "{ended:?}");
}

#[test]
fn wrong_use_is_refused_in_a_sentence() {
    let scratch = Scratch::on_one_cpu();
    measured(&scratch, "lat send --local -n 100", "one");
    measured(&scratch, "bw send --local -n 100", "other");
    scratch.refused(&["compare", "one", "missing"], 2, &["missing", "there is no such directory"]);
    scratch.refused(&["compare", "one", "other"], 1, &["nothing to compare"]);
    scratch.refused(
        &["compare", "one", "one", "--quantity", "latency.p51_ns"],
        2,
        &["latency.p51_ns", "latency.p50_ns"],
    );
    scratch.refused(&["compare", "one", "one", "--quantity", "latency.count"], 2, &["neither more nor less"]);
    let twice = scratch.run(&["trend", "one", "one"]);
    assert_eq!(twice.status, Some(1), "{twice:?}");
    for words in ["one is left out: it is the same run", "it needs 10 runs", "these 1 have at most 1"] {
        assert!(twice.stderr.contains(words), "{words}: {twice:?}");
    }
    let turns = |command: &str, out: &str, words: &[&str]| {
        let all = ["compare", "--interleave", "2", command, "lat send --local", "--out", out];
        scratch.refused(&all, 2, words);
    };
    turns("", "new", &["cannot be measured by turns", "it is empty"]);
    turns("lat send 'a", "new", &["unclosed quote"]);
    turns("lat send --out x", "new", &["--out is set for each turn"]);
    turns("lat send --local", "one", &["one is not empty and has no turns.json"]);
    let ended = by_turns(&scratch, "2", ["lat send --local --none", "lat send --local"], "failing", &[]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("'lat send --local --none' ended with status 2: unexpected argument '--none'"),
        "{ended:?}"
    );
    let slow = scratch.write_script("slow", "#!/bin/sh\nexec sleep 600\n").display().to_string();
    let ended = by_turns(&scratch, "2", [&slow, &slow], "slow-turns", &["--turn-timeout", "500ms"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("did not end within 500ms and was stopped: give more with"), "{ended:?}");
    scratch.assert_nothing_left();
    scratch.write("other/turns.json", "{}");
    turns("lat send --local", "other", &["other/turns.json is not that of a comparison"]);
}

/// Counts the runs of a comparison that are complete.
fn runs(out: &Path) -> usize {
    let sides = ["base", "new"].map(|side| fs::read_dir(out.join(side)).into_iter().flatten().flatten());
    let is_whole =
        |run: &Path| fs::read_to_string(run.join("run.json")).is_ok_and(|text| text.contains("\"ended\""));
    sides.into_iter().flatten().filter(|run| is_whole(&run.path())).count()
}

/// Waits until a comparison has some of its runs.
fn until(out: &Path, child: &mut Child, wanted: usize) {
    let start = Instant::now();
    while runs(out) < wanted {
        assert!(child.try_wait().unwrap().is_none(), "it ended after {} runs", runs(out));
        assert!(start.elapsed() < DEADLINE, "{} runs", runs(out));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_comparison_goes_on_after_a_signal_and_after_a_kill() {
    let scratch = Scratch::alone();
    let command = "lat send --local -D 300ms";
    let words = ["compare", "--interleave", "4", command, command, "--out", "turns"];
    let out = scratch.at("turns");
    let mut child = scratch.program(words).spawn().unwrap();
    until(&out, &mut child, 2);
    signal(child.id().cast_signed(), Signal::INT);
    let ended = collect(child);
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("stopped by SIGINT: finished turns are kept"), "{ended:?}");
    scratch.assert_nothing_left();
    let kept = runs(&out);
    assert!((2..8).contains(&kept), "{kept} runs");

    let mut child = scratch.program(words).spawn().unwrap();
    until(&out, &mut child, kept + 1);
    // Unless all turns but the last ones were kept, it still measures.
    if kept < 5 {
        scratch.refused(&words, 2, &["turns is being measured by another process"]);
    }
    child.kill().unwrap();
    collect(child);
    let ended = scratch.run(&words);
    assert_eq!(runs(&out), 8, "{ended:?}");
    assert!(ended.stdout.contains(" verdict: ") && ended.status != Some(2), "{ended:?}");
    let repeated = by_turns(&scratch, "5", [command, command], "turns", &[]);
    assert_eq!(repeated.status, Some(2), "{repeated:?}");
    assert!(repeated.stderr.contains("the turns of another comparison, --interleave 4"), "{repeated:?}");
}

/// Rewrites a copy of a run: its start, its latency, and facts of its hosts.
fn copied(scratch: &Scratch, run: u64, latency: f64, kernel: &str) {
    let to = scratch.at(&format!("nightly/{run:02}"));
    fs::create_dir_all(&to).unwrap();
    let text = |file: &str| fs::read_to_string(scratch.at("one").join(file)).unwrap();
    let mut of_run: Value = serde_json::from_str(&text("run.json")).unwrap();
    of_run["started"] = format!("2026-01-{run:02}T03:00:00Z").into();
    for host in of_run["environments"].as_array_mut().unwrap() {
        host["facts"]["kernel"]["release"] = kernel.into();
    }
    let mut point: Value = serde_json::from_str(text("points.jsonl").lines().next().unwrap()).unwrap();
    point["latency"]["p50_ns"] = (latency as u64).into();
    point.as_object_mut().unwrap().remove("calibration");
    fs::write(to.join("run.json"), of_run.to_string()).unwrap();
    fs::write(to.join("points.jsonl"), format!("{point}\n")).unwrap();
}

#[test]
fn a_trend_names_the_date_of_a_change_and_what_else_changed() {
    let scratch = Scratch::on_one_cpu();
    measured(&scratch, "lat send --local -n 100", "one");
    for run in 1..=24 {
        let level = if run <= 14 { 1000.0 } else { 1200.0 };
        copied(&scratch, run, level + (run * 37 % 11) as f64, if run <= 14 { "6.1" } else { "6.2" });
    }
    let ended = scratch.run(&["trend", "nightly", "--html", "trend.html"]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    for words in [
        "24 of 24 2026-01-15T03:00:00Z",
        "worse",
        "2026-01-15T03:00:00Z (nightly/15): kernel release: 6.1 -> 6.2",
        " verdict: worse: 1 change in 1 series",
    ] {
        assert!(ended.stdout.contains(words), "no {words:?} in {}", ended.stdout);
    }
    let page = fs::read_to_string(scratch.at("trend.html")).unwrap();
    assert_eq!(page.matches("class=\"run\"").count(), 24, "a mark for each run: {page}");
    let json: Value =
        serde_json::from_str(&scratch.run(&["trend", "nightly", "--format", "json"]).stdout).unwrap();
    assert_eq!((&json["rows"][0]["changes"][0]["run"], &json["verdict"]), (&14.into(), &"worse".into()));
    let junit = scratch.run(&["trend", "nightly", "--format", "junit"]).stdout;
    assert!(junit.contains("<failure "), "{junit}");
    scratch.write("trend.xml", junit);
    python::keep_to_junit(&scratch, &["trend.xml"]);
    for run in 15..=24 {
        fs::remove_dir_all(scratch.at(&format!("nightly/{run}"))).unwrap();
    }
    fs::create_dir(scratch.at("nightly/broken")).unwrap();
    scratch.write("nightly/broken/run.json", "{");
    let run: Value = serde_json::from_slice(&fs::read(scratch.at("nightly/07/run.json")).unwrap()).unwrap();
    let mut killed = run.clone();
    killed.as_object_mut().unwrap().remove("ended");
    scratch.write("nightly/07/run.json", killed.to_string());
    let steady = scratch.run(&["trend", "nightly"]);
    assert!(
        steady.status == Some(0) && steady.stdout.contains(" verdict: same: no change in 1 series"),
        "{steady:?}"
    );
    assert!(steady.stderr.contains("nightly/broken is left out: "), "{steady:?}");
    assert!(
        steady.stderr.contains("nightly/07 has not ended: the points that it has are used"),
        "{steady:?}"
    );
    scratch.refused(&["trend", "nightly/broken"], 1, &["run.json is not the record of a run"]);
}
