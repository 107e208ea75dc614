//! Valid and wrong plans: every error is compared with the exact sentence that users read.

use std::path::Path;

use measure::selection;
use proptest::prelude::*;

use super::*;
use crate::Error;
use crate::axis;
use crate::point::{Flow, Length, Operation, Pattern, PointSpec, QueuePoll, Service, Setup, Stamp};

/// The first four lines of a plan.
const HEAD: &str = "name = \"x\"\ntitle = \"X\"\n\n[[experiment]]\n";

fn parse(text: &str) -> Result<Plan, Error> {
    Plan::parse(text, "plans/x.toml", Path::new("."))
}

fn resolved(text: &str, set: &[&str], quick: bool) -> Result<Resolved, Error> {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    resolve(&parse(text)?, &Options { quick, set })
}

/// The error of a plan whose experiment has these lines.
fn refusal(experiment: &str) -> String {
    refusal_set(experiment, &[])
}

fn refusal_set(experiment: &str, set: &[&str]) -> String {
    let text = format!("{HEAD}name = \"lat\"\npattern = \"ping-pong\"\n{experiment}");
    resolved(&text, set, false).expect_err("the plan is wrong").to_string()
}

fn points(experiment: &str, set: &[&str], quick: bool) -> Vec<PointSpec> {
    let text = format!("{HEAD}name = \"lat\"\npattern = \"ping-pong\"\n{experiment}");
    resolved(&text, set, quick).expect("the plan is right").points
}

fn sizes(points: &[PointSpec]) -> Vec<u64> {
    points.iter().map(|point| point.message.size_bytes).collect()
}

proptest! {
    // A case is a line for each key.
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_panics(key in "[a-z_]{0,12}", value in "[-0-9a-zA-Z.,\"\\[\\]{}= ]{0,24}", set: String) {
        let known = Settings::KEYS.into_iter().chain(axis::NAMES).map(str::to_owned);
        for key in known.chain([key]) {
            for line in [format!("{key} = {value}"), format!("axes = {{ {key} = {value} }}")] {
                let text = format!("{HEAD}name = \"a\"\npattern = \"stream\"\n{line}");
                let _ = resolved(&text, &[], false);
            }
            let text = format!("{HEAD}name = \"a\"\npattern = \"stream\"");
            for set in [&set, &format!("{key}={value}"), &format!("{key}={set}")] {
                let _ = resolved(&text, &[set], false);
            }
        }
    }
}

#[test]
fn misspelt_keys_are_refused_with_the_nearest() {
    for (experiment, error) in [
        (
            "iteratons = 5",
            "plans/x.toml:7: unknown key \"iteratons\" in [[experiment]]: did you mean \"iterations\"?",
        ),
        (
            "[experiment.axes]\nsize = 4",
            "plans/x.toml:8: unknown key \"size\" in the axes of [[experiment]]: did you mean \"size_bytes\"?",
        ),
        (
            "size_bytes = 4",
            "plans/x.toml:7: unknown key \"size_bytes\" in [[experiment]]: it is an axis; put it below \
             [experiment.axes]",
        ),
        (
            "[experiment.quick]\niters = 4",
            "plans/x.toml:8: unknown key \"iters\" in [experiment.quick]: did you mean \"iterations\"?",
        ),
        (
            "zzz = 4",
            "plans/x.toml:7: unknown key \"zzz\" in [[experiment]]: use one of axes, name, pattern, quick, bytes_max, \
             duration, iterations, keep_samples, launches, repetitions, repetitions_max, rx_depth, share_above_ns, \
             sink_dir, timeout, tx_depth, warmup, within",
        ),
        ("[[figur]]", "plans/x.toml:7: unknown key \"figur\" in the plan: did you mean \"figure\"?"),
        ("[[figure]]\nkid = 4", "plans/x.toml:8: unknown key \"kid\" in [[figure]]: did you mean \"kind\"?"),
        (
            "[[figure]]\nreference = { fil = 4 }",
            "plans/x.toml:8: unknown key \"fil\" in [figure.reference]: did you mean \"file\"?",
        ),
    ] {
        assert_eq!(refusal(experiment), error);
    }
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    for (experiment, error) in [
        (
            "iterations = \"many\"",
            "plans/x.toml:7: iterations in [[experiment]]: cannot read \"many\" as a count: write a whole number such as 1000, \
             10k or 1e6",
        ),
        (
            "iterations = -5",
            "plans/x.toml:7: iterations in [[experiment]] must be a count such as 1000 or \"10k\", not -5",
        ),
        (
            "tx_depth = 4294967296",
            "plans/x.toml:7: tx_depth in [[experiment]] must be a count below 2^32, not 4294967296",
        ),
        ("keep_samples = 1", "plans/x.toml:7: keep_samples in [[experiment]] must be true or false, not 1"),
        (
            "duration = true",
            "plans/x.toml:7: duration in [[experiment]] must be a duration such as \"5s\", or seconds, not true",
        ),
        (
            "duration = \"5 parsecs\"",
            "plans/x.toml:7: duration in [[experiment]]: cannot read \"5 parsecs\" as a duration: \"parsecs\" is no unit \
             of time; write ns, us, ms, s, min or h",
        ),
        (
            "axes = { size_bytes = \"4..9\" }",
            "plans/x.toml:7: size_bytes in [[experiment]]: cannot read \"4..9\" as a range of sizes: doubling 4 does not \
             reach 9; end at 8 or 16, or write the sizes as a list",
        ),
        (
            "axes = { size_bytes = [\"4KB\"] }",
            "plans/x.toml:7: size_bytes in [[experiment]]: cannot read \"4KB\" as a size: KB may mean 1024 or 1000; write \
             KiB or kB",
        ),
        (
            "axes = { inline = \"yes\" }",
            "plans/x.toml:7: inline in [[experiment]] must be true or false, not the text \"yes\"",
        ),
        (
            "share_above_ns = [1, -1]",
            "plans/x.toml:7: share_above_ns in [[experiment]] must be a list of whole numbers \
             of nanoseconds, or of durations such as \"10us\", not a list",
        ),
        ("axes = 5", "plans/x.toml:7: axes in [[experiment]] must be a table, not 5"),
    ] {
        assert_eq!(refusal(experiment), error);
    }
}

#[test]
fn unknown_values_are_refused_with_the_nearest() {
    for (experiment, error) in [
        (
            "axes = { service = \"rc\" }",
            "plans/x.toml:7: unknown service \"rc\" in [[experiment]]: did you mean \"RC\"?",
        ),
        (
            "axes = { service = \"XYZ\" }",
            "plans/x.toml:7: unknown service \"XYZ\" in [[experiment]]: use one of RC, UC, UD",
        ),
        (
            "axes = { link = \"4X FRD\" }",
            "plans/x.toml:7: link in [[experiment]]: `4X FRD` is not a link: `4X FRD` is not a rate; give a rate such as \
             4X FDR or 40Gb/s and any of latency=700ns, back=1us, fetch=300ns, gap=50ns, mtu=2048, header=30, separated \
             by commas",
        ),
        (
            "axes = { signal_rate = [\"native\", \"FRD\"] }",
            "plans/x.toml:7: unknown signal_rate \"FRD\" in [[experiment]]: did you mean \"FDR\"?",
        ),
        (
            "[[experiment]]\nname = \"b\"\npattern = \"pingpong\"",
            "plans/x.toml:9: unknown pattern \"pingpong\" in [[experiment]]: did you mean \"ping-pong\"?",
        ),
    ] {
        assert_eq!(refusal(experiment), error);
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (experiment, error) in [
        (
            "axes = { size_bytes = [] }",
            "plans/x.toml:7: the axis size_bytes of experiment \"lat\" is empty: give it a value or leave it out",
        ),
        (
            "axes = { size_bytes = [4, \"4\"] }",
            "plans/x.toml:7: the axis size_bytes of experiment \"lat\" has 4 twice: use repetitions to measure a point \
             again",
        ),
        (
            "[experiment.axes]\nendpoint = \"tcp\"\nsize_bytes = [4, 0]",
            "plans/x.toml:9: size_bytes of experiment \"lat\" has 0: a message over TCP has at least 1 byte",
        ),
        (
            "axes = { mtu_bytes = 1500 }",
            "plans/x.toml:7: mtu_bytes 1500 of experiment \"lat\" is not a path MTU: it must be 256, 512, 1024, 2048 or \
             4096",
        ),
        (
            "[experiment.axes]\nservice = [\"RC\", \"UD\"]\nmtu_bytes = [1024, 4096]\nsize_bytes = \"4..4096\"",
            "plans/x.toml:10: size_bytes 2048 of experiment \"lat\" is above its mtu_bytes 1024, and UD carries a \
             message in one packet: end the sizes at 1024 or give UD a separate experiment",
        ),
        (
            "tx_depth = 0",
            "plans/x.toml:7: tx_depth of experiment \"lat\" is 0: a queue holds at least 1 request",
        ),
        (
            "rx_depth = 0",
            "plans/x.toml:7: rx_depth of experiment \"lat\" is 0: a queue holds at least 1 request",
        ),
        (
            "iterations = 0",
            "plans/x.toml:7: iterations of experiment \"lat\" is 0: measure at least 1 message",
        ),
        ("launches = 0", "plans/x.toml:7: launches of experiment \"lat\" is 0: it must be at least 1"),
        ("repetitions = 0", "plans/x.toml:7: repetitions of experiment \"lat\" is 0: it must be at least 1"),
        (
            "axes = { signal_interval = 0 }",
            "plans/x.toml:7: signal_interval of experiment \"lat\" is 0: it must be at least 1",
        ),
        (
            "duration = \"-5s\"",
            "plans/x.toml:7: duration in [[experiment]]: cannot read \"-5s\" as a duration: it does not start with a \
             digit; write 5s or 200ms",
        ),
        (
            "timeout = \"0s\"",
            "plans/x.toml:7: timeout of experiment \"lat\" is 0 s: it must be above zero and at most 30 days",
        ),
        (
            "duration = \"5s\"\niterations = 5",
            "plans/x.toml:7: experiment \"lat\" has both iterations and duration: keep one of them",
        ),
        (
            "duration = \"5s\"\ntimeout = \"4s\"",
            "plans/x.toml:8: timeout of experiment \"lat\" is 4 s, but its duration is 5 s: raise timeout or shorten \
             duration",
        ),
        (
            "tx_depth = 16\naxes = { signal_interval = 32 }",
            "plans/x.toml:8: signal_interval 32 of experiment \"lat\" is above its tx_depth 16: the send queue would \
             be full before a completion frees it, so lower signal_interval or raise tx_depth",
        ),
        (
            "axes = { direction = \"bi\" }",
            "plans/x.toml:7: experiment \"lat\" has the pattern \"ping-pong\", which has no direction \"bi\": use the \
             pattern \"stream\" (rdmascope bw)",
        ),
        (
            "repetitions = 100001",
            "plans/x.toml: the plan asks for 100001 points, more than 100000: shorten an axis or split the plan",
        ),
        (
            "repetitions = 4000000000\naxes = { size_bytes = \"1..1GiB\" }",
            "plans/x.toml: the plan asks for 124000000000 points, more than 100000: shorten an axis or split the plan",
        ),
    ] {
        assert_eq!(refusal(experiment), error);
    }
}

#[test]
fn what_is_missing_is_named() {
    for (text, error) in [
        ("title = \"X\"", "plans/x.toml: the plan has no \"name\": add name = \"my-plan\""),
        ("name = \"x\"", "plans/x.toml: the plan has no \"title\": add title = \"What is measured\""),
        (
            "name = \"x\"\ntitle = \"X\"",
            "plans/x.toml: the plan has no experiment: add an [[experiment]] with a name and a pattern",
        ),
        (HEAD, "plans/x.toml:4: [[experiment]] has no \"name\": add name = \"latency\""),
        (
            "[[experiment]]\nname = \"a\"",
            "plans/x.toml:1: [[experiment]] has no \"pattern\": add pattern = \"ping-pong\" or pattern = \"stream\"",
        ),
        (
            "[[experiment]]\nname = \"a b\"\npattern = \"stream\"",
            "plans/x.toml:2: the name \"a b\" cannot be used: names are made of letters, digits, '-' and '_'",
        ),
        ("name =", "plans/x.toml:1: this is not TOML: string values must be quoted, expected literal string"),
    ] {
        assert_eq!(resolved(text, &[], false).expect_err(text).to_string(), error);
    }
    assert_eq!(
        refusal("[[experiment]]\nname = \"lat\"\npattern = \"stream\""),
        "plans/x.toml:8: two experiments are named \"lat\": give each experiment a different name"
    );
}

#[test]
fn figures_show_what_is_measured() {
    let figure = |lines: &str| refusal(&format!("[[figure]]\nkind = \"bars\"\ntitle = \"T\"\n{lines}"));
    for (lines, error) in [
        (
            "experiments = [\"latt\"]",
            "plans/x.toml:7: the figure \"T\" shows an unknown experiment \"latt\": did you mean \"lat\"?",
        ),
        (
            "experiments = [\"lat\"]\nx = \"size\"",
            "plans/x.toml:7: the figure \"T\" uses an unknown axis \"size\": did you mean \"size_bytes\"?",
        ),
        (
            "experiments = [\"lat\"]\nwhere = { servce = \"RC\" }",
            "plans/x.toml:7: the figure \"T\" uses an unknown axis \"servce\": did you mean \"service\"?",
        ),
        (
            "experiments = [\"lat\"]\nx = \"size_bytes\"\ny = \"latency.p50\"",
            "plans/x.toml:7: the figure \"T\" shows an unknown quantity \"latency.p50\": did you mean \
             \"latency.p50_ns\"?",
        ),
        (
            "experiments = [\"lat\"]\nx = \"size_bytes\"",
            "plans/x.toml:7: the figure \"T\" cannot be read: it has no \"y\", which every kind except costs, histogram, \
             link-rates and published needs",
        ),
        (
            "experiments = [\"lat\"]\nx = \"size_bytes\"\ny = \"latency.p50_ns\"\nlog_counts = true",
            "plans/x.toml:7: the figure \"T\" cannot be read: its kind has no \"log_counts\": leave it out",
        ),
        (
            "unit = \"furlong\"",
            "plans/x.toml:10: the figure \"T\" cannot be read: unknown unit \"furlong\": use one of ns, us, ms, s, \
             Gb/s, Mb/s, MB/s, MiB/s, Mmsg/s",
        ),
    ] {
        assert_eq!(figure(lines), error);
    }
    let other = |kind: &str, lines: &str| {
        let error = refusal(&format!(
            "[[figure]]\nkind = \"{kind}\"\ntitle = \"T\"\nexperiments = [\"lat\"]\n{lines}"
        ));
        error.strip_prefix("plans/x.toml:7: the figure \"T\" cannot be read: ").expect(&error).to_owned()
    };
    assert_eq!(other("histogram", "y = \"latency.p50_ns\""), "its kind has no \"y\": leave it out");
    let series =
        "x = \"size_bytes\"\ny = \"latency.p50_ns\"\nseries = [\"experiment\", \"latency\"]\nunit = \"Gb/s\"";
    assert_eq!(other("table", series), "latency.p50_ns is not measured in Gb/s", "the series are right");
    assert_eq!(other("histogram", "limits_ns = [9, 9]"), "limits_ns from 9 to 9 is an empty range");
    let lines = "x = \"size_bytes\"\ny = \"latency.p50_ns\"\nmarker = \"operation\"";
    assert_eq!(other("lines", lines), "its marker \"operation\" is not in series: add it to series");
    let rate = "x = \"size_bytes\"\ny = \"throughput.bytes_per_s\"\ndifference = true";
    let no_time = "throughput.bytes_per_s is not a time: leave out difference and above_first";
    assert_eq!(other("table", rate), no_time);
    assert_eq!(other("histogram", "difference = true"), "its kind has no \"difference\": leave it out");
    assert_eq!(
        other("table", "difference = true\nabove_first = true"),
        "its kind has no \"difference\": leave it out"
    );
    assert_eq!(other("histogram", "above_first = true"), "its kind has no \"above_first\": leave it out");
    assert_eq!(
        other("table", "marked = { y = \"pipeline.missed_share\", above = 0.1 }"),
        "its kind has no \"marked\": leave it out"
    );
    assert_eq!(
        other("surface", "series = []"),
        "a surface is over x and one other axis: name one axis in \"series\""
    );
    let marked = "series = [\"service\"]\nmarked = { y = \"pipeline.missed_share\", above = 10 }";
    assert_eq!(other("surface", marked), "it is marked above 10, which is not a share: give 0 to 1");
    assert_eq!(other("lines", "reason = \"R\""), "its kind has no \"reason\": leave it out");
    assert_eq!(other("published", "reason = \"R\""), "its kind has no \"experiments\": leave it out");
    let alone = refusal("[[figure]]\nkind = \"published\"\ntitle = \"T\"\nreason = \"R\"");
    assert!(
        alone.ends_with("it has no \"reason\" or no [figure.reference], which the kind published needs"),
        "{alone}"
    );
}

#[test]
fn references_are_read_beside_the_plan_and_must_be_whole() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "{HEAD}name = \"lat\"\npattern = \"ping-pong\"\n[[figure]]\nkind = \"link-rates\"\ntitle = \"T\"\n\
         reference = {{ file = \"r.csv\", source = \"S\" }}"
    );
    let resolve = || {
        let plan = Plan::parse(&text, "plans/x.toml", directory.path()).unwrap();
        resolve(&plan, &Options::default())
    };
    assert_eq!(
        resolve().unwrap_err().to_string(),
        "plans/x.toml:7: cannot read the reference \"r.csv\" of the figure \"T\": No such file or directory (os error 2)"
    );
    let write = |text: &str| std::fs::write(directory.path().join("r.csv"), text).unwrap();
    write("a,b\n");
    assert_eq!(
        resolve().unwrap_err().to_string(),
        "plans/x.toml:7: cannot read the reference \"r.csv\" of the figure \"T\": it has no rows"
    );
    write("a,b\n1,2\n3\n");
    assert_eq!(
        resolve().unwrap_err().to_string(),
        "r.csv:3: the row has 1 cells and the heading 2: give every row as many cells as the heading"
    );
    write("a,b\n1,NA\n3,4.50\n");
    let table = resolve().unwrap().figures[0].reference.clone().unwrap().table.unwrap();
    assert_eq!(table.columns, ["a", "b"]);
    assert_eq!(table.rows, [["1", "NA"], ["3", "4.50"]]);
    let file = directory.path().join("r.csv");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", file).unwrap();
    assert!(resolve().unwrap_err().to_string().ends_with("\"T\": it is not a regular file"));
}

#[test]
fn operations_that_cannot_be_are_refused_by_name() {
    let axes = |axes: &str| refusal(&format!("[experiment.axes]\n{axes}"));
    for (given, what) in [
        (
            "service = [\"RC\", \"UC\"]\noperation = \"read\"",
            "RDMA Read over UC, which is not possible: it needs a response, which only RC has: give it an experiment \
             with service RC",
        ),
        ("service = \"UC\"\noperation = \"fetch_add\"", "fetch-and-add over UC, which is not possible"),
        (
            "service = \"UD\"\noperation = \"write_imm\"",
            "RDMA Write with immediate over UD, which is not possible",
        ),
        (
            "operation = [\"send\", \"compare_swap\"]",
            "compare-and-swap of anything but 8 B, which is not possible",
        ),
        ("operation = \"write\"\npoll = \"event\"", "an RDMA Write causes no completion at the receiver"),
        ("operation = \"read\"\ninline = true", "RDMA Read inline, which is not possible"),
        ("service = \"UC\"\nsetup = \"rdma_cm\"", "UC through RDMA CM, which is not possible"),
        ("size_bytes = [2, 8]\nsge = 4", "a message of 2 B in 4 elements, which is not possible"),
        ("size_bytes = 8\nsge = 4\ninline = true", "inline data in several elements, which is not possible"),
        ("queue_pairs = 20000", "queue_pairs of experiment \"lat\" is 20000: it must be at most 16384"),
        ("post_list = 4", "times every message separately: post_list is for the pattern"),
        ("sge = 0", "sge of experiment \"lat\" is 0: it must be at least 1"),
    ] {
        let error = axes(given);
        assert!(error.starts_with("plans/x.toml:") && error.contains(what), "{given}: {error}");
    }
    let text = format!("{HEAD}name = \"bw\"\npattern = \"stream\"\naxes = {{ post_list = 30 }}");
    let error = resolved(&text, &[], false).unwrap_err().to_string();
    assert!(
        error.contains("post_list 30 of experiment \"bw\" does not fit its signal_interval 100"),
        "{error}"
    );
    assert_eq!(points("axes = { operation = \"fetch_add\" }", &[], false)[0].message.size_bytes, 8);
}

#[test]
fn one_way_refuses_what_its_stamps_cannot_have() {
    let error = |rest: &str| {
        let text = format!("{HEAD}name = \"ow\"\npattern = \"one-way\"\n{rest}");
        resolved(&text, &[], false).unwrap_err().to_string()
    };
    let axes = |axes: &str| error(&format!("[experiment.axes]\n{axes}"));
    for (given, what) in [
        ("operation = \"send\"", "Send one way, which is not possible: immediate data numbers the messages"),
        ("operation = \"read\"", "RDMA Read one way, which is not possible"),
        ("queue_pairs = 2", "several queue pairs one way, which is not possible"),
        ("sge = 2", "several elements one way, which is not possible"),
        ("stamp = \"sent\"\ninline = [false, true]", "inline data is copied when it is posted"),
        (
            "stamp = \"sent\"\nsize_bytes = 4",
            "with messages of 4 B, which is not possible: a stamp has 8 bytes",
        ),
        ("stamp = \"sent\"\npoll = \"hybrid\"", "a sender that sleeps cannot write the stamp"),
        ("stamp = \"sent\"\nsend_poll = \"event\"", "a sender that sleeps cannot write the stamp"),
        ("stamp = \"sent\"\nburst = 9", "the next message could replace one whose stamp is not read yet"),
        ("signal_interval = \"half\"", "signal_interval 64 with a burst of 1, which is not possible"),
        ("poll = \"hybrid\"\nsend_poll = \"busy\"", "\"hybrid\" already says how the sender waits"),
        ("signal_interval = 4", "signal_interval 4 with a burst of 1, which is not possible"),
        ("pause_ns = \"2min\"", "a pause of more than a minute"),
        ("buffers = 2000000", "more than 1048576 buffers"),
        ("rx_fill = 513", "rx_fill 513 of experiment \"ow\" is above its rx_depth 512"),
        ("rx_depth = [8, 64]\nrx_fill = 9", "rx_fill 9 of experiment \"ow\" is above its rx_depth 8"),
        ("burst = 0", "burst of experiment \"ow\" is 0: it must be at least 1"),
        ("direction = \"bi\"", "has the pattern \"one-way\", which has no direction \"bi\""),
        (
            "service = \"UD\"\noperation = \"write_imm\"",
            "RDMA Write with immediate over UD, which is not possible",
        ),
        ("pause_ns = \"soon\"", "pause_ns in [[experiment]]"),
        ("send_poll = \"hybrid\"", "unknown send_poll \"hybrid\""),
    ] {
        let error = axes(given);
        assert!(error.starts_with("plans/x.toml:") && error.contains(what), "{given}: {error}");
    }
    assert!(error("duration = \"5s\"").contains("the stamps of all messages are kept in memory"));
    assert!(error("iterations = 1048576").contains("more than 1048576 messages one way"));
    let other = refusal("[experiment.axes]\nburst = 4");
    assert!(
        other.contains("burst with the pattern \"ping-pong\", which is not possible: it is for"),
        "{other}"
    );
}

#[test]
fn means_that_are_to_be_known_have_repetitions_of_their_own() {
    let count = |lines: &str| points(lines, &[], false).len();
    assert_eq!(count("within = \"2.5 %\""), 3);
    assert_eq!(count("within = \"2.5 %\"\nrepetitions_max = 2"), 2);
    assert_eq!(count("within = \"2.5%\"\nrepetitions = 5"), 5);
    let text = format!("{HEAD}name = \"lat\"\npattern = \"ping-pong\"\nwithin = \"2.5 %\"");
    let plan = resolved(&text, &[], false).unwrap().plan;
    let asked = &plan["experiments"][0];
    assert_eq!((&asked["within"], &asked["repetitions_max"]), (&0.025.into(), &30.into()));
    for (lines, words) in [
        ("within = 5", "must be a share such as \"2.5 %\""),
        ("within = \"five\"", "cannot read \"five\" as a share: write one such as 2.5%"),
        ("within = \"5 %\"\nrepetitions = 1", "one repetition has no confidence interval: give 2 or more"),
        ("within = \"5 %\"\nrepetitions_max = 1", "at least 1 and at most 1 repetitions"),
        ("within = \"5 %\"\nrepetitions = 5\nrepetitions_max = 4", "at least 5 and at most 4 repetitions"),
        ("repetitions_max = 4", "or give repetitions only"),
        (
            "within = \"5 %\"\nlaunches = 3",
            "within would add repetitions to the last launch only: give launches without within",
        ),
    ] {
        let error = refusal(lines);
        assert!(error.contains(words), "{lines}: {error}");
    }
}

#[test]
fn one_way_has_axes_and_defaults_of_its_own() {
    let text = format!("{HEAD}name = \"ow\"\npattern = \"one-way\"");
    let resolve = |set: &[&str]| resolved(&text, set, false).unwrap().points;
    let point = resolve(&[]).remove(0);
    assert_eq!((point.length, point.warmup, point.message.size_bytes), (Length::Iterations(8000), 800, 32));
    let burst = |point: &PointSpec| (axis::PAUSE_NS.at(&point.axes), axis::BURST.at(&point.axes));
    assert_eq!((point.message.operation, burst(&point)), (Operation::SendImm, (Some(0), Some(Some(1)))));
    assert_eq!((point.message.poll, point.message.send_poll), (QueuePoll::Busy, QueuePoll::Busy));
    assert_eq!(
        (axis::STAMP.at(&point.axes), point.message.buffers, point.message.rx_fill),
        (Some(Stamp::Submitted), None, point.message.rx_depth)
    );
    let points = resolve(&["poll=busy,event,event_repoll,hybrid", "pause_ns=0,5.5us,1s", "burst=all"]);
    let polls: Vec<_> =
        points.iter().step_by(3).map(|point| (point.message.poll, point.message.send_poll)).collect();
    let both = |poll| (poll, poll);
    let hybrid = (QueuePoll::Busy, QueuePoll::Event);
    let expected = [both(QueuePoll::Busy), both(QueuePoll::Event), both(QueuePoll::EventRepoll), hybrid];
    assert_eq!(polls, expected);
    let pauses: Vec<_> = points[..3].iter().map(burst).collect();
    assert_eq!(pauses, [0, 5500, 1_000_000_000].map(|pause_ns| (Some(pause_ns), Some(None))));
    let points =
        resolve(&["burst=all", "tx_depth=64,256", "signal_interval=1,half", "rx_depth=16", "rx_fill=8"]);
    let depths: Vec<_> =
        points.iter().map(|point| (point.message.tx_depth, point.message.signal_interval)).collect();
    assert_eq!(depths, [(64, 1), (64, 32), (256, 1), (256, 128)]);
    assert_eq!((points[0].message.rx_depth, points[0].message.rx_fill), (16, 8));
    let point = resolve(&["send_poll=event", "poll=busy"]).remove(0);
    assert_eq!((point.message.poll, point.message.send_poll), hybrid);
}

#[test]
fn words_stand_for_what_the_devices_have() {
    let axes = "[experiment.axes]\nmtu_bytes = [\"active\", 512]\noutstanding_reads = [\"max\", 2]";
    let points = points(axes, &[], false);
    let values: Vec<_> =
        points.iter().map(|point| (point.message.mtu_bytes, point.message.outstanding_reads)).collect();
    assert_eq!(values, [(None, None), (None, Some(2)), (Some(512), None), (Some(512), Some(2))]);
    assert_eq!(points[0].axes["mtu_bytes"], "active");
}

#[test]
fn defaults_are_perftests() {
    let point = points("", &[], false).remove(0);
    assert_eq!(
        (
            point.message.tx_depth,
            point.message.rx_depth,
            point.message.mtu_bytes,
            point.message.signal_interval
        ),
        (128, 512, None, 1)
    );
    assert_eq!((point.length, point.warmup, point.message.size_bytes), (Length::Iterations(1000), 100, 2));
    assert!(!point.message.inline && point.keep_samples);
    assert_eq!(point.axes.len(), 10, "what few plans vary is not shown: {:?}", point.axes);
    assert_eq!(
        (point.message.sge, point.message.post_list, point.message.queue_pairs, point.message.setup),
        (1, 1, 1, Setup::Exchange)
    );
    let text = format!("{HEAD}name = \"bw\"\npattern = \"stream\"");
    let point = resolved(&text, &[], false).unwrap().points.remove(0);
    assert_eq!(
        (point.length, point.message.signal_interval, point.message.size_bytes),
        (Length::Iterations(5000), 100, 65536)
    );
    let point = resolved(&text, &["tx_depth=16"], false).unwrap().points.remove(0);
    assert_eq!(point.message.signal_interval, 16);
    let point = resolved(&text, &["duration=5s"], false).unwrap().points.remove(0);
    assert_eq!((point.length, point.timeout_s), (Length::Duration(5.0), 65.0));
}

#[test]
fn points_come_in_the_written_order_with_the_size_innermost() {
    let experiment = "repetitions = 2\n[experiment.axes]\nsize_bytes = [8, 4]\nsignal_rate = [\"native\", \"FDR\"]\n\
                      service = [\"UC\", \"RC\"]";
    let points = points(experiment, &[], false);
    let seen: Vec<_> = points
        .iter()
        .map(|p| {
            (p.id, p.repetition, p.link.map(|link| link.to_string()), p.message.service, p.message.size_bytes)
        })
        .collect();
    let mut expected = Vec::new();
    for repetition in 0..2 {
        for link in [None, Some("4X FDR".to_owned())] {
            for service in [Service::Uc, Service::Rc] {
                for size in [8, 4] {
                    expected.push((expected.len() as u64, repetition, link.clone(), service, size));
                }
            }
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn every_launch_measures_each_combination_in_all_its_repetitions() {
    let points = points("launches = 3\nrepetitions = 2\n[experiment.axes]\nsize_bytes = [8, 4]", &[], false);
    let seen: Vec<_> = points.iter().map(|p| (p.launch, p.repetition, p.message.size_bytes)).collect();
    let times = [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5)];
    let expected = times.map(|(launch, repetition)| [8, 4].map(|size| (Some(launch), repetition, size)));
    assert_eq!(seen, expected.concat());
}

/// A point that needs other ranks ends the running ranks, so a launch has each kind of ranks once.
#[test]
fn a_launch_measures_all_repetitions_of_the_same_ranks_together() {
    let axes = "[experiment.axes]\nendpoint = [\"verbs\", \"mpi\"]\nmpi_transport = [\"shm\", \"tcp\"]\n\
                size_bytes = [8, 4]";
    let points = points(&format!("launches = 2\nrepetitions = 2\n{axes}"), &[], false);
    let seen: Vec<_> = points
        .iter()
        .map(|p| {
            let transport = p.axes.get("mpi_transport").and_then(|value| value.as_str());
            (p.id, p.launch, transport, p.repetition, p.message.size_bytes)
        })
        .collect();
    let mut expected = Vec::new();
    for launch in 0..2 {
        for transport in [None, Some("shm"), Some("tcp")] {
            for repetition in [2 * launch, 2 * launch + 1] {
                for size in [8, 4] {
                    expected.push((expected.len() as u64, Some(launch), transport, repetition, size));
                }
            }
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn a_signal_rate_is_the_rate_of_the_link_that_is_modelled() {
    let links = |axes: &str| -> Vec<_> {
        let points = points(&format!("axes = {{ {axes} }}"), &[], false);
        points.iter().map(|p| p.link.map_or_else(|| "as it is".to_owned(), |link| link.to_string())).collect()
    };
    assert_eq!(links("size_bytes = 4"), ["as it is"]);
    assert_eq!(links("signal_rate = [\"native\", \"QDR\"]"), ["as it is", "4X QDR"]);
    assert_eq!(links("link = [\"none\", \"10Gb/s, gap=0.5us\"]"), ["as it is", "10Gb/s,gap=500ns"]);
    assert_eq!(
        links("link = \"latency=700ns\", signal_rate = [\"native\", \"SDR\"]"),
        ["latency=700ns", "4X SDR,latency=700ns"]
    );
}

#[test]
fn bytes_max_gives_large_messages_fewer_iterations() {
    let experiment =
        "iterations = 1000\nbytes_max = \"1MiB\"\naxes = { size_bytes = [4, \"4KiB\", \"8MiB\"] }";
    let lengths: Vec<_> = points(experiment, &[], false).iter().map(|p| (p.length, p.warmup)).collect();
    let iterations = Length::Iterations;
    assert_eq!(lengths, [(iterations(1000), 100), (iterations(256), 26), (iterations(10), 1)]);
    // Never more than was asked for.
    let few = points(experiment, &["iterations=3"], false);
    assert!(few.iter().all(|point| point.length == iterations(3)));
}

#[test]
fn quick_and_set_are_layers() {
    let experiment = "duration = \"5s\"\n[experiment.axes]\nsize_bytes = \"4..64\"\nservice = [\"RC\", \"UC\"]\n\
                      [experiment.quick]\niterations = 7\naxes = { size_bytes = 16 }";
    assert_eq!(points(experiment, &[], false).len(), 10);
    let quick = points(experiment, &[], true);
    assert_eq!(sizes(&quick), [16, 16]);
    assert_eq!(quick[0].length, Length::Iterations(7));
    assert_eq!(points(experiment, &["service=RC", "size_bytes=4..8KiB"], true).len(), 12);
    let set = points(experiment, &["experiment.lat.iterations=9", "axes.service=RC"], true);
    assert_eq!((set.len(), set[0].length), (1, Length::Iterations(9)));
}

#[test]
fn overrides_fail_in_their_own_words() {
    for (set, error) in [
        (
            "iterations",
            "--set iterations: there is no '=': give KEY=VALUE or experiment.NAME.KEY=VALUE, e.g. iterations=100",
        ),
        (
            "iteratons=3",
            "--set iteratons=3: unknown key \"iteratons\" in an experiment: did you mean \"iterations\"?",
        ),
        (
            "iterations=0",
            "--set iterations=0: iterations of experiment \"lat\" is 0: measure at least 1 message",
        ),
        (
            "experiment.lar.warmup=3",
            "--set experiment.lar.warmup=3: unknown key \"lar\" in the experiments of the plan: did you mean \"lat\"?",
        ),
        (
            "service=RC,UX",
            "--set service=RC,UX: unknown service \"UX\" in an experiment: use one of RC, UC, UD",
        ),
        (
            "service=",
            "--set service=: there is no value: give KEY=VALUE or experiment.NAME.KEY=VALUE, e.g. iterations=100",
        ),
    ] {
        assert_eq!(refusal_set("", &[set]), error);
    }
}

#[test]
fn flags_build_the_same_plan() {
    let settings = Settings { iterations: Some(5), ..Settings::default() }
        .axis(axis::DIRECTION.value(Flow::Bi))
        .axis(axis::SIZE_BYTES.value(64));
    let plan = Plan::new("bw", "Bandwidth").experiment("bw", Pattern::STREAM, settings);
    let point = resolve(&plan, &Options::default()).unwrap().points.remove(0);
    assert_eq!(
        (axis::DIRECTION.at(&point.axes), point.message.size_bytes, point.length),
        (Some(Flow::Bi), 64, Length::Iterations(5))
    );
    let settings = Settings { tx_depth: Some(0), ..Settings::default() };
    let plan = Plan::new("bw", "Bandwidth").experiment("bw", Pattern::STREAM, settings);
    let error = resolve(&plan, &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "the flags: tx_depth of experiment \"bw\" is 0: a queue holds at least 1 request");
}

/// The plan in the documentation of a module.
fn documented(module: &str) -> String {
    let blocks = module.split("//! ```").filter(|block| block.starts_with("toml"));
    let lines = blocks.flat_map(|block| block.lines().skip(1));
    lines.map(|line| format!("{}\n", line.trim_start_matches("//!").trim_start())).collect()
}

#[test]
fn the_documented_plan_is_a_plan() {
    let text = documented(include_str!("mod.rs"));
    let kinds: Vec<_> = parse(&text).unwrap().findings.iter().map(|finding| finding.kind.name()).collect();
    assert_eq!(kinds, ["change", "value", "flat", "step", "crossover", "order", "falls", "linear", "argmin"]);
    assert_eq!(resolved(&text, &[], false).unwrap().points.len(), 2 * 3 * 2 * 22 + 5);
    assert_eq!(resolved(&text, &[], true).unwrap().points.len(), 2 * 3 * 2 * 2 + 5);
}

#[test]
fn the_experiments_that_rooms_document_are_experiments() {
    let rooms = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/patterns");
    let mut found = 0;
    for room in std::fs::read_dir(rooms).unwrap() {
        let module = std::fs::read_to_string(room.unwrap().path().join("mod.rs")).unwrap_or_default();
        let experiment = documented(&module);
        if experiment.is_empty() {
            continue;
        }
        let text = format!("name = \"x\"\ntitle = \"X\"\n{experiment}");
        assert!(!resolved(&text, &[], false).unwrap().points.is_empty(), "{text}");
        found += 1;
    }
    assert_eq!(found, 7);
}

#[test]
fn bundled_plans_resolve_in_both_forms() {
    for bundled in bundled() {
        let plan = bundled.plan().unwrap();
        assert_eq!(plan.name, bundled.name);
        for quick in [false, true] {
            let resolved = resolve(&plan, &Options { quick, set: Vec::new() }).unwrap();
            bounds(&resolved, bundled.name, quick);
            for figure in resolved.figures.iter().filter(|figure| !figure.experiments.is_empty()) {
                let is_shown = |point: &&PointSpec| {
                    selection::picks(&figure.experiments, &figure.only, &point.experiment, &point.axes)
                };
                let shown = resolved.points.iter().filter(is_shown);
                assert!(shown.count() > 0, "{} shows nothing of {}", figure.title, bundled.name);
            }
        }
    }
}

/// Checks that a plan, and above all its quick form, does not take too long, at 1 GB/s and 5 us per
/// message, which any software device reaches.
fn bounds(resolved: &Resolved, name: &str, quick: bool) {
    let seconds = |point: &PointSpec| match point.length {
        Length::Iterations(iterations) => {
            let is_both_ways = axis::DIRECTION.at(&point.axes) == Some(Flow::Bi);
            let both_ways = if point.pattern == Pattern::PING_PONG || is_both_ways { 2.0 } else { 1.0 };
            let messages = both_ways * (iterations + point.warmup) as f64;
            // Samples take as long as their rate says, and the timer is tested alone for half a
            // second.
            let paced = match (axis::VALUES.at(&point.axes), axis::RATE_HZ.at(&point.axes)) {
                (Some(_), Some(rate_hz)) if quick => 0.5 + messages / rate_hz as f64,
                _ => 0.0,
            };
            // The set-up of a point, its messages and its bytes.
            0.1 + paced + messages * (5e-6 + point.message.size_bytes as f64 * 1e-9)
        }
        Length::Duration(duration_s) => duration_s,
    };
    let total: f64 = resolved.points.iter().map(seconds).sum();
    let limit = if quick { 60.0 } else { 1800.0 };
    assert!(total < limit, "{name} (quick: {quick}) takes {total:.0} s for {} points", resolved.points.len());
}

#[test]
fn gamess_2016_is_the_papers_matrix() {
    let plan = Plan::load("gamess-2016").unwrap();
    let resolved = resolve(&plan, &Options::default()).unwrap();
    let count = |experiment: &str, rate: &str| {
        resolved.points.iter().filter(|p| p.experiment == experiment && p.axes["signal_rate"] == rate).count()
    };
    // Tables 2 to 4: 22 sizes of RC and of UC, 11 of UD, at each of four rates.
    for rate in ["SDR", "DDR", "QDR", "FDR"] {
        assert_eq!((count("latency", rate), count("latency-ud", rate)), (44, 11));
        assert_eq!(count("throughput", rate), 88);
    }
    assert_eq!(count("throughput-ud", "native"), 22);
    assert_eq!(resolved.figures.len(), 1 + 3 + 1 + 6);
    for figure in &resolved.figures[..4] {
        let table = figure.reference.as_ref().and_then(|reference| reference.table.as_ref()).unwrap();
        let rows = [8, 22, 22, 11];
        assert!(rows.contains(&table.rows.len()), "{}", figure.title);
    }
}

#[test]
fn hoefler_2006_is_the_papers_matrix() {
    let resolved = resolve(&Plan::load("hoefler-2006").unwrap(), &Options::default()).unwrap();
    let of = |experiment: &str| {
        let points =
            resolved.points.iter().filter(|p| p.repetition == 0 && p.experiment.starts_with(experiment));
        points.cloned().collect::<Vec<_>>()
    };
    // Reads are noticed in two ways; 9 and 15 sizes at 1:1 and 1:15; n up to 15 at two sizes.
    assert_eq!([of("send").len(), of("rdmaw").len(), of("rdmar").len()], [156, 78, 156]);
    assert_eq!([of("datagrams").len(), of("atomics").len()], [120, 30]);
    assert!(resolved.points.iter().all(|point| point.message.mtu_bytes == Some(2048)));
    // Each datagram is one packet.
    assert!(of("datagrams").iter().all(|point| point.message.size_bytes <= 2048));
    assert_eq!(of("send-hosts").iter().filter_map(|point| axis::PEERS.at(&point.axes)).max(), Some(15));
    let figure = |n: u32| format!("Figure {n}: ");
    let shown = |n: u32| resolved.figures.iter().filter(|f| f.title.starts_with(&figure(n))).count();
    assert!((2..=7).all(|n| shown(n) > 0));
}

#[test]
fn sur_2007_is_the_papers_matrix() {
    let resolved = resolve(&Plan::load("sur-2007").unwrap(), &Options::default()).unwrap();
    let of = |experiment: &str| {
        let points =
            resolved.points.iter().filter(|p| p.repetition == 0 && p.experiment.starts_with(experiment));
        points.cloned().collect::<Vec<_>>()
    };
    // 1 B to 1 KiB with 1, 2, 4 and 8 pairs; Send for comparison, with the sizes that are inline.
    assert_eq!(
        [of("write").len(), of("read").len(), of("send").len(), of("bandwidth").len()],
        [44, 44, 9, 44]
    );
    assert!(of("write").iter().all(|point| point.message.inline == (point.message.size_bytes <= 256)));
    assert_eq!(of("read").iter().filter_map(|point| axis::PAIRS.at(&point.axes)).max(), Some(8));
    let shown = |part: char| resolved.figures.iter().any(|f| f.title.contains(&format!("2({part})")));
    assert!(('a'..='i').all(shown));
}

#[test]
fn plans_load_by_path_or_name() {
    assert_eq!(Plan::load("quick").unwrap().name, "quick");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/gamess-2016.toml");
    let plan = Plan::load(path).unwrap();
    assert!(resolve(&plan, &Options::default()).is_ok());
    assert_eq!(
        Plan::load("quik").unwrap_err().to_string(),
        "there is no plan \"quik\": no file has this name, and the plans that come with the program are quick, \
         applications, gamess-2016, gamess-2016-ipoib, hoefler-2006, hoefler-2006-barrier, layers, load, models, mpi, \
         potter-2018-hca, potter-2018-nodes, subramoni-2009, sur-2007: did you mean \"quick\"?"
    );
    assert_eq!(
        Plan::load("no/such.toml").unwrap_err().to_string(),
        "cannot read the plan no/such.toml: No such file or directory (os error 2)"
    );
}
