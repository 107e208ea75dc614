//! The program on a device of the kernel: everything is measured once, and failures are provoked
//! that only a device of the kernel has.
//!
//! `RDMASCOPE_KERNEL_DEVICE` names the device; without it, nothing here is tested. Tests that
//! change the host (the link of a software device, the mode of its node) need root, and change
//! software devices only.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use measure::record::{Clocks, LatencyKind, Point, Status};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::support::failures::{
    a_message_that_is_lost, a_peer_that_has_gone, a_peer_that_takes_nothing, assert_words,
};
use crate::support::{Ended, PROGRAM, Scratch, all_measured, finish, is_installed, skip};

/// Returns the device under test; without one, each test reports that it is skipped.
fn device() -> Option<String> {
    let name = std::env::var("RDMASCOPE_KERNEL_DEVICE").ok().filter(|name| !name.is_empty());
    if name.is_none() {
        eprintln!("SKIPPED: no kernel RDMA device is named by RDMASCOPE_KERNEL_DEVICE");
    }
    name
}

/// Returns the device if the host may be changed for it: it is software, and this is root.
fn device_to_disturb() -> Option<String> {
    let name = device()?;
    if !rustix::process::geteuid().is_root() {
        skip("root", "the host is changed in this test, which only root can");
        return None;
    }
    if described(&name)["kind"] != "kernel_software" {
        eprintln!("SKIPPED: {name} is hardware: its link and its node are left alone");
        return None;
    }
    Some(name)
}

/// Returns the output of `rdmascope devices --json`.
fn survey() -> Value {
    let ended = Scratch::new().run(&["devices", "--json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

fn described(name: &str) -> Value {
    let survey = survey();
    let devices = survey["devices"].as_array().unwrap();
    devices.iter().find(|device| device["name"] == name).unwrap_or_else(|| panic!("{survey:#}")).clone()
}

/// Returns the output of `rdmascope doctor --json`, and its exit status.
fn doctor(arguments: &[&str]) -> (Value, Option<i32>) {
    let ended = Scratch::new().run(&[&["doctor", "--json"], arguments].concat());
    assert_eq!(ended.stderr, "", "{ended:?}");
    (serde_json::from_str(&ended.stdout).unwrap(), ended.status)
}

/// Returns the findings of a check: their severities, what was found, and the remedies.
fn findings<'a>(report: &'a Value, check: &str) -> Vec<(&'a str, &'a str, &'a str)> {
    let all = report["findings"].as_array().unwrap().iter();
    let of_check = all.filter(|finding| finding["check"] == check);
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    of_check
        .map(|finding| (text(&finding["severity"]), text(&finding["found"]), text(&finding["remedy"])))
        .collect()
}

#[test]
fn the_device_is_listed_with_its_port_and_its_gids() {
    let Some(name) = device() else { return };
    let device = described(&name);
    assert!(device["provider"].as_str().unwrap().starts_with("libibverbs"), "{device:#}");
    let port = &device["ports"][0];
    assert_eq!((&port["port"], &port["state"]), (&1.into(), &"active".into()), "{device:#}");
    let active = port["active_mtu_bytes"].as_u64().unwrap();
    assert!([256, 512, 1024, 2048, 4096].contains(&active), "{device:#}");
    if port["protocol"] == "RoCE" {
        assert!(port["interface_mtu_bytes"].as_u64().unwrap() > active, "{device:#}");
        let index = &port["default_gid_index"];
        let gids = port["gids"].as_array().unwrap();
        let default = gids.iter().find(|gid| gid["index"] == *index).expect("one is the default");
        assert!(default["type"].as_str().unwrap().starts_with("RoCE v"), "{device:#}");
        assert_eq!(default["interface"], port["interface"], "{device:#}");
    }
    let text = Scratch::new().run(&["devices"]).stdout;
    assert!(text.lines().any(|line| line.starts_with(&name)), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn it_is_measured_before_softdev_where_nobody_says() {
    let Some(name) = device() else { return };
    let survey = survey();
    assert_eq!(survey["default_device"], name, "{survey:#}");
    let scratch = Scratch::alone();
    let stdout = succeed(&scratch, &["lat", "send", "--local", "-n", "20"]);
    let banner = stdout.lines().find(|line| line.starts_with("# device: ")).unwrap();
    assert!(banner.starts_with(&format!("# device: {name} (")), "{banner}");
    scratch.assert_nothing_left();
}

#[test]
fn doctor_finds_nothing_that_keeps_it_from_being_measured() {
    let Some(name) = device() else { return };
    let (report, status) = doctor(&["-d", &name]);
    assert_eq!(status, Some(0), "{report:#}");
    let good = |check: &str| {
        let found = findings(&report, check);
        assert!(
            !found.is_empty() && found.iter().all(|(severity, ..)| *severity == "good"),
            "{check}: {report:#}"
        );
    };
    ["libraries", "modules", "device nodes", "port state", "registration"].into_iter().for_each(good);
    let port = &described(&name)["ports"][0];
    if port["protocol"] == "RoCE" && port["active_mtu_bytes"] != port["max_mtu_bytes"] {
        let [(severity, found, remedy)] = findings(&report, "MTU")[..] else { panic!("{report:#}") };
        assert_eq!(severity, "warning");
        assert!(found.contains(&format!("has an MTU of {}", port["interface_mtu_bytes"])), "{found}");
        assert!(remedy.ends_with(" mtu 4200"), "{remedy}");
    }
}

/// Runs the program to its end, which must be exit status 0. Warnings because of a busy emulator do
/// not matter here.
#[track_caller]
fn succeed(scratch: &Scratch, words: &[&str]) -> String {
    let ended = scratch.run(words);
    assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
    ended.stdout
}

/// Every operation over every service that has it, once as a ping-pong and once as a stream. They
/// are in one plan, because starting agents takes most of the time in an emulator.
const OPERATIONS: &str = r#"
name = "operations"
title = "Every operation"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 20
[experiment.axes]
operation = ["send", "send_imm", "write", "write_imm", "read"]
size_bytes = 64
[[experiment]]
name = "latency-atomics"
pattern = "ping-pong"
iterations = 20
[experiment.axes]
operation = ["compare_swap", "fetch_add"]
[[experiment]]
name = "latency-uc"
pattern = "ping-pong"
iterations = 20
[experiment.axes]
service = "UC"
operation = ["send", "send_imm", "write", "write_imm"]
size_bytes = 64
[[experiment]]
name = "latency-ud"
pattern = "ping-pong"
iterations = 20
[experiment.axes]
service = "UD"
operation = ["send", "send_imm"]
poll = ["busy", "event"]
size_bytes = 64
[[experiment]]
name = "throughput"
pattern = "stream"
iterations = 20
[experiment.axes]
operation = ["send", "send_imm", "write", "write_imm", "read"]
direction = ["uni", "bi"]
size_bytes = 1024
[[experiment]]
name = "throughput-atomics"
pattern = "stream"
iterations = 20
[experiment.axes]
operation = ["compare_swap", "fetch_add"]
[[experiment]]
name = "throughput-uc"
pattern = "stream"
iterations = 20
[experiment.axes]
service = "UC"
operation = ["send", "send_imm", "write", "write_imm"]
size_bytes = 1024
[[experiment]]
name = "throughput-ud"
pattern = "stream"
iterations = 20
[experiment.axes]
service = "UD"
operation = ["send", "send_imm"]
size_bytes = 64
"#;

/// Both ranks on one CPU: an emulator on a busy host rarely runs two at the same time, and the
/// numbers are not used.
const ONE_CPU: [&str; 2] = ["--cpus", "0,0"];

#[test]
fn every_operation_is_measured_over_every_service_that_has_it() {
    let Some(device) = device() else { return };
    let scratch = Scratch::alone();
    scratch.write("plan.toml", OPERATIONS);
    let run = [&["run", "plan.toml", "--out", "record", "-d", &device][..], &ONE_CPU].concat();
    succeed(&scratch, &run);
    let (_, points) = scratch.record("record");
    assert_eq!(points.len(), 5 + 2 + 4 + 4 + 10 + 2 + 4 + 2);
    for point in &points {
        assert_eq!(point.status, Status::Measured, "{point:#?}");
        let is_fetch =
            ["read", "compare_swap", "fetch_add"].contains(&point.axes["operation"].as_str().unwrap());
        let kind = point.latency.as_ref().map(|latency| latency.kind);
        let expected = if is_fetch { LatencyKind::Rtt } else { LatencyKind::RttHalf };
        assert_eq!(kind, (point.pattern == "ping-pong").then_some(expected), "{point:#?}");
        assert_eq!(point.throughput.is_some(), point.pattern == "stream", "{point:#?}");
    }
    scratch.assert_nothing_left();
}

/// Messages one way over every service, with each mode of polling and both stamps that they can
/// carry.
const ONE_WAY: &str = r#"
name = "one-way"
title = "One-way latency of every message"
[[experiment]]
name = "polls"
pattern = "one-way"
iterations = 40
warmup = 4
[experiment.axes]
service = ["RC", "UC", "UD"]
poll = ["busy", "event", "event_repoll", "hybrid"]
[[experiment]]
name = "writes"
pattern = "one-way"
iterations = 40
[experiment.axes]
service = ["RC", "UC"]
operation = "write_imm"
stamp = "sent"
mtu_bytes = [512, 1024]
buffers = 5
[[experiment]]
name = "bursts"
pattern = "one-way"
iterations = 64
warmup = 0
[experiment.axes]
service = ["RC", "UC"]
inline = true
burst = [16, "all"]
signal_interval = [1, 8]
[[experiment]]
name = "managed"
pattern = "one-way"
iterations = 40
[experiment.axes]
service = ["RC", "UD"]
setup = "rdma_cm"
pause_ns = "200us"
rx_depth = 16
rx_fill = 4
"#;

#[test]
fn messages_are_timed_one_way_over_every_service() {
    let Some(name) = device() else { return };
    let scratch = Scratch::new();
    scratch.write("one-way.toml", ONE_WAY);
    succeed(&scratch, &["run", "one-way.toml", "-d", &name, "--out", "record"]);
    let points = scratch.record("record").1;
    assert_eq!(points.len(), 12 + 4 + 8 + 2);
    for point in &points {
        assert_eq!(point.status, Status::Measured, "{point:?}");
        let one_way = point.one_way.as_ref().unwrap();
        assert_eq!((one_way.clocks, one_way.negative), (Clocks::One, 0), "{point:?}");
        let latency = point.latency.as_ref().unwrap();
        assert_eq!(latency.kind, LatencyKind::OneWay);
        // Only messages that no service repeats may be lost, and here they find receives.
        assert_eq!(latency.count, point.iterations.unwrap(), "{point:?}");
        let carries = point.experiment == "writes";
        let sent = point.kinds.iter().find(|timed| timed.latency.kind == LatencyKind::OneWaySend);
        assert_eq!(sent.is_some(), carries, "{point:?}");
        assert!(sent.is_none_or(|sent| sent.latency.p50_ns <= latency.p50_ns), "{point:?}");
    }
}

const SAMPLES: &str = r#"
name = "samples"
title = "Samples at a fixed rate"
[[experiment]]
name = "services"
pattern = "pipeline"
iterations = 100
axes = { service = ["RC", "UC", "UD"], rate_hz = 500, values = [1, 64] }
[[experiment]]
name = "settings"
pattern = "pipeline"
iterations = 100
axes = { poll = ["busy", "event"], signal_interval = [1, 8], inline_max_bytes = 0, rx_depth = 64, rx_fill = 8, rate_hz = 500 }
"#;

#[test]
fn samples_are_carried_over_every_service() {
    let Some(name) = device() else { return };
    let scratch = Scratch::new();
    scratch.write("samples.toml", SAMPLES);
    succeed(&scratch, &["run", "samples.toml", "-d", &name, "--out", "record"]);
    let points = scratch.record("record").1;
    assert_eq!(points.len(), 6 + 4);
    for point in &points {
        assert_eq!(point.status, Status::Measured, "{point:?}");
        let count = |name: &str| point.counters[name];
        let fates = ["messages_received", "messages_not_transmitted", "messages_lost", "steps_missed"];
        assert_eq!(fates.map(count).iter().sum::<u64>(), 100, "{:?}", point.counters);
        // Under emulation, steps of two milliseconds are missed; all samples that are sent arrive.
        assert!(count("messages_received") >= 20 && count("messages_lost") == 0, "{:?}", point.counters);
        assert_eq!(point.kinds[0].latency.kind, LatencyKind::Arrival);
        let is_inline = point.experiment == "services" && point.axes["values"] == 1;
        assert_eq!(point.pipeline.as_ref().unwrap().inline, Some(is_inline), "{point:?}");
    }
    scratch.assert_nothing_left();
}

/// More ranks than there are CPUs: ranks that wait yield the CPU to others.
const RANKS_PLAN: &str = r#"
name = "ranks"
title = "Ranks"
[[experiment]]
name = "sends"
pattern = "fan-out"
iterations = 20
axes = { service = ["RC", "UC", "UD"], peers = 3 }
[[experiment]]
name = "many"
pattern = "fan-out"
iterations = 10
axes = { peers = 15 }
[[experiment]]
name = "one-sided"
pattern = "fan-out"
iterations = 20
axes = { operation = ["write", "read", "fetch_add"], peers = 3, size_bytes = 8 }
[[experiment]]
name = "multicast"
pattern = "fan-out"
iterations = 20
axes = { service = "UD", operation = "multicast", peers = 2 }
[[experiment]]
name = "pairs"
pattern = "pairs"
iterations = 20
axes = { operation = ["write", "read"], pairs = 3 }
[[experiment]]
name = "streams"
pattern = "pairs"
duration = "1s"
axes = { traffic = "stream", operation = "write", pairs = 2, size_bytes = 1024 }
[[experiment]]
name = "loaded"
pattern = "open-loop"
iterations = 50
axes = { rate_hz = 100, loaders = 2, load = ["incast", "outcast"], load_bytes = 1024 }
"#;

#[test]
fn one_to_n_and_several_pairs_are_measured() {
    let Some(name) = device() else { return };
    let scratch = Scratch::alone();
    scratch.write("ranks.toml", RANKS_PLAN);
    let ended = scratch.run(&["run", "ranks.toml", "-d", &name, "--out", "record"]);
    let (_, points) = scratch.record("record");
    for point in &points {
        // A software device of the kernel does not receive its own multicasts; another device may.
        let is_deaf = point.experiment == "multicast" && matches!(point.status, Status::NotMeasured { .. });
        assert!(is_deaf || point.status == Status::Measured, "{point:?}: {}", ended.stderr);
    }
    let crowded = points.iter().find(|point| point.experiment == "many").unwrap();
    assert_eq!(crowded.ends.len(), 16);
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert_eq!(crowded.oversubscribed.is_some(), cpus < 16, "{crowded:?}");
}

#[test]
fn perftests_words_work() {
    let Some(device) = device() else { return };
    let scratch = Scratch::alone();
    for words in ["lat write --local -I 8 -s 8", "bw write --local -s 1KiB -q 2 -l 2 -Q 4 --report_gbits"] {
        let words: Vec<&str> = words.split(' ').chain(["-n", "20", "-d", &device]).chain(ONE_CPU).collect();
        let stdout = succeed(&scratch, &words);
        let has_row = stdout.lines().any(|line| line.split_whitespace().nth(1) == Some("20"));
        assert!(has_row, "{words:?}: {stdout}");
    }
    scratch.assert_nothing_left();
}

/// The kernel's connection manager connects as often as it is asked to, and ends what it has
/// connected.
#[test]
fn connections_of_rdma_cm_are_timed() {
    let Some(device) = device() else { return };
    let scratch = Scratch::alone();
    let steps = "--step connect_qp,rdma_cm_connect,rdma_cm_disconnect --batch 2";
    let words = format!("overhead --local -n 20 {steps} -d {device} --out record");
    succeed(&scratch, &words.split(' ').chain(ONE_CPU).collect::<Vec<_>>());
    let points = scratch.record("record").1;
    assert!(points.len() == 3 && all_measured(&points), "{points:?}");
    let ns = |place: usize| points[place].cost.as_ref().unwrap().ns;
    assert!((0..3).all(|place| ns(place) > 0.0), "{points:?}");
    scratch.assert_nothing_left();
}

#[test]
fn the_quick_plan_is_measured_and_reported() {
    let Some(device) = device() else { return };
    let scratch = Scratch::alone();
    let few = ["--set", "iterations=50", "--set", "size_bytes=64,1KiB", "--set", "warmup=10"];
    let run = [&["run", "quick", "--quick", "--out", "record", "-d", &device], &few[..], &ONE_CPU].concat();
    assert_eq!(succeed(&scratch, &run).lines().last(), Some("record/report.html"));
    assert!(fs::metadata(scratch.at("record/report.html")).unwrap().len() > 10_000);
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    for service in ["RC", "UC", "UD"] {
        let of_service: Vec<&Point> =
            points.iter().filter(|point| point.axes["service"].as_str() == Some(service)).collect();
        assert!(of_service.len() >= 4, "{service}: {points:?}");
        assert!(
            of_service.iter().all(|point| point.status == Status::Measured),
            "{service}: {of_service:#?}"
        );
    }
    assert_eq!(run.devices[0].name, device);
    scratch.assert_nothing_left();
}

#[test]
fn a_peer_that_has_gone_is_told_with_the_firewall_among_the_causes() {
    let Some(device) = device() else { return };
    let text = a_peer_that_has_gone(&device);
    if described(&device)["ports"][0]["protocol"] == "RoCE" {
        assert!(text.contains("a firewall drops UDP port 4791 (`nft list ruleset` on both hosts)"), "{text}");
    }
}

#[test]
fn a_peer_that_takes_nothing_is_said_to_be_not_ready() {
    let Some(device) = device() else { return };
    a_peer_that_takes_nothing(&device);
}

#[test]
fn a_lost_message_of_an_unreliable_service_is_a_loss() {
    let Some(device) = device() else { return };
    a_message_that_is_lost(&device, "UC");
}

/// Returns the line that says why a run failed, from its table or from standard error.
#[track_caller]
fn why(ended: &Ended) -> &str {
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let row = ended.stdout.lines().find_map(|line| Some(line.split_once(" failed: ")?.1));
    row.unwrap_or_else(|| ended.stderr.trim_end().lines().last().unwrap())
}

/// Runs with agents that a script starts. Its arguments are the host, `zero` or `one`, and the
/// agent's command.
fn run_with(scratch: &Scratch, script: &str, words: &[&str]) -> Ended {
    scratch.write("wrapper.sh", script);
    let via = ["--hosts", "zero,one", "--via", "sh wrapper.sh {host}"];
    scratch.run(&[words, &via, &ONE_CPU].concat())
}

#[test]
fn memory_that_may_not_be_locked_is_told_with_the_limit() {
    let Some(device) = device() else { return };
    if !rustix::process::geteuid().is_root() || !is_installed("setpriv") {
        return skip("root", "only root can become a user whom the limit holds for, with setpriv");
    }
    let scratch = Scratch::alone();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_nobody = |limit: &str, words: &str| {
        let mut command = scratch.command("sh");
        let script = format!(
            "ulimit -l {limit}; exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" {words} -d {device}"
        );
        command.args(["-c", &script, *PROGRAM]);
        finish(command)
    };
    let remedy = ["raise it with `ulimit -l unlimited`", "LimitMEMLOCK=infinity", "--ulimit memlock=-1"];
    let ended = as_nobody("64", "bw send --local -n 20");
    assert_words(why(&ended), &["Cannot allocate memory (errno 12)", "the limit of locked memory is 64 KiB"]);
    assert_words(why(&ended), &remedy);
    let ended = as_nobody("0", "lat send --local -n 20");
    assert_words(why(&ended), &["Operation not permitted (errno 1)", "the limit of locked memory is 0 KiB"]);
    assert_words(why(&ended), &remedy);
    let ended = as_nobody("64", "doctor --json");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let [(severity, found, remedy)] = findings(&report, "registration")[..] else { panic!("{report:#}") };
    assert_eq!(severity, "problem");
    assert!(found.contains("the limit of locked memory is 64 KiB"), "{found}");
    assert!(remedy.contains("/etc/security/limits.d/"), "{remedy}");
    scratch.assert_nothing_left();
}

/// Half a MiB of locked memory: a transfer wants more on each host.
#[test]
fn files_arrive_by_smaller_blocks_where_little_memory_may_be_locked() {
    let Some(name) = device() else { return };
    if !is_installed("setpriv") {
        return skip("setpriv", "setpriv is not installed");
    }
    let scratch = Scratch::alone();
    let bytes: Vec<u8> =
        (0..3_000_000u32).flat_map(|at| (at.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
    fs::create_dir(scratch.at("from")).unwrap();
    fs::write(scratch.at("from/long"), &bytes).unwrap();
    (0..50).for_each(|file| fs::write(scratch.at(&format!("from/{file}")), &bytes[..file * 100]).unwrap());
    let transfer = "transfer from --over verbs";
    let script = format!("exec \"$0\" {transfer} --to usual -d {name}");
    let ended = finish(scratch.shell(&script));
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    // A process that may lock all memory is not limited.
    let script = format!(
        "ulimit -l 512; exec setpriv --bounding-set -ipc_lock \"$0\" {transfer} --to little -d {name}"
    );
    let ended = finish(scratch.shell(&script));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let said: Vec<&str> = ended.stderr.lines().collect();
    let is_said =
        |line: &&str| line.contains(" KiB instead of 8 of 256 KiB") && line.contains("(`ulimit -l`)");
    assert!(!said.is_empty() && said.iter().all(is_said), "{ended:?}");
    for to in ["usual", "little"] {
        assert!(fs::read(scratch.at(to).join("from/long")).unwrap() == bytes, "{to}");
        assert_eq!(fs::read_dir(scratch.at(to).join("from")).unwrap().count(), 51, "{to}");
    }
}

#[test]
fn a_gid_that_is_not_there_is_told_with_those_that_are() {
    let Some(device) = device() else { return };
    let scratch = Scratch::alone();
    let words = ["lat", "send", "--local", "-n", "20", "-d", &device, "-x", "200"];
    scratch.refused(&words, 2, &["has no GID 200 in use: the GIDs in use are ", "`rdmascope devices`"]);
    scratch.assert_nothing_left();
}

#[test]
fn gids_of_two_families_are_refused_before_anything_is_sent() {
    let Some(device) = device() else { return };
    let port = &described(&device)["ports"][0];
    let gids = port["gids"].as_array().unwrap();
    let index = |is_ipv4: bool| {
        let found = gids.iter().find(|gid| (gid["reach"] == "IPv4") == is_ipv4 && gid["type"] == "RoCE v2");
        found.map(|gid| gid["index"].to_string())
    };
    let (Some(ipv4), Some(ipv6)) = (index(true), index(false)) else {
        eprintln!("SKIPPED: port 1 of {device} has no RoCE v2 GIDs of IPv4 and of IPv6");
        return;
    };
    let scratch = Scratch::alone();
    let script = format!(
        "case $1 in zero) index={ipv4} ;; *) index={ipv6} ;; esac; shift; exec \"$@\" --gid-index $index\n"
    );
    let ended = run_with(&scratch, &script, &["lat", "send", "-n", "20", "-d", &device]);
    let words = [
        "the GIDs of the two ranks cannot reach each other",
        &format!("(index {ipv4}, RoCE v2, IPv4) here"),
        "choose GIDs of one kind and address family with -x",
    ];
    assert_words(why(&ended), &words);
    scratch.assert_nothing_left();
}

/// Lets this process change the input of the agent of rank 0, through two named pipes. (A
/// background process of a shell reads nothing unless its input is redirected.)
const TAMPERED: &str = r#"
case $1 in zero) mine=1 ;; esac
shift
[ "$mine" ] || exec "$@"
exec 3<&0
cat <&3 >asked &
exec "$@" <told 3<&-
"#;

/// Changes the key for the peer's memory.
fn other_key(asked: &[u8]) -> Vec<u8> {
    let name = b"\"rkey\":";
    let mut told = asked.to_vec();
    if let Some(at) = asked.windows(name.len()).position(|window| window == name) {
        let key = asked[at + name.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        told[at + name.len() + key.count() - 1] ^= 1;
    }
    told
}

#[test]
fn a_key_of_other_memory_is_status_10() {
    let Some(device) = device() else { return };
    let scratch = Scratch::alone();
    let [asked, told] = ["asked", "told"].map(|name| {
        mknodat(CWD, scratch.at(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
        scratch.at(name)
    });
    // Not joined: if the agent does not start, the pipes are never opened on its side.
    std::thread::spawn(move || {
        let mut asked = File::open(asked).unwrap();
        let mut told = File::create(told).unwrap();
        let mut piece = vec![0; 1 << 20];
        loop {
            match asked.read(&mut piece).unwrap() {
                0 => break,
                count => told.write_all(&other_key(&piece[..count])).unwrap(),
            }
        }
    });
    let ended = run_with(&scratch, TAMPERED, &["lat", "read", "-n", "20", "-d", &device]);
    let words = [
        "rank 0: message 0 could not be sent: remote access error (status 10)",
        "the peer's memory does not allow it",
        "same version on both hosts",
        "(RC from ",
    ];
    assert_words(why(&ended), &words);
    scratch.assert_nothing_left();
}

#[test]
fn a_closed_device_node_is_told() {
    let Some(device) = device_to_disturb() else { return };
    if !is_installed("setpriv") {
        return skip("root", "setpriv is needed to become a user whom modes hold for");
    }
    let scratch = Scratch::alone();
    let nodes: Vec<_> = fs::read_dir("/dev/infiniband")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("uverbs"))
        .collect();
    let mode = |mode: u32| {
        nodes.iter().for_each(|node| fs::set_permissions(node, fs::Permissions::from_mode(mode)).unwrap());
    };
    let as_nobody = |words: &[&str]| {
        let mut command = scratch.command("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", *PROGRAM]).args(words);
        finish(command)
    };
    mode(0o600);
    let measured = as_nobody(&["lat", "send", "--local", "-n", "20", "-d", &device]);
    let listed = as_nobody(&["devices"]);
    let examined = as_nobody(&["doctor", "-d", &device]);
    mode(0o666);
    let words = ["open_device on", "/dev/infiniband is missing", "or this user may not read and write it"];
    assert_words(why(&measured), &words);
    assert_eq!(listed.status, Some(0), "{listed:?}");
    assert_words(&listed.stdout, &[&device, "cannot be examined: open_device on", "\nsoftdev0  software"]);
    assert_eq!(examined.status, Some(1), "{examined:?}");
    assert_words(
        &examined.stdout,
        &["PROBLEM  device nodes: ", "$ sudo chmod 666 /dev/infiniband/uverbs0\n"],
    );
}

#[test]
fn a_link_that_is_down_is_told_and_passed_over() {
    let Some(device) = device_to_disturb() else { return };
    let scratch = Scratch::alone();
    let interface = described(&device)["ports"][0]["interface"].as_str().unwrap().to_owned();
    let link = |state: &str| shell(&format!("ip link set {interface} {state}"));
    link("down");
    let measured = scratch.run(&["lat", "send", "--local", "-n", "20", "-d", &device]);
    let by_default = scratch.run(&["lat", "send", "--local", "-n", "20"]);
    let (report, status) = doctor(&["-d", &device]);
    link("up");
    let start = Instant::now();
    while described(&device)["ports"][0]["state"] != "active" {
        assert!(start.elapsed() < Duration::from_secs(20), "the port stays down");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_words(why(&measured), &["is down, not active", "ip link set DEV up"]);
    assert_eq!(by_default.status, Some(0), "{by_default:?}");
    let passed_over =
        "# device: softdev0 (user-space software, because the kernel software here cannot be used: port 1 of";
    assert_words(&by_default.stdout, &[passed_over, "# warning: softdev0 is measured although"]);
    assert_eq!(status, Some(1), "{report:#}");
    let [(severity, found, remedy)] = findings(&report, "port state")[..] else { panic!("{report:#}") };
    assert_eq!((severity, remedy), ("problem", &*format!("ip link set {interface} up")));
    assert!(found.contains("is down (disabled)"), "{found}");
    scratch.assert_nothing_left();
}

/// Two interfaces of this host, connected by a virtual cable, with a software device over each.
/// Messages of a device to itself pass no firewall. Messages between these devices pass the
/// kernel's firewall, like messages from another host.
struct Cable;

impl Cable {
    /// rxe routes by interface and address, so that it finds the far address on the cable and not
    /// on this host; `accept_local` lets packets come from there.
    const LAY: &str = "
        modprobe -a veth nf_tables
        ip link add wire0 type veth peer name wire1
        address() { cat /sys/class/net/$1/address; }
        for end in 0 1; do
            for setting in accept_local=1 rp_filter=0; do
                echo ${setting#*=} >/proc/sys/net/ipv4/conf/wire$end/${setting%=*}
            done
            ip addr add 10.9.0.$((end + 1))/24 dev wire$end
            ip link set wire$end up
        done
        ip neigh replace 10.9.0.2 lladdr $(address wire1) dev wire0 nud permanent
        ip neigh replace 10.9.0.1 lladdr $(address wire0) dev wire1 nud permanent
        for end in 0 1; do rdma link add rxe_wire$end type rxe netdev wire$end; done
        nft add table ip rdmascope
        nft 'add chain ip rdmascope input { type filter hook input priority 0; }'";
    /// Gives each rank its device, even if there are other devices.
    const WRAPPER: &str = "
        case $1 in zero) device=rxe_wire0 ;; *) device=rxe_wire1 ;; esac
        shift
        exec \"$@\" --device $device\n";

    fn lay() -> Self {
        let cable = Self;
        shell(Self::LAY);
        cable
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let take_up = "nft delete table ip rdmascope; for end in 0 1; do rdma link delete rxe_wire$end; done; \
                       ip link delete wire0";
        let _ = Command::new("sh").args(["-c", take_up]).status();
    }
}

/// A point of each service over the cable, which fails soon if no packets pass.
const WIRE: &str = r#"
name = "wire"
title = "Wire"
[[experiment]]
name = "one"
pattern = "ping-pong"
iterations = 20
timeout = "3s"
[experiment.axes]
service = ["RC", "UC"]
size_bytes = 64
"#;

/// Runs a script that must succeed.
#[track_caller]
fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the number of packets that the counter of a firewall rule has seen.
fn packets_seen() -> u64 {
    let rules = shell("nft list table ip rdmascope");
    let (_, after) = rules.split_once("counter packets ").expect("there is a counter");
    after.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_firewall_that_drops_roce_is_told() {
    if device_to_disturb().is_none() {
        return;
    }
    if let Some(missing) = ["nft", "ip", "rdma", "modprobe"].iter().find(|name| !is_installed(name)) {
        return skip("root", &format!("{missing} is not installed"));
    }
    let scratch = Scratch::alone();
    scratch.write("plan.toml", WIRE);
    let _cable = Cable::lay();
    let measure = |record| run_with(&scratch, Cable::WRAPPER, &["run", "plan.toml", "--out", record]);

    shell("nft add rule ip rdmascope input udp dport 4791 counter accept");
    let open = measure("open");
    assert_eq!(open.status, Some(0), "{open:?}");
    assert!(packets_seen() >= 80, "its packets pass the firewall: {}", packets_seen());
    let (report, _) = doctor(&["-d", "rxe_wire0"]);
    let [(severity, ..)] = findings(&report, "firewall")[..] else { panic!("{report:#}") };
    assert_eq!(severity, "good", "{report:#}");

    shell(
        "nft flush table ip rdmascope
         nft add rule ip rdmascope input udp dport 4791 counter drop",
    );
    let closed = measure("closed");
    assert_eq!(closed.status, Some(1), "{closed:?}");
    assert!(packets_seen() > 0, "it dropped nothing");
    let (_, points) = scratch.record("closed");
    for (point, service) in points.iter().zip(["RC", "UC"]) {
        let Status::Failed { error } = &point.status else { panic!("{point:#?}") };
        let way = format!("({service} from GID ");
        assert_words(error, &["a firewall drops UDP port 4791 (`nft list ruleset` on both hosts)", &way]);
    }
    let (report, _) = doctor(&["-d", "rxe_wire0"]);
    let [(severity, found, _)] = findings(&report, "firewall")[..] else { panic!("{report:#}") };
    assert_eq!(severity, "warning", "{report:#}");
    assert_words(found, &["a rule drops UDP port 4791: udp dport 4791 counter packets "]);
    scratch.assert_nothing_left();
}
