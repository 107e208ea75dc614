//! One to n, n to one: every operation, every round, many agents.

use std::time::{Duration, Instant};

use measure::record::{LatencyKind, Point};

use crate::support::{Scratch, all_measured};

const PLAN: &str = r#"
name = "fan"
title = "One to n"
[[experiment]]
name = "sends"
pattern = "fan-out"
iterations = 50
axes = { service = ["RC", "UC", "UD"], peers = [1, 3], size_bytes = [1, 2048] }
[[experiment]]
name = "one-sided"
pattern = "fan-out"
iterations = 50
axes = { operation = ["write", "write_imm", "send_imm", "read", "fetch_add", "compare_swap"], peers = [1, 3], size_bytes = 8 }
[[experiment]]
name = "polled-reads"
pattern = "fan-out"
iterations = 50
axes = { operation = "read", notify = "memory", peers = 3, size_bytes = [1, 4096] }
[[experiment]]
name = "multicast"
pattern = "fan-out"
iterations = 50
axes = { operation = "multicast", service = "UD", peers = [1, 3], size_bytes = 64 }
[[experiment]]
name = "asleep"
pattern = "fan-out"
iterations = 50
axes = { poll = ["event", "hybrid"], peers = 3, service = ["RC", "UD"] }
[[experiment]]
name = "for-a-time"
pattern = "fan-out"
duration = "50ms"
axes = { peers = 2 }
"#;

fn kinds(point: &Point) -> Vec<(LatencyKind, u64)> {
    point.kinds.iter().map(|timed| (timed.latency.kind, timed.latency.count)).collect()
}

#[test]
fn every_operation_goes_out_to_n_and_comes_back() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("fan.toml", PLAN);
    scratch.succeed(&["run", "fan.toml", "-d", "softdev0", "--out", "record"]);
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    assert!(all_measured(&points), "{points:?}");
    assert_eq!(run.environments.len(), 4, "as many agents as the largest point has ranks");
    for point in &points {
        let peers = point.axes["peers"].as_u64().unwrap();
        let latency = point.latency.as_ref().unwrap();
        let fetches =
            ["read", "fetch_add", "compare_swap"].contains(&point.axes["operation"].as_str().unwrap());
        let kind = if fetches { LatencyKind::Fan } else { LatencyKind::FanHalf };
        assert_eq!((latency.kind, point.ends.len() as u64), (kind, peers + 1), "{point:?}");
        // A clock reading for each message, in addition to that of the round.
        let rate = point.throughput.as_ref().unwrap().messages_per_s;
        assert!((rate * latency.p50_ns as f64 / 1e9 - peers as f64).abs() < 1e-6);
        if point.experiment == "for-a-time" {
            assert!(latency.count > 0);
            continue;
        }
        assert_eq!(latency.count, 50, "every round is one sample");
        let own = point.ends[0].samples.as_ref().unwrap();
        assert_eq!(measure::samples::read_raw(&scratch.at("record").join(own)).unwrap().len(), 50);
        if fetches {
            assert_eq!(kinds(point), [(LatencyKind::Fan, 50), (LatencyKind::Rtt, 50 * peers)]);
            assert!(point.ends[1..].iter().all(|end| end.latency.as_ref().unwrap().count == 50));
        } else {
            assert!(point.kinds.is_empty() && point.ends[1..].iter().all(|end| end.latency.is_none()));
        }
    }
    scratch.assert_nothing_left();
}

/// As many processes as a small cluster has nodes, each connected with all others.
#[test]
fn sixty_four_agents_connect_all_with_all_and_are_done_soon() {
    const LIMIT: Duration = Duration::from_secs(30);
    let scratch = Scratch::on_one_cpu();
    scratch.write(
        "all.toml",
        r#"
name = "all"
title = "All with all"
[[experiment]]
name = "all"
pattern = "fan-out"
iterations = 20
axes = { peers = 63, mesh = "full" }
"#,
    );
    let began = Instant::now();
    let stdout = scratch.succeed(&["run", "all.toml", "-d", "softdev0", "--out", "record"]);
    let took = began.elapsed();
    let (run, points) = scratch.record("record");
    assert!(all_measured(&points), "{points:?}");
    assert!(took < LIMIT, "64 agents took {took:?}");
    assert_eq!((run.environments.len(), points[0].ends.len()), (64, 64));
    assert!(stdout.contains("64 ranks (0-63): softdev0"), "{stdout}");
    scratch.assert_nothing_left();
}

#[test]
fn one_line_measures_one_to_n() {
    let scratch = Scratch::on_one_cpu();
    for (words, service, kind) in [
        ("send", "RC", LatencyKind::FanHalf),
        ("write -c UC", "UC", LatencyKind::FanHalf),
        ("read --notify memory", "RC", LatencyKind::Fan),
        ("read --full-mesh", "RC", LatencyKind::Fan),
        ("atomic -A CMP_AND_SWAP", "RC", LatencyKind::Fan),
        ("multicast", "UD", LatencyKind::FanHalf),
        ("send --imm --full-mesh --report_gbits", "RC", LatencyKind::FanHalf),
    ] {
        let line = format!("fan-out {words} --peers 1,2..3 -n 20 -d softdev0 --out record");
        let stdout = scratch.succeed(&line.split(' ').collect::<Vec<_>>());
        let (_, points) = scratch.record("record");
        assert!(all_measured(&points), "{words}: {points:?}");
        let peers: Vec<_> = points.iter().map(|point| point.axes["peers"].as_u64().unwrap()).collect();
        assert_eq!(peers, [1, 2, 3], "{words}");
        for point in &points {
            assert_eq!(
                (&point.axes["service"], point.latency.as_ref().unwrap().kind),
                (&service.into(), kind)
            );
        }
        assert_eq!(stdout.matches("message[us]").count(), 1, "n of 1 to 3 are one table: {stdout}");
        let unit = if words.contains("gbits") { "BW[Gb/s]" } else { "BW[MiB/s]" };
        assert!(stdout.contains(unit), "{stdout}");
        std::fs::remove_dir_all(scratch.at("record")).unwrap();
    }
    for (words, sentence) in [
        ("send --peers 0", "give numbers from 1 to 1023"),
        ("send --peers 3..1", "such as 15, 1,7,15 or 1..15"),
        ("multicast -c RC", "only datagrams can be sent to groups"),
        ("write -e", "a receiver that sleeps"),
        ("send node7", "unexpected argument 'node7'"),
        ("send --listen 0.0.0.0", "unexpected argument '--listen'"),
    ] {
        let line = format!("fan-out {words}");
        let ended = scratch.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{words}");
        assert!(ended.stderr.contains(sentence), "{words}: {}", ended.stderr);
    }
}

#[test]
fn more_ranks_than_cpus_are_said_so() {
    let scratch = Scratch::on_one_cpu();
    scratch.write(
        "fan.toml",
        "name = \"fan\"\ntitle = \"Fan\"\n[[experiment]]\nname = \"fan\"\n\
        pattern = \"fan-out\"\niterations = 20\naxes = { peers = [1, 2] }\n",
    );
    let ended = scratch.run(&["run", "fan.toml", "-d", "softdev0", "--out", "record"]);
    let stdout = ended.stdout;
    let (_, points) = scratch.record("record");
    let shared: Vec<_> = points.iter().map(|point| point.oversubscribed.unwrap()).collect();
    assert_eq!(shared.iter().map(|host| (host.ranks, host.cpus)).collect::<Vec<_>>(), [(2, 1), (3, 1)]);
    assert!(stdout.contains("oversubscribed: 2 ranks share 1 CPU"), "{stdout}");
}

#[test]
fn what_a_fan_out_has_not_is_refused() {
    let scratch = Scratch::new();
    let refused = |axes: &str, words: &[&str]| {
        let plan = format!(
            "name = \"fan\"\ntitle = \"Fan\"\n[[experiment]]\nname = \"fan\"\npattern = \"fan-out\"\naxes = {{ {axes} }}\n"
        );
        scratch.write("fan.toml", plan);
        scratch.refused(&["run", "fan.toml", "--dry-run"], 2, words);
    };
    refused("peers = 0", &["peers", "fan.toml:"]);
    refused("peers = 5000", &["more than 1023 peers", "each is a process"]);
    refused("peers = \"9..2\"", &["peers", "\"1..16\""]);
    refused("queue_pairs = 2", &["several queue pairs", "one queue pair for each peer"]);
    refused("operation = \"multicast\", service = \"RC\"", &["only datagrams can be sent to groups"]);
    refused("operation = \"write\", poll = \"event\"", &["a receiver that sleeps", "write_imm"]);
    refused(
        "operation = \"fetch_add\", size_bytes = 8, notify = \"memory\"",
        &["fetch-and-add notified by memory"],
    );
    refused("notify = \"memory\"", &["Send notified by memory"]);
    refused("service = \"UD\", peers = 200, tx_depth = 128", &["200 peers over UD", "tx_depth"]);
    refused("service = \"UD\", setup = \"rdma_cm\"", &["RDMA CM for datagrams"]);
    let head = PLAN.split("pattern").next().unwrap().to_owned();
    scratch.write("lat.toml", head + "pattern = \"ping-pong\"\naxes = { peers = 2 }\n");
    scratch.refused(&["run", "lat.toml"], 2, &["peers with the pattern \"ping-pong\"", "\"fan-out\""]);
}
