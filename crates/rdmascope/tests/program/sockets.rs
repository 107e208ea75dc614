//! Messages over sockets of this host: every pattern that does not need verbs, from plans and from
//! flags.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use measure::record::{LatencyKind, Status};

use crate::support::hands::Server;
use crate::support::processes::agents;
use crate::support::{Scratch, all_measured, collect, finish};

/// Every pattern over every kind of socket, and over verbs.
const PLAN: &str = r#"
name = "layers"
title = "Layers"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 50
[experiment.axes]
service = ["RC", "UD"]
size_bytes = [4, 1024]
endpoint = ["verbs", "shmem", "tcp", "udp", "unix_stream", "unix_datagram"]
family = ["ipv4", "ipv6"]
[[experiment]]
name = "throughput"
pattern = "stream"
iterations = 100
[experiment.axes]
endpoint = ["shmem", "tcp", "udp", "unix_stream", "unix_datagram"]
direction = ["uni", "bi"]
streams = [1, 3]
poll = ["busy", "event"]
size_bytes = 1000
[[experiment]]
name = "one-way"
pattern = "one-way"
iterations = 50
axes = { endpoint = ["shmem", "tcp", "udp", "unix_stream", "unix_datagram"] }
[[experiment]]
name = "fan"
pattern = "fan-out"
iterations = 20
axes = { endpoint = ["shmem", "tcp", "udp", "unix_stream", "unix_datagram"], peers = [1, 3] }
[[experiment]]
name = "pairs"
pattern = "pairs"
iterations = 20
axes = { endpoint = ["shmem", "tcp", "udp", "unix_stream", "unix_datagram"], pairs = 2 }
[[experiment]]
name = "streams"
pattern = "pairs"
duration = "100ms"
axes = { endpoint = ["shmem", "tcp", "unix_stream"], pairs = 2, traffic = "stream" }
[[experiment]]
name = "rates"
pattern = "open-loop"
duration = "100ms"
axes = { endpoint = ["tcp", "udp", "unix_stream"], rate_hz = 1000, loaders = [0, 1] }
[[experiment]]
name = "rates-within"
pattern = "open-loop"
duration = "100ms"
axes = { endpoint = "shmem", rate_hz = 1000, poll = ["busy", "event"] }
[[experiment]]
name = "bursts"
pattern = "prtt"
iterations = 20
axes = { endpoint = ["shmem", "tcp", "unix_stream"], burst = [1, 8] }
[[figure]]
kind = "lines"
title = "Latency of each layer"
experiments = ["latency"]
x = "size_bytes"
y = "latency.p50_ns"
series = ["endpoint"]
where = { family = "ipv4" }
"#;

/// A connection never sends faster than its limit; without the limit it is a hundred times faster.
#[test]
fn a_connection_is_held_to_the_rate_that_it_is_given() {
    let scratch = Scratch::new();
    let words =
        ["bw", "tcp", "--local", "--pacing-rate", "80Mb/s", "-s", "64KiB", "-n", "200", "--out", "record"];
    scratch.succeed(&words);
    let (_, points) = scratch.record("record");
    assert_eq!(points[0].axes["pacing_rate"], "80Mb/s");
    let bytes_per_s = points[0].throughput.as_ref().unwrap().bytes_per_s;
    assert!(bytes_per_s < 2.0 * 10e6, "{bytes_per_s}");
}

/// Points are repeated until the interval is narrow enough, or as often as allowed.
#[test]
fn points_are_repeated_until_their_mean_is_known_or_often_enough() {
    let scratch = Scratch::new();
    let base = ["lat", "tcp", "--local", "-n", "50", "-s", "4,64", "--out"];
    // The number of repetitions depends on what else the machine does.
    for (record, within, most, often) in [("wide", "99%", "30", 3..30), ("narrow", "0.0001%", "4", 4..5)] {
        let ended =
            scratch.run(&[&base[..], &[record, "--within", within, "--repetitions-max", most]].concat());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (run, points) = scratch.record(record);
        assert_eq!(run.points_planned, points.len() as u64, "{record}");
        assert!(all_measured(&points));
        let ids: Vec<u64> = points.iter().map(|point| point.id).collect();
        assert_eq!(ids, (0..points.len() as u64).collect::<Vec<_>>());
        let counts = [4, 64].map(|size| {
            let of: Vec<u32> = points
                .iter()
                .filter(|point| point.axes["size_bytes"] == size)
                .map(|point| point.repetition)
                .collect();
            assert_eq!(of, (0..of.len() as u32).collect::<Vec<_>>(), "{record}");
            of.len()
        });
        assert!(counts.iter().all(|count| often.contains(count)), "{record}: {counts:?}");
        let is_missed = record == "narrow";
        let warning = "lat-tcp: 2 of 2 means are not known to within 0.00010 % after 4 repetitions";
        assert_eq!(ended.stderr.contains(warning), is_missed, "{ended:?}");
        assert_eq!(run.warnings.iter().any(|line| line.contains(warning)), is_missed);
        let tail = if is_missed { ", not within 0.00010 %" } else { "\n" };
        for line in counts.map(|count| format!(" of {count} repetitions{tail}")) {
            assert!(ended.stdout.contains(&line), "{ended:?}");
            assert!(scratch.succeed(&["report", "--text", record]).contains(&line));
        }
    }
}

#[test]
fn every_pattern_that_is_not_about_verbs_runs_over_every_socket() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", PLAN);
    let ended = scratch.run(&["run", "plan.toml", "--out", "record"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let points = scratch.record("record").1;
    let failed: Vec<_> = points.iter().filter(|point| point.status != Status::Measured).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let of = |name: &str| points.iter().filter(|point| point.experiment == name).collect::<Vec<_>>();
    // Points do not have axes that are not for their endpoint, and points that are then equal are
    // one point.
    let latency = of("latency");
    assert_eq!(latency.len(), 2 * 2 + 2 * 2 * 2 + 3 * 2);
    for point in &latency {
        let is_verbs = point.axes["endpoint"] == "verbs";
        let is_internet = point.axes["endpoint"] == "tcp" || point.axes["endpoint"] == "udp";
        assert_eq!(point.axes.contains_key("service"), is_verbs, "{:?}", point.axes);
        assert_eq!(point.axes.contains_key("family"), is_internet, "{:?}", point.axes);
        assert_eq!(point.axes["poll"], if is_verbs { "busy" } else { "event" });
        assert_eq!(point.latency.as_ref().unwrap().kind, LatencyKind::RttHalf);
        let costs = point.ends.iter().map(|end| end.cpu.unwrap().messages.unwrap());
        // Fifty messages and the warm-up, out and back.
        assert!(costs.into_iter().all(|messages| messages == 2 * (50 + 10 + 2)), "{point:?}");
        assert!(point.ends.iter().all(|end| end.host.contains_key("interrupts")), "{point:?}");
    }
    let throughput = of("throughput");
    assert_eq!(throughput.len(), 4 * 2 * 2 * 2 + 2 * 2);
    for point in throughput {
        let is_lossy = point.axes["endpoint"] == "udp";
        assert!(point.counters.contains_key("messages_lost"), "{:?}", point.counters);
        assert!(is_lossy || point.counters["messages_lost"] == 0, "{:?}", point.counters);
    }
    assert_eq!([of("one-way").len(), of("fan").len(), of("pairs").len(), of("rates").len()], [5, 10, 5, 6]);
    assert_eq!([of("rates-within").len(), of("bursts").len()], [2, 6]);
    scratch.assert_nothing_left();
}

#[test]
fn one_line_measures_what_the_field_knows_by_name() {
    let scratch = Scratch::on_one_cpu();
    for (words, shown) in [
        ("lat tcp -n 100", ["TCP_RR", "trans/s"]),
        ("lat UDP_RR -n 100 --busy -s 64,1KiB", ["UDP_RR", "CPU[us]"]),
        ("bw tcp_stream -n 200 -P 2", ["TCP_STREAM", "CPU-recv[ns/KiB]"]),
        ("bw udp -n 200 -s 1000 -l 8 --offload", ["UDP_STREAM", "#lost"]),
        ("bw tcp -n 200 --zero-copy", ["zero copy", "zero-copy sends, the kernel copied"]),
        ("lat shmem -n 100 --busy -s 1,100KiB", ["shared memory", "trans/s"]),
        ("bw shmem -n 100 -b", ["poll event", "total[MiB/s]"]),
        ("bw unix-stream -b -n 100", ["UNIX_STREAM_STREAM", "total[MiB/s]"]),
        ("lat tcp -6 -n 50 --no-delay=false --socket-buffer 64KiB -C reno", ["IPv6", "congestion reno"]),
        ("one-way udp -n 50 --burst 4", ["one_way", "completion"]),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["--local"]).collect();
        let printed = scratch.succeed(&words);
        for shown in shown {
            assert!(printed.contains(shown), "{words:?}: no {shown:?} in {printed}");
        }
    }
    for words in
        ["fan-out tcp -n 20 --peers 1,2", "pairs udp -n 20 --pairs 1,2", "open-loop tcp --rate 500 -n 50"]
    {
        let ended = scratch.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.status, Some(0), "{words}: {ended:?}");
    }
}

#[test]
fn two_ends_that_are_started_by_hand_meet_over_sockets() {
    let scratch = Scratch::on_one_cpu();
    for words in [["lat", "tcp"], ["bw", "udp"]] {
        let server = Server::start(&scratch, &words);
        let ended = finish(server.client(&scratch, &["-n", "100", "-s", "100", "--out", words[1]]));
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(all_measured(&scratch.record(words[1]).1));
        assert_eq!(server.end().status, Some(0));
    }
    scratch.assert_nothing_left();
}

#[test]
fn what_sockets_have_not_is_refused() {
    let scratch = Scratch::new();
    for (words, why) in [
        ("bw udp -s 65508", "the longest has 65507 B"),
        (
            "bw udp -C cubic",
            "--congestion over UDP, which is not possible: the option is for other endpoints",
        ),
        ("bw tcp -l 8", "--post_list over TCP, which is not possible"),
        ("bw udp -s 100 --offload", "give --post_list, such as 16"),
        ("bw udp -s 60000 -l 2 --offload", "at most 64 with 65507 B together"),
        ("one-way tcp -s 3", "the number of a message takes 4 bytes"),
        ("lat unix-stream -6", "--ipv6 over Unix streams, which is not possible"),
        ("bw tcp -P 2000", "more than 1024 streams"),
        ("bw tcp -b --zero-copy", "use the pattern \"stream\" (rdmascope bw) one way"),
        ("lat tcp -t 5", "asks for --tx-depth over TCP, which is not possible"),
        ("bw udp -r 5", "asks for --rx-depth over UDP, which is not possible"),
        ("bw udp --zero-copy", "--zero-copy over UDP, which is not possible"),
        ("lat shmem -6", "--ipv6 over shared memory, which is not possible"),
        ("lat shmem --socket-buffer 64KiB", "--socket-buffer over shared memory, which is not possible"),
        ("lat tcp --net 10.0.0.0/40", "is not a number from 0 to 32"),
        ("lat unix-stream --ipoib-mode datagram", "--ipoib-mode over Unix streams, which is not possible"),
        ("lat tcp --ipoib-mode conected", "a similar value exists: 'connected'"),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["--local"]).collect();
        let ended = scratch.run(&words);
        assert_eq!(ended.status, Some(2), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(why), "{words:?}: {ended:?}");
    }
    for (words, why) in [
        ("pairs udp --stream", "UDP acknowledges nothing: use tcp"),
        ("open-loop tcp --loaders 1 --load outcast", "use incast or beside"),
    ] {
        scratch.refused(&words.split(' ').collect::<Vec<_>>(), 2, &[why]);
    }
    let axes = |pattern: &str, rest: &str| {
        format!("pattern = \"{pattern}\"\nduration = \"1s\"\naxes = {{ {rest} }}")
    };
    for (keys, why) in [
        (axes("stream", "endpoint = \"tcp\", tool = \"sockperf\""), "iperf3 and qperf \"stream\""),
        (axes("ping-pong", "endpoint = \"tcp\", tool = \"iperf3\""), "this pattern with iperf3"),
        (
            axes("ping-pong", "endpoint = \"udp\", tool = \"qperf\", poll = \"busy\""),
            "poll with qperf, which is not possible",
        ),
        (
            axes("ping-pong", "endpoint = \"udp\", tool = \"qperf\", family = \"ipv6\""),
            "IPv6 with other tools",
        ),
        (axes("ping-pong", "endpoint = \"unix_stream\", tool = \"qperf\""), "tool over Unix streams"),
        (
            axes("ping-pong", "endpoint = \"tcp\", tool = \"qperf\"").replace("\"1s\"", "\"1500ms\""),
            "set duration, such as",
        ),
    ] {
        let head = "name = \"p\"\ntitle = \"P\"\n[[experiment]]\nname = \"e\"\n";
        scratch.write("tools.toml", format!("{head}{keys}\n"));
        scratch.refused(&["run", "tools.toml"], 2, &["tools.toml:", why]);
    }
    let plan = |body: &str| {
        let text = format!(
            "name = \"p\"\ntitle = \"P\"\n[[experiment]]\nname = \"e\"\npattern = \"ping-pong\"\n[experiment.axes]\n{body}\n"
        );
        scratch.write("plan.toml", text);
        scratch.refused(&["run", "plan.toml"], 2, &["plan.toml:7"])
    };
    assert!(plan("endpoint = []").contains("the axis endpoint of experiment \"e\" is empty"));
    assert!(plan("endpoint = [\"tcp\", \"tcp\"]").contains("has \"tcp\" twice"));
    assert!(plan("endpoint = \"tpc\"").contains("did you mean \"tcp\"?"));
    assert!(plan("inline = true\nendpoint = \"tcp\"").contains("inline over TCP"));
    let ethernet =
        plan("ipoib_mode = \"datagram\"\nendpoint = \"tcp\"\nlink_layer = [\"any\", \"ethernet\"]");
    assert!(ethernet.contains("a mode of IPoIB over Ethernet"), "{ethernet}");
    assert!(plan("ipoib_mode = \"found\"\nendpoint = \"verbs\"").contains("ipoib_mode over verbs"));
    assert!(
        plan("link_layer = \"infiniband\"\nendpoint = \"unix_stream\"")
            .contains("link_layer over Unix streams")
    );
    assert!(plan("poll = \"hybrid\"\nendpoint = [\"verbs\", \"tcp\"]").contains("use busy or event"));
}

#[test]
fn what_a_host_has_not_is_not_measured_and_nothing_but_that_is_no_success() {
    let scratch = Scratch::on_one_cpu();
    for (words, why) in [
        ("lat tcp --net none0", "a rank's host has no IPv4 address on the interface none0"),
        ("lat tcp -C none", "the congestion control \"none\" is not available"),
        ("lat tcp --net 203.0.113.0/24", "no IPv4 address in the network 203.0.113.0/24"),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["--local"]).collect();
        let ended = scratch.run(&words);
        let told = "rdmascope: nothing was measured: the tables say why\n";
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(1), told), "{words:?}: {ended:?}");
        assert!(ended.stdout.contains("not measured") && ended.stdout.contains(why), "{words:?}: {ended:?}");
    }
}

#[test]
fn a_port_that_is_taken_fails_its_point() {
    let scratch = Scratch::on_one_cpu();
    // No ephemeral port, which another test could take once this one is free again.
    let bound = (20_000..30_000).find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    let taken = bound.expect("a port outside of the ephemeral range");
    let port = taken.local_addr().unwrap().port();
    let words = ["lat", "tcp", "--local", "-n", "10", "--data-port", &port.to_string()];
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stdout.contains(&format!("TCP port {port} is in use: end the program")), "{ended:?}");
    drop(taken);
    // The port is free again, for one point after the other.
    for carrier in ["tcp", "udp"] {
        let words =
            ["lat", carrier, "--local", "-n", "10", "-s", "1,2,3,4", "--data-port", &port.to_string()];
        let ended = scratch.run(&words);
        assert_eq!(ended.status, Some(0), "{ended:?}");
    }
}

/// If threads share descriptors, each system call counts references: the measuring thread must
/// share none.
#[test]
fn the_thread_that_measures_shares_its_descriptors_with_no_other() {
    let scratch = Scratch::on_one_cpu();
    let mut child = scratch.program(["lat", "tcp", "--local", "-D", "1"]).spawn().unwrap();
    // The number of descriptors of each thread of an agent, starting with the first thread.
    let tables = |pid: i32| -> Vec<usize> {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let all = |thread: fs::DirEntry| fs::read_dir(thread.path().join("fd")).into_iter().flatten().count();
        threads.map(all).collect()
    };
    let mut were_apart = false;
    while child.try_wait().unwrap().is_none() {
        for agent in agents(&scratch.token()) {
            let tables = tables(agent.pid);
            // The standard streams and the stream of requests; the other thread also has a socket.
            were_apart |= matches!(tables[..], [first, second] if second <= 4 && first > second);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = collect(child);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(were_apart);
}
