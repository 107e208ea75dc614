//! Sockets between two network namespaces of this host, over a link with known faults.

use std::process::Child;
use std::time::{Duration, Instant};

use measure::conditions::Outcome;
use measure::record::{Point, Status};
use rustix::process::Signal;

use crate::support::namespaces::{Hosts, measured, run_between};
use crate::support::processes::{agents, signal};
use crate::support::{DEADLINE, Ended, Scratch, all_measured, collect, finish, skip};

#[test]
fn messages_cross_the_link_and_not_the_loopback_of_one_host() {
    let Some(hosts) = Hosts::new() else { return };
    let scratch = Scratch::on_one_cpu();
    let messages = [
        ("lat tcp -s 1000 -n 200", 200 * 1000),
        ("lat udp -s 1000 -n 200", 200 * 1000),
        ("bw tcp -s 16KiB -n 300 -6", 300 * (16 << 10)),
        ("bw udp -s 1000 -n 500", 500 * 1000),
        ("one-way tcp -s 1000 -n 200", 200 * 1000),
        ("fan-out udp -s 1000 -n 100 --peers 1", 100 * 1000),
    ];
    for (number, (arguments, bytes)) in messages.into_iter().enumerate() {
        let before = hosts.counter(0, "tx_bytes");
        let points = measured(&scratch, &hosts, arguments, &format!("record{number}"));
        let crossed = hosts.counter(0, "tx_bytes") - before;
        assert!(crossed >= bytes, "{arguments}: {crossed} of {bytes}");
        // The record agrees: the bytes that rank 1 received came over the link. (Some that rank 0
        // sent may wait in its socket.)
        let recorded = points[0].ends[1].host["interface.link0.rx_bytes"];
        assert!((bytes..=crossed).contains(&recorded), "{arguments}: {recorded} of {crossed}");
        let looped = hosts.on(0, &["cat", "/sys/class/net/lo/statistics/tx_bytes"]);
        assert_eq!(looped.trim(), "0", "{arguments}");
    }
    scratch.assert_nothing_left();
}

/// A token bucket of a known rate: TCP carries the rate less the headers.
#[test]
fn a_link_of_a_known_rate_carries_what_its_headers_leave() {
    let Some(hosts) = Hosts::new() else { return };
    let scratch = Scratch::alone();
    let tbf = "tc qdisc add dev link0 root tbf rate 200mbit burst 32kb latency 20ms";
    hosts.on(0, &tbf.split(' ').collect::<Vec<_>>());
    // Of a frame of 1514 bytes, TCP with time stamps has 1448 and UDP 1472 (RFC 7323, RFC 768).
    for (arguments, payload) in [("bw tcp -s 16KiB -D 2", 1448.0), ("bw udp -s 1472 -D 2", 1472.0)] {
        let points = measured(&scratch, &hosts, arguments, &format!("record{payload}"));
        let received = points[0].ends[1].throughput.as_ref().unwrap().bytes_per_s * 8.0;
        let ratio = received / (200e6 * payload / 1514.0);
        assert!((0.97..1.01).contains(&ratio), "{arguments}: {ratio} of what the link leaves");
    }
}

/// Other tools measure the same points over the same link, and leave nothing behind.
#[test]
fn other_programs_measure_over_the_link() {
    let Some(hosts) = Hosts::new() else { return };
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", TOOLS);
    let (ended, points) = run_between(&scratch, &hosts, "run plan.toml", "record");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(points.len(), 9);
    for point in &points {
        let tool = point.axes["tool"].as_str().unwrap();
        if tool == "rdmascope" {
            assert!(point.reported.is_none() && point.axes.contains_key("poll"), "{point:?}");
            continue;
        }
        if let Status::NotMeasured { reason } = &point.status {
            match reason.contains("sends no messages shorter than 14 B") {
                true => assert_eq!((tool, &point.axes["size_bytes"]), ("sockperf", &4.into())),
                false => skip(tool, reason),
            }
            continue;
        }
        let reported = point.reported.as_ref().unwrap_or_else(|| panic!("{point:?}"));
        assert!(reported.program.starts_with(tool.trim_end_matches('3')), "{reported:?}");
        assert!(reported.command.contains(" 10.98.7.2") && !point.axes.contains_key("poll"), "{point:?}");
        let is_rate = point.pattern == "stream";
        assert_eq!(
            (reported.mean_ns.is_some(), point.throughput.is_some()),
            (!is_rate, is_rate),
            "{point:?}"
        );
        // The bytes that the tool sent have crossed the link.
        assert!(point.ends[0].host["interface.link0.tx_packets"] > 100, "{point:?}");
    }
    assert!(ended.stdout.contains("Programs agree"), "{}", ended.stdout);
    // A missing tool is named; of a tool that fails, the last output is quoted.
    let ended = finish({
        let mut command = scratch.program(["run", "plan.toml", "--out", "without"]);
        command.env("PATH", "/nonexistent");
        command
    });
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let reasons = scratch.record("without").1.into_iter().filter_map(|point| match point.status {
        Status::NotMeasured { reason } => Some(reason),
        _ => None,
    });
    let reasons: Vec<_> = reasons.collect();
    let lacks = |name: &str| {
        reasons
            .iter()
            .any(|reason| reason.contains(&format!("{name} is not installed on a rank's host (`apt install")))
    };
    assert!(reasons.len() == 6 && lacks("qperf") && lacks("iperf3"), "{reasons:?}");
    scratch.assert_nothing_left();
}

const TOOLS: &str = r#"
name = "tools"
title = "Other programs"
[[experiment]]
name = "latency"
pattern = "ping-pong"
duration = "1s"
axes = { endpoint = "udp", tool = ["rdmascope", "qperf", "sockperf"], size_bytes = [4, 64] }
[[experiment]]
name = "throughput"
pattern = "stream"
duration = "1s"
axes = { endpoint = "tcp", tool = ["rdmascope", "qperf", "iperf3"], size_bytes = "16KiB" }
[[finding]]
kind = "agree"
claim = "Programs agree"
experiments = ["latency"]
quantity = "half_mean_ns"
x = "tool"
each = ["size_bytes"]
holds = "<= 10 %"
"#;

/// Two networks between the same hosts: each point uses the network that its axes name, in the mode
/// that they name.
#[test]
fn points_take_the_link_layer_that_they_ask_for_and_ipoib_its_mode() {
    let Some(hosts) = Hosts::new() else { return };
    let scratch = Scratch::on_one_cpu();
    for (file, value) in [("mode", "datagram\n"), ("mtu", "2000\n")] {
        let path = scratch.at("host/sys/class/net/ib0").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::create_dir_all(scratch.at("host/run")).unwrap();
        std::fs::write(path, value).unwrap();
    }
    let host = scratch.at("host");
    let wrapper = format!("ns=$1; shift; exec ip netns exec $ns \"$@\" --host-root {}\n", host.display());
    scratch.write("wrapper.sh", wrapper);
    scratch.write("plan.toml", LAYERS);
    let names = hosts.names.join(",");
    let run = |record: &str| {
        let words = ["run", "plan.toml", "--hosts", &names, "--via", "sh wrapper.sh {host}", "--out", record];
        let ended = scratch.run(&words);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        scratch.record(record).1
    };
    let points = run("without");
    for point in points.iter().filter(|point| point.axes.get("link_layer") != Some(&"ethernet".into())) {
        let Status::NotMeasured { reason } = &point.status else { panic!("{point:?}") };
        assert!(reason.contains("no IPoIB interface"), "{reason}");
    }
    let _ipoib = hosts.ipoib();
    let points = run("with");
    assert_eq!(points.len(), 4);
    assert!(all_measured(&points), "{points:?}");
    for point in &points {
        let is_ethernet = point.axes.get("link_layer") == Some(&"ethernet".into());
        let carried = |name: &str| {
            let counter = format!("interface.{name}.rx_bytes");
            point.ends[1].host.get(&counter).is_some_and(|bytes| *bytes >= 50 * 64)
        };
        assert_eq!((carried("link0"), carried("ib0")), (is_ethernet, !is_ethernet), "{point:?}");
        let asked =
            point.axes.get("ipoib_mode").map(|mode| (Outcome::Applied, mode.as_str().unwrap().to_owned()));
        let modes = point.conditions.iter().map(|condition| (condition.outcome, condition.asked.clone()));
        assert_eq!(
            modes.collect::<Vec<_>>(),
            asked.map_or_else(Vec::new, |asked| vec![asked; 2]),
            "{point:?}"
        );
    }
    let now = ["mode", "mtu"]
        .map(|file| std::fs::read_to_string(host.join("sys/class/net/ib0").join(file)).unwrap());
    assert_eq!(now, ["datagram\n", "2000\n"], "as before");
    scratch.assert_nothing_left();
}

const LAYERS: &str = r#"
name = "layers"
title = "Two link layers"
[[experiment]]
name = "layers"
pattern = "ping-pong"
iterations = 50
[experiment.axes]
endpoint = "tcp"
link_layer = ["infiniband", "ethernet"]
size_bytes = 64
[[experiment]]
name = "modes"
pattern = "ping-pong"
iterations = 50
[experiment.axes]
endpoint = "udp"
ipoib_mode = ["connected", "datagram"]
size_bytes = 64
"#;

#[test]
fn losses_that_are_known_are_counted_and_asked_for_again() {
    let Some(hosts) = Hosts::filtered() else { return };
    let scratch = Scratch::on_one_cpu();
    hosts.drop_at(1, "meta l4proto udp numgen random mod 100 < 4");
    let points = measured(&scratch, &hosts, "lat udp -n 300", "record");
    let lost = points[0].counters["messages_lost"];
    let dropped = hosts.dropped_at(1);
    // The last message, which is sent three times, may be lost, too.
    assert!(lost > 0 && (lost..=lost + 3).contains(&dropped), "{lost} of {dropped}");
    let latency = points[0].latency.as_ref().unwrap();
    assert!(latency.count >= 300 - lost && latency.max_ns < 190_000_000, "{latency:?}");
}

/// A point during which something breaks, and some points after it; the first of them may start
/// before the fault is fixed.
const PLAN: &str = r#"
name = "breaks"
title = "What breaks"
[[experiment]]
name = "broken"
pattern = "PATTERN"
duration = "60s"
timeout = "90s"
[experiment.axes]
endpoint = "ENDPOINT"
size_bytes = 100
[[experiment]]
name = "after"
pattern = "ping-pong"
iterations = 10
timeout = "3s"
repetitions = REPETITIONS
[experiment.axes]
endpoint = ["tcp", "udp"]
"#;

/// A run in its first point.
struct Broken {
    hosts: Hosts,
    scratch: Scratch,
    child: Child,
    began: Instant,
}

impl Broken {
    fn start(hosts: Hosts, pattern: &str, endpoint: &str, repetitions: usize) -> Self {
        let scratch = Scratch::new();
        let plan = PLAN.replace("PATTERN", pattern).replace("ENDPOINT", endpoint);
        scratch.write("plan.toml", plan.replace("REPETITIONS", &repetitions.to_string()));
        let words = ["run", "plan.toml", "--out", "record", "--cpus", "none"].map(str::to_owned);
        let child = scratch.program(words.into_iter().chain(hosts.placed())).spawn().unwrap();
        let broken = Self { hosts, scratch, child, began: Instant::now() };
        // Both agents are connected once packets cross the link.
        broken.hosts.await_packets(200);
        broken
    }

    /// Waits until the first point has ended, fixes the fault, and returns the time, the points and
    /// the end of the run.
    fn end(mut self, mend: impl FnOnce(&Hosts, &Scratch)) -> (Duration, Vec<Point>, Ended) {
        let points = self.scratch.at("record/points.jsonl");
        while std::fs::metadata(&points).map_or(0, |file| file.len()) == 0
            && self.child.try_wait().unwrap().is_none()
        {
            assert!(self.began.elapsed() < DEADLINE, "the point does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
        let took = self.began.elapsed();
        mend(&self.hosts, &self.scratch);
        let mended = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            let found = || std::fs::read_to_string(&points).unwrap_or_default();
            assert!(mended.elapsed() < DEADLINE, "after {took:?} the run does not end: {}", found());
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = collect(self.child);
        self.scratch.assert_nothing_left();
        (took, self.scratch.record("record").1, ended)
    }
}

#[test]
fn what_breaks_under_way_fails_its_point_in_bounded_time_and_no_other() {
    /// A step that causes or fixes a fault.
    type Step = fn(&Hosts, &Scratch);
    let lifted: Step = |hosts, _| hosts.drop_no_more_at(1);
    let up: Step = |hosts, _| drop(hosts.on(1, &["ip", "link", "set", "link0", "up"]));
    let nothing: Step = |_, _| {};
    let black_hole: Step = |hosts, _| hosts.drop_at(1, "");
    let down: Step = |hosts, _| drop(hosts.on(1, &["ip", "link", "set", "link0", "down"]));
    let stopped: Step = |_, scratch| signal(agents(&scratch.token())[1].pid, Signal::STOP);
    let killed: Step = |_, scratch| signal(agents(&scratch.token())[1].pid, Signal::KILL);
    // Without an address, a point fails in some milliseconds: many points follow the first.
    const MANY: usize = 20;
    let cases: [(&str, &str, Step, Step, &str, usize); 8] = [
        ("ping-pong", "tcp", black_hole, lifted, "nothing came from the peer for 10", 1),
        ("ping-pong", "udp", black_hole, lifted, "nothing came from the peer for 10", 1),
        ("stream", "tcp", black_hole, lifted, "for 10", 1),
        ("ping-pong", "tcp", down, up, "segments are not acknowledged", MANY),
        ("ping-pong", "udp", down, up, "the link is down", MANY),
        ("stream", "tcp", stopped, nothing, "was taken by the peer for 10", 1),
        ("stream", "udp", killed, nothing, "rank 1", 1),
        ("ping-pong", "tcp", killed, nothing, "rank 1", 1),
    ];
    let _machine = Scratch::waiting();
    let mut broken = Vec::new();
    for (pattern, endpoint, .., repetitions) in cases {
        let Some(hosts) = Hosts::filtered() else { return };
        broken.push(Broken::start(hosts, pattern, endpoint, repetitions));
    }
    for (run, (_, _, break_it, ..)) in broken.iter().zip(&cases) {
        break_it(&run.hosts, &run.scratch);
    }
    let ends =
        broken.into_iter().zip(cases).map(|(run, (pattern, endpoint, _, mend, words, repetitions))| {
            let case = format!("{pattern} {endpoint} {words}");
            // A panic names its thread.
            let thread = std::thread::Builder::new().name(case.clone());
            thread.spawn(move || (case, words, repetitions, run.end(mend))).unwrap()
        });
    for end in ends.collect::<Vec<_>>() {
        let (case, words, repetitions, (took, points, ended)) = end.join().unwrap();
        let Status::Failed { error } = &points[0].status else { panic!("{case}: {:?}", points[0]) };
        assert!(error.contains(words) && !error.contains('\n'), "{case}: {error}");
        assert!(took < Duration::from_secs(40), "{case}: {took:?}");
        assert_eq!(points.len(), 1 + 2 * repetitions, "{case}: {points:?}");
        assert!(all_measured(&points[points.len() - 2..]), "{case}: {points:?}");
        assert_eq!(ended.status, Some(4), "{case}: {ended:?}");
        assert!(ended.stderr.contains(&format!("of {} points failed", points.len())), "{case}: {ended:?}");
    }
}

/// A stream of datagrams does not notice that they no longer arrive.
#[test]
fn a_flood_that_is_heard_no_more_has_failed() {
    let Some(hosts) = Hosts::filtered() else { return };
    let scratch = Scratch::waiting();
    let placed = hosts.placed();
    for (direction, record) in [("", "one-way"), (" -b", "both-ways")] {
        let words = format!("bw udp -s 100 -D 3{direction} --out {record}");
        let words = words.split(' ').chain(placed.iter().map(String::as_str));
        let before = hosts.counter(0, "tx_packets");
        let child = scratch.program(words).spawn().unwrap();
        hosts.await_packets(before + 1000);
        hosts.drop_at(1, "");
        let ended = collect(child);
        hosts.drop_no_more_at(1);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        let points = scratch.record(record).1;
        let Status::Failed { error } = &points[0].status else { panic!("{:?}", points[0]) };
        assert!(error.starts_with("rank 1 received nothing after "), "{error}");
        // The wait for datagrams that do not arrive does not count as sending.
        assert!(error.contains("of the 3.0 s in which rank 0 sent"), "{error}");
    }
}
