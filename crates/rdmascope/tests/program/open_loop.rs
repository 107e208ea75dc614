//! Messages at a set rate, without load and while other ranks load the device.

use measure::record::{Direction, LatencyKind, Point, Status};

use crate::support::{Scratch, all_measured};

const HEAD: &str = "name = \"load\"\ntitle = \"Load\"\n";

const EXPERIMENTS: &str = r#"
[[experiment]]
name = "alone"
pattern = "open-loop"
iterations = 500
axes = { operation = ["send", "send_imm", "write_imm", "read", "fetch_add"], rate_hz = ["2k", 20000], size_bytes = 8 }
[[experiment]]
name = "datagrams"
pattern = "open-loop"
iterations = 100
axes = { service = ["UC", "UD"], poll = ["busy", "event"] }
[[experiment]]
name = "loaded"
pattern = "open-loop"
duration = "200ms"
axes = { rate_hz = 1000, load = ["incast", "outcast", "beside"], loaders = [0, 1, 3], load_bytes = "4KiB" }
"#;

/// Returns the kinds of a point, in their order.
fn kinds(point: &Point) -> Vec<LatencyKind> {
    point.kinds.iter().map(|timed| timed.latency.kind).collect()
}

/// Runs an experiment of this length with these axes; returns its output and its points.
fn measure(length: &str, axes: &str) -> (String, Vec<Point>) {
    let scratch = Scratch::alone();
    let plan =
        format!("{HEAD}[[experiment]]\nname = \"x\"\npattern = \"open-loop\"\n{length}\naxes = {axes}\n");
    scratch.write("plan.toml", plan);
    let ended = scratch.run(&["run", "plan.toml", "-d", "softdev0", "--out", "record"]);
    let (_, points) = scratch.record("record");
    let status = i32::from(!points.iter().any(|point| point.status == Status::Measured));
    assert_eq!(ended.status, Some(status), "{ended:?}");
    (ended.stdout, points)
}

#[test]
fn messages_are_timed_from_when_they_are_due_whatever_loads_the_device() {
    let scratch = Scratch::alone();
    scratch.write("load.toml", HEAD.to_owned() + EXPERIMENTS);
    let stdout = scratch.succeed(&["run", "load.toml", "-d", "softdev0", "--out", "record"]);
    let (run, points) = scratch.record("record");
    assert!(all_measured(&points), "{points:?}");
    assert_eq!((points.len() as u64, run.environments.len()), (run.points_planned, 8));
    for point in &points {
        let loaders = point.axes["loaders"].as_u64().unwrap();
        let rate = point.axes["rate_hz"].as_u64().unwrap();
        let messages = if point.experiment == "loaded" { 200 } else { point.iterations.unwrap() };
        assert_eq!(kinds(point), [LatencyKind::Response, LatencyKind::Rtt, LatencyKind::Lateness]);
        assert!(point.kinds.iter().all(|timed| timed.latency.count == messages), "{point:?}");
        let [response, rtt, lateness] = [0, 1, 2].map(|kind| &point.kinds[kind].latency);
        assert_eq!(point.latency.as_ref(), Some(response));
        // Each response is the sum of the other two, except for rounding.
        assert!((response.mean_ns - rtt.mean_ns - lateness.mean_ns).abs() <= 2.0, "{point:?}");
        let posted = point.ends[0].throughput.as_ref().unwrap().messages_per_s;
        assert!(posted < 2.0 * rate as f64, "{posted} of {rate}");
        assert!(scratch.at("record").join(point.ends[0].samples.as_ref().unwrap()).is_file());
        let carries: Vec<u32> =
            point.ends[1..].iter().filter(|end| end.throughput.is_some()).map(|end| end.rank).collect();
        let expected: &[u32] = match (point.axes.get("load").and_then(|load| load.as_str()), loaders) {
            (_, 0) => &[],
            (_, 1) => &[2],
            (Some("beside"), _) => &[2, 4, 6],
            _ => &[2, 3, 4],
        };
        assert_eq!(carries, expected, "{:?}", point.axes);
        assert_eq!(point.throughput.is_some(), loaders > 0);
        if let Some(load) = &point.throughput {
            let ends = point.ends[1..].iter().filter_map(|end| end.throughput.as_ref());
            let sum: f64 = ends.map(|end| end.bytes_per_s).sum();
            assert_eq!(load.direction, Direction::Load);
            assert!((load.bytes_per_s / sum - 1.0).abs() < 1e-9 && load.bytes_per_s > 0.0);
            assert!((load.bytes_per_s / load.messages_per_s / 4096.0 - 1.0).abs() < 1e-9);
        }
        assert_eq!(point.fairness.is_some(), loaders > 1);
        let skews: Vec<_> = point.ends.iter().filter_map(|end| end.start_skew.as_ref()).collect();
        assert_eq!(skews.len(), usize::from(loaders > 1), "the skew of their start");
    }
    assert_eq!(stdout.matches("#loaders").count(), 3, "a table for each experiment: {stdout}");
    scratch.assert_nothing_left();
}

/// A link with 128 messages of 64 KiB waiting at any time: a message in between waits for those
/// before it.
#[test]
fn a_load_that_fills_the_link_is_what_messages_wait_for() {
    let axes =
        "{ rate_hz = 200, loaders = [0, 1], load = \"incast\", load_bytes = \"64KiB\", link = \"10Gb/s\" }";
    let (_, points) = measure("duration = \"500ms\"", axes);
    assert!(all_measured(&points), "{points:?}");
    let medians = [0, 1].map(|point: usize| points[point].latency.as_ref().unwrap().p50_ns as f64);
    // 128 x 64 KiB at 10 Gb/s are 6.7 ms; a message finds the queue nearly full.
    assert!(medians[1] > 2e6 && medians[1] > medians[0], "{medians:?}");
    let carried = points[1].throughput.as_ref().unwrap().bytes_per_s;
    assert!(carried > 0.5 * 1.25e9 && carried < 1.25e9 * 1.02, "{carried}");
}

#[test]
fn a_rate_that_no_device_holds_is_said() {
    let axes = "{ rate_hz = \"50M\", operation = \"read\" }";
    let (stdout, points) = measure("iterations = 20000", axes);
    let unstable = points[0].unstable.as_deref().unwrap_or_default();
    assert!(unstable.contains("the rate of 50000000/s was not held"), "{unstable}");
    assert!(stdout.contains("was not held"), "{stdout}");
    let late = points[0].counters["messages_late"];
    assert!(late > 10_000, "{late}");
    // A sender that cannot keep up is later with every message.
    let [response, rtt] = [0, 1].map(|kind: usize| &points[0].kinds[kind].latency);
    assert!(response.p99_ns > 10 * rtt.p50_ns, "{response:?} {rtt:?}");
}

/// A link that takes 10 us for each message, with a message due every 1 us: only the answered
/// messages are known, so that there are no percentiles.
#[test]
fn a_rate_that_is_not_kept_up_with_is_not_measured() {
    let axes = "{ rate_hz = \"1M\", link = \"gap=10us\" }";
    let (stdout, points) = measure("iterations = 1000000", axes);
    let Status::NotMeasured { reason } = &points[0].status else { panic!("{:?}", points[0]) };
    let limit = "the receiver cannot keep up with 1000000 messages per second: it answered ";
    let rest = reason.strip_prefix(limit).unwrap();
    let answered: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(answered > 1000.0 && answered < 102_000.0, "{reason}");
    assert!(stdout.contains("the receiver cannot keep up with"), "{stdout}");
}

#[test]
fn one_line_measures_at_a_rate_under_a_load() {
    let scratch = Scratch::alone();
    for (words, operation, loads) in [
        ("send -c UD --rate 1k,2k", "send", 0),
        ("send --imm --loaders 0..2", "send_imm", 2),
        ("write --loaders 1 --load beside --load-size 1KiB", "write_imm", 1),
        ("read --loaders 2 --load outcast --report_gbits", "read", 1),
        ("atomic", "fetch_add", 0),
    ] {
        let line = format!("open-loop {words} -n 50 -d softdev0 --out record");
        let stdout = scratch.succeed(&line.split(' ').collect::<Vec<_>>());
        let (_, points) = scratch.record("record");
        assert!(all_measured(&points), "{words}: {points:?}");
        assert!(points.iter().all(|point| point.axes["operation"] == operation), "{words}");
        assert_eq!(points.iter().filter(|point| point.throughput.is_some()).count(), loads, "{words}");
        assert_eq!(stdout.matches("99.9%[us]").count(), 1, "{stdout}");
        std::fs::remove_dir_all(scratch.at("record")).unwrap();
    }
    for (words, sentence) in [
        ("send --rate 1.5", "cannot read \"1.5\" as a rate"),
        ("send --rate 0", "a rate of 0/s"),
        ("send --loaders 600", "give numbers from 0 to 512"),
        ("send --load sideways", "invalid value 'sideways'"),
        ("read -e", "fetches at a set rate by a rank that sleeps"),
        ("send --rate 1 -n 100", "raise timeout, or measure fewer"),
        ("write node7", "unexpected argument 'node7'"),
    ] {
        let ended = scratch.run(&format!("open-loop {words}").split(' ').collect::<Vec<_>>());
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{words}");
        assert!(ended.stderr.contains(sentence), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_load_of_messages_that_are_too_long_is_not_measured() {
    let scratch = Scratch::new();
    let plan = "[[experiment]]\nname = \"l\"\npattern = \"open-loop\"\naxes = { load_bytes = \"4GiB\", loaders = 1 }\n";
    scratch.write("long.toml", HEAD.to_owned() + plan);
    let words = ["run", "long.toml", "-d", "softdev0", "--out", "record"];
    scratch.refused(&words, 2, &["softdev0 of rank 1 sends messages of at most"]);
}
