//! Sockets over features that only some kernels have: links that delay, lose, repeat and reorder
//! packets (netem), and SCTP.
//!
//! The tests run between two network namespaces, as in `namespaces`. The virtual machine's kernel
//! has both features.

use measure::record::{LatencyKind, Point, Status};

use crate::support::failures::assert_words;
use crate::support::namespaces::{Hosts, measured, run_between};
use crate::support::{DEADLINE, Scratch, collect, skip};

/// Returns two hosts; the first sends over a link of this kind (tc-netem(8)).
fn hosts_over(netem: &str) -> Option<Hosts> {
    let hosts = Hosts::new()?;
    match hosts.emulate(0, netem) {
        Ok(()) => Some(hosts),
        Err(why) => {
            skip("netem", &why);
            None
        }
    }
}

/// Returns two hosts, if their kernel has SCTP.
fn hosts_with_sctp() -> Option<Hosts> {
    // A kernel lists SCTP only after the module was loaded by a first use.
    let asked = std::process::Command::new("modprobe").arg("sctp").output();
    if std::fs::metadata("/proc/net/sctp").is_err() {
        skip("sctp", &format!("this kernel has no SCTP: {asked:?}"));
        return None;
    }
    Hosts::filtered()
}

/// Returns the latency of a kind in ms, from the samples to which the machine adds least. A time
/// from one arrival to the next can also be too short, if the earlier arrival was late.
fn timed_ms(point: &Point, kind: LatencyKind) -> f64 {
    let mut all = point.latency.iter().chain(point.kinds.iter().map(|timed| &timed.latency));
    let latency = all.find(|latency| latency.kind == kind);
    let latency = latency.unwrap_or_else(|| panic!("no {kind:?}: {point:?}"));
    let ns = if kind == LatencyKind::RttHalf { latency.p10_ns } else { latency.min_ns };
    ns as f64 / 1e6
}

/// Latency over each endpoint, as a round trip and one way.
const DELAYS: &str = r#"
name = "delays"
title = "Delays"
[[experiment]]
name = "there-and-back"
pattern = "ping-pong"
iterations = 30
axes = { endpoint = ["tcp", "udp", "sctp"] }
[[experiment]]
name = "there"
pattern = "one-way"
iterations = 30
axes = { endpoint = ["tcp", "udp", "sctp"] }
[[experiment]]
name = "samples"
pattern = "pipeline"
iterations = 30
axes = { endpoint = ["tcp", "udp", "sctp"], rate_hz = 100 }
"#;

/// Half a round trip is the mean of both directions; a one-way latency is that of its direction.
#[test]
fn a_known_delay_is_found_in_the_way_that_has_it() {
    let Some(hosts) = hosts_with_sctp() else { return };
    for (host, delay) in [(0, "delay 20ms"), (1, "delay 4ms")] {
        if let Err(why) = hosts.emulate(host, delay) {
            return skip("netem", &why);
        }
    }
    let scratch = Scratch::alone();
    scratch.write("plan.toml", DELAYS);
    let points = measured(&scratch, &hosts, "run plan.toml", "record");
    assert_eq!(points.len(), 9);
    for point in points {
        let (kind, expected) = match &*point.experiment {
            "there" | "samples" => (LatencyKind::OneWay, 20.0..23.0),
            _ => (LatencyKind::RttHalf, 12.0..16.0),
        };
        let timed = timed_ms(&point, kind);
        assert!(expected.contains(&timed), "{timed} ms: {point:?}");
    }
    scratch.assert_nothing_left();
}

/// Each datagram that the link drops, sends twice or reorders is counted, and no other.
#[test]
fn what_a_link_loses_repeats_and_reorders_is_counted() {
    let Some(hosts) = hosts_over("loss 5%") else { return };
    let scratch = Scratch::alone();
    let count = |point: &Point, name: &str| {
        *point.counters.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", point.counters))
    };
    // Datagrams that the receiver's kernel drops for lack of room when the emulator pauses, also in
    // the warm-up.
    let for_room = |point: &Point| point.ends[1].host.get("Udp.RcvbufErrors").copied().unwrap_or_default();
    // Slow enough that the receiver loses none by itself, and in one burst: between two bursts, the
    // ranks would wait for each lost datagram.
    let flood = "one-way udp -s 200 -n 2000 --pause 500us --burst all --warmup 0";
    let before = hosts.lost_at(0);
    let point = &measured(&scratch, &hosts, flood, "loss")[0];
    let lost = count(point, "messages_lost");
    let dropped = hosts.lost_at(0) - before + for_room(point);
    // The control connection uses pipes. Only a last message and address resolution cross the link
    // besides.
    assert!((40..=180).contains(&lost) && (lost..=lost + 5).contains(&dropped), "{lost} of {dropped}");

    // At a set rate, each lost message is one sample less.
    let ended = &measured(&scratch, &hosts, "open-loop udp --rate 1000 -n 1000", "rate")[0];
    let lost = count(ended, "messages_lost");
    let answered = ended.latency.as_ref().unwrap().count;
    assert!((20..=90).contains(&lost) && lost + answered == 1000, "{lost} lost, {answered} answered");

    // Each lost sample of a pipeline is counted, too.
    let before = hosts.lost_at(0);
    let point = &measured(&scratch, &hosts, "pipeline udp --rate 1000 -n 1000", "samples")[0];
    let lost = count(point, "messages_lost");
    let dropped = hosts.lost_at(0) - before + for_room(point);
    let fates = ["messages_lost", "messages_received", "messages_not_transmitted", "steps_missed"];
    assert_eq!(fates.map(|fate| count(point, fate)).iter().sum::<u64>(), 1000, "{:?}", point.counters);
    assert!((20..=90).contains(&lost) && lost <= dropped, "{lost} of {dropped}");

    hosts.emulate(0, "duplicate 20%").unwrap();
    let point = &measured(&scratch, &hosts, flood, "duplicate")[0];
    let lost = count(point, "messages_lost");
    let again = count(point, "messages_duplicate");
    assert!(lost <= for_room(point) && (250..=560).contains(&again), "{lost} lost, {again} came twice");

    // A fifth of the datagrams is not delayed and overtakes those that wait.
    hosts.emulate(0, "delay 5ms reorder 20%").unwrap();
    let point = &measured(&scratch, &hosts, flood, "reorder")[0];
    let lost = count(point, "messages_lost");
    let late = count(point, "messages_reordered");
    assert!(lost <= for_room(point) && late >= 100, "{lost} lost, {late} reordered");
    let point = &measured(&scratch, &hosts, "bw udp -s 200 -n 5000", "stream")[0];
    let lost = count(point, "messages_lost");
    let late = count(point, "messages_reordered");
    assert!(lost <= for_room(point) && late >= 100, "{lost} lost, {late} reordered");
}

/// Every pattern that sockets run, over connections of SCTP.
const SCTP: &str = r#"
name = "sctp"
title = "SCTP"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 50
axes = { endpoint = "sctp", size_bytes = [1, 1000, 70000], poll = ["busy", "event"] }
[[experiment]]
name = "over-ipv6"
pattern = "ping-pong"
iterations = 50
axes = { endpoint = "sctp", family = "ipv6", no_delay = [true, false] }
[[experiment]]
name = "throughput"
pattern = "stream"
iterations = 300
axes = { endpoint = "sctp", size_bytes = [1000, "16KiB"], streams = [1, 3], direction = ["uni", "bi"] }
[[experiment]]
name = "one-way"
pattern = "one-way"
iterations = 50
axes = { endpoint = "sctp", size_bytes = 1000 }
[[experiment]]
name = "rates"
pattern = "open-loop"
iterations = 50
axes = { endpoint = "sctp", rate_hz = 200 }
[[experiment]]
name = "fan"
pattern = "fan-out"
iterations = 50
axes = { endpoint = "sctp", peers = 1, size_bytes = 1000 }
[[experiment]]
name = "pairs"
pattern = "pairs"
iterations = 50
axes = { endpoint = "sctp", pairs = 1 }
[[experiment]]
name = "samples"
pattern = "pipeline"
iterations = 50
axes = { endpoint = "sctp", rate_hz = 500 }
"#;

#[test]
fn sctp_carries_every_pattern_of_sockets() {
    let Some(hosts) = hosts_with_sctp() else { return };
    let scratch = Scratch::alone();
    scratch.write("plan.toml", SCTP);
    let points = measured(&scratch, &hosts, "run plan.toml", "record");
    assert_eq!(points.len(), 6 + 2 + 8 + 5);
    for point in points {
        let received = point.ends[1].host["interface.link0.rx_packets"];
        assert!(received > 20, "{received} packets crossed the link: {point:?}");
    }
    // It sends no message in parts.
    let (ended, points) = run_between(&scratch, &hosts, "bw sctp -s 1000,1MiB -n 20", "long");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let [short, long] = &points[..] else { panic!("{ended:?}") };
    let Status::NotMeasured { reason } = &long.status else { panic!("{long:?}") };
    assert_words(reason, &["SCTP cannot send a message of this length at once", "--socket-buffer"]);
    assert_eq!(short.status, Status::Measured);
    scratch.assert_nothing_left();
}

/// If the first message of a rank to another is lost, SCTP repeats it after three seconds: the
/// other rank waits for it.
#[test]
fn words_that_sctp_has_to_say_again_are_heard() {
    let Some(hosts) = hosts_with_sctp() else { return };
    hosts.drop_at(0, "sctp chunk data exists numgen inc mod 100000 < 1");
    let scratch = Scratch::alone();
    let point = measured(&scratch, &hosts, "lat sctp -n 50", "record").remove(0);
    assert_eq!(hosts.dropped_at(0), 1);
    assert_eq!(point.latency.unwrap().count, 50);
}

/// A link that carries nothing any more: its point fails in bounded time, with a sentence.
#[test]
fn sctp_over_a_dead_link_fails_its_point() {
    let Some(hosts) = hosts_with_sctp() else { return };
    // Runs beside other tests: it waits for ten seconds of silence.
    let scratch = Scratch::new();
    let placed = hosts.placed();
    let runs = [("lat", "lat sctp -D 60"), ("bw", "bw sctp -s 1000 -D 60")].map(|(record, arguments)| {
        let words = arguments.split(' ').chain(["--out", record]);
        (record, scratch.program(words.chain(placed.iter().map(String::as_str))).spawn().unwrap())
    });
    // One line for each connection below the heading: then both ranks measure.
    let began = std::time::Instant::now();
    while hosts.on(0, &["cat", "/proc/net/sctp/assocs"]).lines().count() < 3 {
        assert!(began.elapsed() < DEADLINE, "they do not connect");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    hosts.await_packets(hosts.counter(0, "tx_packets") + 200);
    hosts.on(1, &["ip", "link", "set", "link0", "down"]);
    for (record, child) in runs {
        let ended = collect(child);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        let Status::Failed { error } = &scratch.record(record).1[0].status else { panic!("{ended:?}") };
        assert_words(error, &["for 10", "SCTP from 10.98.7."]);
    }
    scratch.assert_nothing_left();
}
