//! `rdmascope pipeline`: samples at a fixed rate, as real-time systems send them.

use std::fs;
use std::time::{Duration, Instant};

use measure::record::{Clocks, LatencyKind, Pipeline, Point, Status};
use rustix::process::Signal;

use crate::support::namespaces::{Hosts, run_between};
use crate::support::processes::{agents, signal};
use crate::support::{PROGRAM, Scratch, collect, finish, is_installed, skip};

/// Measures with flags on this host and returns the points. Times do not matter.
fn measure(flags: &str) -> Vec<Point> {
    measure_in(&Scratch::on_one_cpu(), flags)
}

fn measure_in(scratch: &Scratch, flags: &str) -> Vec<Point> {
    let mut words: Vec<&str> = flags.split(' ').collect();
    words.extend(["--local", "--out", "record"]);
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(0), "{flags}: {ended:?}");
    let points = scratch.record("record").1;
    assert!(points.iter().all(|point| point.status == Status::Measured), "{flags}: {points:?}");
    points
}

fn count(point: &Point, name: &str) -> u64 {
    point.counters[name]
}

fn found(point: &Point) -> &Pipeline {
    point.pipeline.as_ref().expect("it is a pipeline")
}

/// Every step has one outcome, and samples that a reliable endpoint accepts arrive.
#[test]
fn every_step_is_accounted_for_over_every_node() {
    const STEPS: u64 = 2000;
    for (flags, loses) in [
        ("infiniband -d softdev0", false),
        ("infiniband -d softdev0 -c UC --timer timerfd --signal mixed", true),
        ("infiniband -d softdev0 -c UD --values 64 -Q 1", true),
        ("infiniband -d softdev0 -I 0 --buffers 3 -t 16 -Q 8 -r 64 --rx-fill 33", false),
        ("infiniband -d softdev0 --poll event -Q 1 --values 1,12", false),
        ("infiniband -d softdev0 -r 4096 --rx-filled reading", false),
        ("infiniband -d softdev0 -c UD -r 512 --rx-fill 300 --rx-filled reading --poll event", true),
        ("shmem --signal counter", false),
        ("shmem --poll event --values 64", false),
        ("tcp", false),
        ("tcp --poll busy -6", false),
        ("udp --values 64 --timer timerfd", true),
        ("unix-stream --signal sine", false),
        ("unix-datagram", false),
    ] {
        for point in measure(&format!("pipeline {flags} --rate 10k -n {STEPS} --warmup 100")) {
            assert!(loses || count(&point, "messages_lost") == 0, "{flags}: {:?}", point.counters);
            let kinds: Vec<_> = point.kinds.iter().map(|timed| timed.latency.kind).collect();
            let all = [LatencyKind::Arrival, LatencyKind::OneWay, LatencyKind::Lateness];
            assert_eq!(kinds, all, "{flags}");
            let [arrival, one_way, lateness] = [0, 1, 2].map(|kind| &point.kinds[kind].latency);
            let arrived = count(&point, "messages_received");
            assert_eq!((arrival.count, one_way.count), (arrived, arrived), "{flags}");
            // The samples that an endpoint accepted, and the other steps.
            let others = ["steps_missed", "messages_refused"].map(|fate| count(&point, fate));
            assert_eq!(lateness.count + others[0] + others[1], STEPS, "{flags}: {:?}", point.counters);
            let fates = ["messages_not_transmitted", "messages_lost"].map(|fate| count(&point, fate));
            assert_eq!(lateness.count + others[1] - fates[0] - fates[1], arrived, "{flags}");
            assert!(arrival.p50_ns >= one_way.p50_ns, "{flags}");
            let one_way = point.one_way.as_ref().unwrap();
            assert_eq!((one_way.clocks, one_way.negative), (Clocks::One, 0), "{flags}");
            let pipeline = found(&point);
            assert_eq!(pipeline.timer.away_share.is_none(), flags.contains("timerfd"), "{flags}");
            assert!(pipeline.timer.steps >= 1000 && (pipeline.rate_hz - 10_000.0).abs() < 1e-6, "{flags}");
            let values = point.axes["values"].as_u64().unwrap();
            assert_eq!(point.axes["size_bytes"], 24 + 8 * values, "{flags}");
            let is_inline = flags.starts_with("infiniband").then(|| !flags.contains("-I 0") && values < 14);
            assert_eq!(pipeline.inline, is_inline, "{flags}");
        }
    }
}

/// Whether the endpoint of a point is available; reports that the test is skipped if not.
fn is_there(point: &Point) -> bool {
    let Status::NotMeasured { reason } = &point.status else { return true };
    match reason {
        reason if reason.contains("apt-get install") => skip("libraries", reason),
        reason if reason.contains("built without") => skip("iceoryx2", reason),
        _ => return true,
    }
    false
}

/// The message libraries, and the names that they report.
const LIBRARIES: [(&str, &str); 3] = [("zeromq", "ZeroMQ 4."), ("nng", "NNG 1."), ("nanomsg", "nanomsg")];

/// Samples, round trips and one-way messages, by sockets of each kind.
#[test]
fn message_libraries_carry_what_they_can() {
    for (library, version) in LIBRARIES {
        let scratch = Scratch::alone();
        let experiment = |pattern: &str, settings: &str| {
            format!("[[experiment]]\nname = \"{pattern}\"\npattern = \"{pattern}\"\n{settings}\n")
        };
        let axes = format!("endpoint = \"{library}\", protocol = [\"pair\", \"pub_sub\"]");
        let plan = [
            "name = \"libraries\"\ntitle = \"Libraries\"\n".to_owned(),
            experiment(
                "ping-pong",
                &format!(
                    "iterations = 300\naxes = {{ {axes}, poll = [\"event\", \"busy\"], size_bytes = [9, 70000] }}"
                ),
            ),
            experiment("one-way", &format!("iterations = 300\naxes = {{ {axes} }}")),
            experiment("pipeline", &format!("iterations = 1000\naxes = {{ {axes}, rate_hz = \"5k\" }}")),
        ];
        scratch.write("plan.toml", plan.concat());
        let ended = scratch.run(&["run", "plan.toml", "--out", "record"]);
        let points = scratch.record("record").1;
        if !is_there(&points[0]) {
            continue;
        }
        for point in points {
            let at = format!("{library} {:?}", point.axes);
            assert_eq!(point.status, Status::Measured, "{at}");
            let versions: Vec<_> = point.ends.iter().filter_map(|end| end.library.as_ref()).collect();
            assert!(
                versions.len() == 2 && versions.iter().all(|own| own.starts_with(version)),
                "{at}: {versions:?}"
            );
            let lost = point.counters.get("messages_lost").copied().unwrap_or_default();
            assert_eq!(lost, 0, "{at}: {:?}", point.counters);
            assert!(point.latency.is_some_and(|latency| latency.count >= 300), "{at}");
        }
        assert_eq!(ended.stderr, "", "{library}");
        scratch.assert_nothing_left();
    }
}

/// If it is built in: samples, round trips and one-way messages, short and long, with ranks that
/// sleep and ranks that poll.
#[test]
fn a_middleware_in_shared_memory_carries_what_libraries_do() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", MIDDLEWARE);
    let ended = scratch.run(&["run", "plan.toml", "--out", "record"]);
    let points = scratch.record("record").1;
    assert_eq!(points.len(), 4 + 2 + 2, "{ended:?}");
    for point in points {
        if !is_there(&point) {
            return;
        }
        assert_eq!(point.status, Status::Measured, "{:?}", point.axes);
        assert!(
            point.ends.iter().all(|end| end.library.as_ref().is_some_and(|own| own.starts_with("iceoryx2")))
        );
        assert_eq!(
            point.counters.get("messages_lost").copied().unwrap_or_default(),
            0,
            "{:?}",
            point.counters
        );
        assert!(point.latency.is_some_and(|latency| latency.count > 0), "{:?}", point.axes);
    }
    scratch.assert_nothing_left();
}

const MIDDLEWARE: &str = r#"
name = "middleware"
title = "Middleware"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 300
axes = { endpoint = "iceoryx2", poll = ["event", "busy"], size_bytes = [9, 70000] }
[[experiment]]
name = "one-way"
pattern = "one-way"
iterations = 300
axes = { endpoint = "iceoryx2", poll = ["event", "busy"] }
[[experiment]]
name = "samples"
pattern = "pipeline"
iterations = 1000
axes = { endpoint = "iceoryx2", poll = ["event", "busy"], rate_hz = "5k" }
"#;

/// Few rates and one size of the plan, with a few samples each.
#[test]
fn the_plan_of_the_thesis_runs_and_answers_its_findings() {
    let scratch = Scratch::alone();
    let few = ["iterations=2000", "warmup=20", "repetitions=1", "rate_hz=50k,100k", "values=8"];
    // A machine that stops for milliseconds misses some of these steps, but not all.
    let high = ["experiment.beyond.rate_hz=400k", "experiment.beyond.iterations=20000"];
    let few = few.iter().chain(&high).chain(&["experiment.timers.rate_hz=100k"]);
    let mut words = vec!["run", "potter-2018-nodes", "--quick", "-d", "softdev0", "--out", "record"];
    words.extend(few.flat_map(|set| ["--set", set]));
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    for point in &points {
        assert!(!is_there(point) || point.status == Status::Measured, "{point:?}");
    }
    assert!(ended.stdout.contains(" findings: "), "{}", ended.stdout);
    let report = fs::read_to_string(scratch.at("record/report.html")).unwrap();
    assert!(run.findings.iter().all(|finding| report.contains(&finding.claim)), "the report has every claim");
}

/// If only the machine limits the rate, both timers keep it.
#[test]
fn a_rate_is_what_it_is_said_to_be() {
    for timer in ["tsc", "timerfd"] {
        let flags = format!("pipeline shmem --rate 300,1k -n 300 --warmup 0 --timer {timer}");
        let points = measure_in(&Scratch::alone(), &flags);
        for (point, rate_hz) in points.iter().zip([300.0, 1000.0]) {
            let pipeline = found(point);
            let steps = 300 - count(point, "steps_missed");
            // A generator that was preempted has made fewer samples, in the time that it ran.
            let expected = rate_hz * steps as f64 / 300.0;
            let share = pipeline.achieved_hz / expected;
            assert!((0.9..1.1).contains(&share), "{timer}: {} of {rate_hz}", pipeline.achieved_hz);
            assert!((pipeline.timer.rate_hz / rate_hz - 1.0).abs() < 0.1, "{timer}: {:?}", pipeline.timer);
        }
    }
}

/// How long a rank is stopped, and how many samples per second are due.
const STALL: Duration = Duration::from_millis(400);
const RATE_HZ: u64 = 1000;

/// Waits until a run is in the middle of its first point.
fn await_middle(scratch: &Scratch) {
    let start = Instant::now();
    while !fs::read_to_string(scratch.at("record/run.json")).is_ok_and(|run| run.contains("tick_hz")) {
        assert!(start.elapsed() < Duration::from_secs(60), "the agents did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(1500));
}

/// Stops the agent of a rank for [`STALL`] in the middle of three seconds. Returns the point and
/// its arrivals in ns, in order.
fn stalled(rank: usize) -> (Point, Vec<u64>) {
    let scratch = Scratch::alone();
    let rate = RATE_HZ.to_string();
    let words =
        ["pipeline", "shmem", "--local", "--rate", &rate, "-D", "3", "--warmup", "0", "--out", "record"];
    let child = scratch.program(words).spawn().unwrap();
    await_middle(&scratch);
    let agent = agents(&scratch.token())[rank].pid;
    signal(agent, Signal::STOP);
    std::thread::sleep(STALL);
    signal(agent, Signal::CONT);
    assert_eq!(collect(child).status, Some(0));
    let point = scratch.record("record").1.remove(0);
    let file = scratch.at("record").join(point.kinds[0].samples.as_ref().unwrap());
    let bytes = fs::read(file).unwrap();
    let arrivals = bytes.chunks_exact(8).map(|ns| u64::from_le_bytes(ns.try_into().unwrap())).collect();
    (point, arrivals)
}

/// The time that a stop of an agent adds to samples, in ns; a busy machine only adds to it.
const STALL_NS: u64 = STALL.as_nanos() as u64;

/// The step that was due when the generator stopped is late by this time, steps during the stop are
/// missed, and no other step is affected.
#[test]
fn a_generator_that_stalls_is_late_with_one_sample_and_misses_the_others() {
    let (point, arrivals) = stalled(0);
    let late: Vec<_> = arrivals.iter().filter(|ns| **ns > STALL_NS / 2).collect();
    assert_eq!(late.len(), 1, "{late:?}");
    let steps = count(&point, "steps_missed");
    let stall = STALL_NS / 1_000_000;
    assert!((STALL_NS - 2_000_000..2 * STALL_NS).contains(late[0]), "{late:?}");
    // A busy machine adds more.
    assert!(steps >= stall - 2, "{steps} were missed");
    // The generator was stopped while it waited, and its loop has noticed that.
    assert!(found(&point).missed_waiting >= stall - 2, "{point:?}");
    assert!(point.unstable.as_ref().is_some_and(|why| why.contains("the generator was late and missed")));
}

/// All samples of that time are in the queue: each is late by the rest of the stop.
#[test]
fn a_receiver_that_stalls_is_late_with_all_samples_of_that_time_and_loses_none() {
    let (point, arrivals) = stalled(1);
    let fates = ["messages_not_transmitted", "messages_lost"].map(|fate| count(&point, fate));
    assert_eq!(fates, [0, 0]);
    let first = arrivals.iter().position(|ns| *ns > STALL_NS * 9 / 10).expect("one was due when it stopped");
    for (after, ns) in (0u64..).zip(&arrivals[first..]).take(STALL.as_millis() as usize / 2) {
        let left = arrivals[first] - after * 1_000_000;
        // Without the steps that the generator missed meanwhile.
        let tolerance = 2_000_000 + 1_000_000 * count(&point, "steps_missed");
        assert!(ns.abs_diff(left) < tolerance, "{after} after the first: {ns} ns, not {left}");
    }
}

const BEFORE_AND_AFTER: &str = r#"
name = "samples"
title = "Samples"
[[experiment]]
name = "disturbed"
pattern = "pipeline"
duration = "3s"
timeout = "4s"
axes = { endpoint = "tcp", rate_hz = 1000 }
[[experiment]]
name = "after"
pattern = "pipeline"
iterations = 100
axes = { endpoint = "shmem", rate_hz = 1000 }
"#;

/// A rank that has ended or stopped costs its point and no other, within the time of that point.
#[test]
fn an_end_that_is_gone_costs_its_point_only() {
    for (rank, by, words) in [
        (1, Signal::KILL, "was killed by signal 9"),
        (1, Signal::STOP, "which is the point's time limit"),
        (0, Signal::STOP, "which is the point's time limit"),
    ] {
        let scratch = Scratch::waiting();
        scratch.write("plan.toml", BEFORE_AND_AFTER);
        let child = scratch.program(["run", "plan.toml", "--out", "record"]).spawn().unwrap();
        await_middle(&scratch);
        let disturbed = Instant::now();
        signal(agents(&scratch.token())[rank].pid, by);
        let ended = collect(child);
        assert!(disturbed.elapsed() < Duration::from_secs(20), "{:?}", disturbed.elapsed());
        assert_eq!(ended.status, Some(4), "{ended:?}");
        let [first, after] = &scratch.record("record").1[..] else { panic!("{ended:?}") };
        let Status::Failed { error } = &first.status else { panic!("{by:?} of rank {rank}: {first:?}") };
        assert!(error.contains(words), "{by:?} of rank {rank}: {error}");
        assert_eq!(after.status, Status::Measured, "{by:?} of rank {rank}");
        scratch.assert_nothing_left();
    }
}

/// Between two hosts, samples cross the link, and not the loopback of one host (as in Potter 2018).
#[test]
fn samples_cross_the_link_between_two_hosts() {
    let Some(hosts) = Hosts::new() else { return };
    let scratch = Scratch::on_one_cpu();
    for node in ["tcp", "udp", "zeromq", "nanomsg", "nng"] {
        let before = hosts.counter(0, "tx_bytes");
        let words = format!("pipeline {node} --rate 1k -n 300 --warmup 0 --values 64");
        let (ended, mut points) = run_between(&scratch, &hosts, &words, node);
        let point = points.remove(0);
        if !is_there(&point) {
            continue;
        }
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert_eq!(point.status, Status::Measured, "{node}");
        let received = count(&point, "messages_received");
        let crossed = hosts.counter(0, "tx_bytes") - before;
        assert!(received >= 50 && crossed >= received * (24 + 8 * 64), "{node}: {received} in {crossed} B");
        assert_eq!(count(&point, "messages_lost"), 0, "{node}");
        let looped = hosts.on(0, &["cat", "/sys/class/net/lo/statistics/tx_bytes"]);
        assert_eq!(looped.trim(), "0", "{node}");
    }
    scratch.assert_nothing_left();
}

/// Latencies between two clocks are as exact as the comparison of these clocks.
#[test]
fn samples_between_two_clocks_have_a_bound() {
    let scratch = Scratch::on_one_cpu();
    let flags = "pipeline infiniband -d softdev0 --rate 200 -n 200 --link latency=2ms --out record";
    let skewed = scratch.skewed("offset=-3ms,drift=60ppm");
    let ended = scratch.run(&flags.split(' ').chain(skewed.iter().map(String::as_str)).collect::<Vec<_>>());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let point = scratch.record("record").1.remove(0);
    let clocks = &point.one_way.as_ref().expect("it was measured one way").clocks;
    let Clocks::Two { bound_ns, drift_ppm, .. } = clocks else { panic!("{clocks:?}") };
    assert!(drift_ppm[0] <= 60.0 && 60.0 <= drift_ppm[1], "{drift_ppm:?}");
    for (timed, kind) in point.kinds.iter().zip([LatencyKind::Arrival, LatencyKind::OneWay]) {
        assert_eq!(timed.latency.kind, kind);
        let median_ns = timed.latency.p10_ns as f64;
        assert!((median_ns - 2e6).abs() <= bound_ns + 1e6, "{kind:?}: {median_ns} +- {bound_ns}");
    }
}

/// The files of both ranks agree with each other, sample by sample, and with the record.
#[test]
fn files_of_both_ends_have_every_sample_as_it_was() {
    let scratch = Scratch::on_one_cpu();
    let flags = "pipeline infiniband --local -d softdev0 --rate 20k -n 3000 --warmup 7 --values 3 --sink csv --sink-dir logs";
    let mut words: Vec<&str> = flags.split(' ').collect();
    words.extend(["--out", "record"]);
    let printed = scratch.succeed(&words);
    assert!(printed.contains("samples as csv"), "{printed}");
    let point = scratch.record("record").1.remove(0);
    let read = |way: &str| {
        let text = fs::read_to_string(scratch.at(&format!("logs/000000_RC-3-20000-3007_{way}.csv"))).unwrap();
        let lines = text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        lines.collect::<Vec<_>>()
    };
    let sent = read("input");
    let taken = read("output");
    let sinks = &found(&point).sinks;
    assert_eq!([sinks[0].samples, sinks[1].samples], [sent.len() as u64, taken.len() as u64]);
    // Also in the warm-up, the received samples are the sent ones, except for their times.
    assert!(taken.len() as u64 >= count(&point, "messages_received") && taken.len() <= sent.len());
    let of = |line: &[String]| [&line[..2], &line[3..]].concat();
    let sent: Vec<_> = sent.iter().map(|line| of(line)).collect();
    assert!(taken.iter().all(|line| sent.contains(&of(line))));
    let mut offsets: Vec<f64> = taken
        .iter()
        .filter(|line| line[3].parse::<u64>().unwrap() >= 7)
        .map(|line| line[2].parse().unwrap())
        .collect();
    offsets.sort_by(f64::total_cmp);
    let one_way = &point.kinds[1].latency;
    let largest_ns = (offsets[offsets.len() - 1] * 1e9).round() as u64;
    assert!(largest_ns.abs_diff(one_way.max_ns) <= 1, "{largest_ns} {}", one_way.max_ns);
    // `import` reads these files like other logs.
    scratch.succeed(&["import", "logs", "--out", "imported"]);
    let imported = scratch.record("imported").1.remove(0);
    assert_eq!(count(&imported, "steps_missed"), 3007 - sent.len() as u64);
    assert_eq!(count(&imported, "messages_received"), taken.len() as u64);
    // A second run overwrites nothing, and measures no point that it cannot keep.
    let words: Vec<&str> = flags.split(' ').collect();
    let again = scratch.run(&words);
    assert!(again.status == Some(1) && again.stdout.contains("another run wrote it"), "{again:?}");
}

/// Points stay measured, and the files have complete lines as far as there was room.
#[test]
fn a_full_disk_costs_the_file_its_end_and_nothing_else() {
    if !rustix::process::geteuid().is_root() || !is_installed("unshare") {
        return skip("root", "mounting a small tmpfs in a mount namespace of its own needs root and unshare");
    }
    let scratch = Scratch::alone();
    fs::create_dir(scratch.at("disk")).unwrap();
    let script = "mount -t tmpfs -o size=300k none disk || exit 77; \
                  \"$0\" pipeline shmem --local --rate 20k -n 4000 --sink csv --sink-dir disk --out record; \
                  status=$?; cat disk/*_output.csv > output.csv; exit $status";
    let mut command = scratch.command("unshare");
    command.args(["-m", "sh", "-c", script, *PROGRAM]);
    let ended = finish(command);
    if ended.status == Some(77) {
        return skip("mount", "a tmpfs cannot be mounted here");
    }
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let point = scratch.record("record").1.remove(0);
    assert_eq!(point.status, Status::Measured);
    let short = found(&point)
        .sinks
        .iter()
        .find(|sink_report| sink_report.missing > 0)
        .expect("300 KiB hold no 8000 lines");
    assert!(short.error.as_ref().is_some_and(|error| error.contains("No space left on device")), "{short:?}");
    assert!(point.unstable.as_ref().is_some_and(|why| why.contains("are not in its file")));
    let output = &found(&point).sinks[1];
    // A file without any room is removed.
    let text = fs::read_to_string(scratch.at("output.csv")).unwrap();
    assert_eq!(output.path.is_none(), text.is_empty(), "{output:?}");
    assert!(text.is_empty() || text.ends_with('\n'), "a line is torn");
    assert_eq!(text.lines().count().saturating_sub(1) as u64, output.samples);
}

/// A receiver that takes nothing does not stop the generator: samples without room are unsent, and
/// the others are sent.
#[test]
fn what_finds_no_room_is_not_waited_for() {
    // Four receives and a send queue of four are full after eight samples, if the receiver sleeps
    // for that long.
    let flags = "pipeline infiniband -d softdev0 --rate 200k -n 20000 -t 4 -r 4 -Q 2 --poll event";
    let points = measure_in(&Scratch::alone(), flags);
    let [point] = &points[..] else { panic!("one point") };
    let refused = count(point, "messages_refused");
    assert!(refused > 0 && refused == count(point, "messages_not_transmitted"), "{:?}", point.counters);
    assert_eq!(count(point, "messages_lost"), 0);
}

#[test]
fn what_a_pipeline_cannot_be_is_refused_with_a_way_out() {
    let scratch = Scratch::new();
    for (flags, words) in [
        ("shmem --local --rate 1M -D 60", ["60000000 steps", "measure fewer"]),
        ("shmem --local --rate 60M", ["a rate of 60000000/s", "50000000"]),
        ("infiniband --local -t 4 -Q 8", ["--cq-mod 8", "--tx-depth 4"]),
    ] {
        let words_of: Vec<&str> = ["pipeline"].into_iter().chain(flags.split(' ')).collect();
        scratch.refused(&words_of, 2, &words);
    }
    // Files of an unknown format.
    let ended = scratch.run(&["pipeline", "shmem", "--local", "--sink-dir", "logs"]);
    assert!(ended.status == Some(2) && ended.stderr.contains("--sink <FORMAT>"), "{ended:?}");
}
