//! The coordinator with agents that work, die, send garbage, hang or babble: every run ends within
//! its deadline, reports what happened in one sentence and leaves no process behind.
//!
//! The agents are this test binary itself, started again through a command template (`fake.rs`).

mod environments;
mod fake;
mod hands;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::axis;
use bench::plan::{Options, Plan, Settings, resolve};
use bench::point::{Flow, Pattern, PointSpec};
use bench::process::coordinator::{self, Launch, Summary};
use bench::process::frame::{Decoder, Greeting};
use bench::process::interrupt::Interrupt;
use bench::process::message::{Hello, Reply, Request};
use bench::process::sink::{KeptSamples, Sink, SinkError, Source};
use measure::record::{Direction, Point, Status};

/// Timeout of a point and of a start in these tests.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How much later than a deadline a busy machine may be.
const SLACK: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Seen {
    started: Vec<Hello>,
    points: Vec<Point>,
    samples: Vec<Vec<KeptSamples>>,
    lines: Vec<String>,
    notices: Vec<String>,
    warnings: Vec<String>,
    /// Points with the core-to-core latency that was measured before or after them.
    calibrated: Vec<(u64, f64)>,
    /// The best known core-to-core latency.
    best_ns: Option<f64>,
}

impl Sink for Seen {
    fn started(&mut self, agents: &[Hello]) -> Result<(), SinkError> {
        assert!(self.started.is_empty(), "started once");
        self.started = agents.to_vec();
        Ok(())
    }

    fn point_started(&mut self, _: &PointSpec) {}

    fn calibrated(&mut self, spec: &PointSpec, one_way_ns: f64) -> Option<f64> {
        self.calibrated.push((spec.id, one_way_ns));
        self.best_ns
    }

    fn point(&mut self, point: Point, samples: &[KeptSamples]) -> Result<(), SinkError> {
        self.points.push(point);
        self.samples.push(samples.to_vec());
        Ok(())
    }

    fn agent_line(&mut self, who: &str, line: &str) {
        self.lines.push(format!("[{who}] {line}"));
    }

    fn notice(&mut self, text: &str) {
        self.notices.push(text.to_owned());
    }

    fn warning(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }
}

impl Seen {
    /// The errors of the failed points, without process numbers.
    fn errors(&self) -> Vec<String> {
        let error = |point: &Point| match &point.status {
            Status::Failed { error } => Some(without_pids(error)),
            _ => None,
        };
        self.points.iter().filter_map(error).collect()
    }
}

/// Three points of one experiment.
fn points(pattern: Pattern, direction: Flow) -> Vec<PointSpec> {
    let settings =
        Settings { iterations: Some(10), timeout_s: Some(TIMEOUT.as_secs_f64()), ..Settings::default() }
            .axis(axis::DIRECTION.value(direction))
            .axis(axis::SIZE_BYTES.values([4, 8, 16]));
    let plan = Plan::new("test", "Test").experiment("e", pattern, settings);
    resolve(&plan, &Options::default()).unwrap().points
}

/// Runs three points with agents with these behaviours.
fn run<const N: usize>(modes: [&str; N]) -> (Result<Summary, String>, Seen) {
    run_points(modes, &points(Pattern::PING_PONG, Flow::Uni))
}

fn run_points<const N: usize>(modes: [&str; N], points: &[PointSpec]) -> (Result<Summary, String>, Seen) {
    run_into(Seen::default(), modes, points)
}

fn run_into<const N: usize>(
    mut seen: Seen,
    modes: [&str; N],
    points: &[PointSpec],
) -> (Result<Summary, String>, Seen) {
    let token = fake::token();
    let launch = Launch { start_timeout: TIMEOUT, ..fake::launch(&token, &modes) };
    let start = Instant::now();
    let summary = coordinator::run(points, &launch, None, &mut seen);
    assert!(start.elapsed() < 4 * TIMEOUT + SLACK, "{modes:?} took {:?}", start.elapsed());
    assert_eq!(fake::left_behind(&token), Vec::<u32>::new(), "{modes:?} left processes");
    (summary.map_err(|err| without_pids(&err.to_string())), seen)
}

fn without_pids(text: &str) -> String {
    let mut parts = text.split("(pid ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("(pid N");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn summary(measured: u64, not_measured: u64, failed: u64) -> Result<Summary, String> {
    Ok(Summary { measured, not_measured, failed })
}

#[test]
fn agents_that_behave_are_measured() {
    let (result, seen) = run(["good", "good"]);
    assert_eq!(result, summary(3, 0, 0));
    assert_eq!(seen.started.len(), 2);
    assert_eq!(seen.warnings, Vec::<String>::new());
    let point = &seen.points[1];
    assert_eq!((point.id, point.status.clone(), point.iterations), (1, Status::Measured, Some(10)));
    // The main latency is that of rank 0; the ranks have exchanged their addresses.
    assert_eq!(point.latency.as_ref().unwrap().p50_ns, 1000);
    assert_eq!(point.ends.len(), 2);
    assert_eq!(point.counters["other_ranks"], 1);
    assert_eq!(point.calibration.as_ref().unwrap().before_ns, 50.0);
    assert_eq!(point.unstable, None);
    let samples: Vec<u64> = (0..10).collect();
    let kept = |rank| KeptSamples { of: Source::End(rank), samples_ns: samples.clone() };
    assert_eq!(seen.samples[1], [kept(0), kept(1)]);
    assert_eq!(seen.lines.iter().filter(|line| *line == "[rank 0 good] set up").count(), 3);
}

#[test]
fn throughput_is_that_of_the_slower_end_and_both_directions_are_told_apart() {
    let (_, seen) = run_points(["good", "good"], &points(Pattern::STREAM, Flow::Uni));
    let point = &seen.points[0];
    assert_eq!(point.throughput.as_ref().unwrap().bytes_per_s, 1000.0);
    assert_eq!(point.ends[1].throughput.as_ref().unwrap().bytes_per_s, 2000.0);
    assert_eq!(point.throughput_total, None);
    let (_, seen) = run_points(["good", "good"], &points(Pattern::STREAM, Flow::Bi));
    let point = &seen.points[0];
    let one = point.throughput.as_ref().unwrap();
    let total = point.throughput_total.as_ref().unwrap();
    assert_eq!((one.bytes_per_s, one.direction), (1500.0, Direction::BiOne));
    assert_eq!((total.bytes_per_s, total.direction), (3000.0, Direction::BiTotal));
}

#[test]
fn what_an_agent_says_against_a_point_ends_that_point_only() {
    for step in ["prepare", "connect", "run"] {
        let (result, seen) = run(["good", &format!("fail-{step}-1")]);
        assert_eq!(result, summary(2, 0, 1), "{step}");
        assert_eq!(seen.errors(), ["rank 1: told to fail"]);
        let (result, seen) = run([&format!("refuse-{step}-1"), "good"]);
        assert_eq!(result, summary(2, 1, 0), "{step}");
        assert_eq!(seen.points[1].status, Status::NotMeasured { reason: "told to refuse".to_owned() });
    }
}

#[test]
fn a_rank_that_waits_for_a_failed_one_is_not_waited_for() {
    let start = Instant::now();
    let mut points = points(Pattern::PING_PONG, Flow::Uni);
    points.iter_mut().for_each(|point| point.timeout_s = 600.0);
    let (result, seen) = run_points(["silent-run-1", "fail-run-1"], &points);
    assert_eq!(result, summary(2, 0, 1));
    assert_eq!(seen.errors(), ["rank 1: told to fail"]);
    assert!(start.elapsed() < SLACK);
}

#[test]
fn an_agent_that_dies_fails_its_point_and_is_replaced() {
    for (step, doing) in [("prepare", "preparing"), ("connect", "connecting"), ("run", "measuring")] {
        let (result, seen) = run(["good", &format!("die-{step}-1")]);
        assert_eq!(result, summary(2, 0, 1), "{step}");
        let who = format!("the agent of rank 1 on die-{step}-1 (pid N)");
        let said = "it last said \"set up\"";
        assert_eq!(seen.errors(), [format!("{who} was killed by signal 9 while {doing} point 1; {said}")]);
    }
}

#[test]
fn an_agent_that_dies_says_why() {
    let (result, seen) = run(["exit-run-1", "good"]);
    assert_eq!(result, summary(2, 0, 1));
    assert_eq!(
        seen.errors(),
        [
            "the agent of rank 0 on exit-run-1 (pid N) ended with exit status 7 while measuring point 1; it last said \
          \"the device fell off\""
        ]
    );
}

#[test]
fn a_result_outlives_an_agent_that_dies_after_it() {
    let (result, seen) = run(["die-reset-1", "good"]);
    assert_eq!(result, summary(3, 0, 0));
    assert!(
        without_pids(&seen.warnings[0]).contains("was killed by signal 9 while cleaning up after point 1")
    );
}

#[test]
fn an_agent_that_goes_silent_is_ended_at_the_deadline() {
    // A rank that measures has two more seconds to report that the time limit of 2 s is over.
    for (step, doing, limit_s) in [("prepare", "preparing", 2), ("run", "measuring", 4)] {
        let (result, seen) = run(["good", &format!("silent-{step}-1")]);
        assert_eq!(result, summary(2, 0, 1), "{step}");
        let who = format!("the agent of rank 1 on silent-{step}-1 (pid N)");
        let said = "it last said \"measuring for ever\"";
        let error = format!("{who} gave no answer within {limit_s} s while {doing} point 1; {said}");
        assert_eq!(seen.errors(), [error]);
    }
}

#[test]
fn an_agent_that_stops_reading_is_ended_at_the_deadline() {
    let mut points = points(Pattern::PING_PONG, Flow::Uni);
    // A request that is too large for a pipe.
    points[0].share_above_ns = (0..100_000).collect();
    let (result, seen) = run_points(["good", "deaf"], &points);
    assert_eq!(result, summary(0, 0, 3));
    let error = |id| {
        format!("the agent of rank 1 on deaf (pid N) gave no answer within 2 s while preparing point {id}")
    };
    assert_eq!(seen.errors(), [error(0), error(1), error(2)]);
}

#[test]
fn stray_output_is_shown() {
    let (result, seen) = run(["good", "stray-run-1"]);
    assert_eq!(result, summary(2, 0, 1));
    assert_eq!(
        seen.errors(),
        [
            "the agent of rank 1 on stray-run-1 (pid N) cannot be used: the messages are broken: \"Segmentation fault\" \
          came in the place of a message"
        ]
    );
}

#[test]
fn half_a_frame_is_no_frame() {
    let (result, seen) = run(["half-run-1", "good"]);
    assert_eq!(result, summary(2, 0, 1));
    assert_eq!(
        seen.errors(),
        [
            "the agent of rank 0 on half-run-1 (pid N) ended with exit status 3 in the middle of a message while \
          measuring point 1; it last said \"set up\""
        ]
    );
}

#[test]
fn floods_are_stopped() {
    let (result, seen) = run(["good", "babble-run-1"]);
    assert_eq!(result, summary(2, 0, 1));
    assert_eq!(
        seen.errors(),
        [
            "the agent of rank 1 on babble-run-1 (pid N) answered \"connected\" out of turn while measuring point 1: \
          this is a bug, please report it"
        ]
    );
    let (result, _) = run(["good", "babble-start"]);
    assert!(result.unwrap_err().contains("but read \"xxxxxxxx"));
}

#[test]
fn what_cannot_start_ends_the_run_in_one_sentence() {
    for (mode, error) in [
        (
            "garbage-start",
            "the agent of rank 1 on garbage-start (pid N) cannot be used: expected the greeting of rdmascope but read \
             \"bash: rdmascope: command not found\": the command that starts an agent must run rdmascope and print \
             nothing itself",
        ),
        (
            "prompt-start",
            "the agent of rank 1 on prompt-start (pid N) cannot be used: expected the greeting of rdmascope but read \
             \"$\": the command that starts an agent must run rdmascope and print nothing itself",
        ),
        (
            "version-start",
            concat!(
                "the agent of rank 1 on version-start (pid N) cannot be used: rdmascope 9.9.9 with protocol 999 \
                 cannot work with rdmascope ",
                env!("CARGO_PKG_VERSION"),
                " with protocol 3: install the same version on both hosts"
            ),
        ),
        (
            "exit-start",
            "the agent of rank 1 on exit-start (pid N) ended with exit status 7 while starting; it last said \"the \
             device fell off\"",
        ),
        (
            "silent-start",
            "the agent of rank 1 on silent-start (pid N) gave no answer within 2 s while starting; \
             it last said \"measuring for ever\"",
        ),
        (
            "fail-describe",
            "the agent of rank 1 on fail-describe (pid N) cannot describe its host: told to fail",
        ),
        ("die-describe", "the agent of rank 1 on die-describe (pid N) was killed by signal 9 while starting"),
    ] {
        let (result, seen) = run(["good", mode]);
        assert_eq!(result, Err(error.to_owned()));
        assert!(seen.points.is_empty() && seen.started.is_empty());
        // A second attempt would not find rdmascope, the right version or the device either.
        let is_tried_again = !error.contains("cannot be used") && !error.contains("cannot describe");
        let warnings: Vec<_> = seen.warnings.iter().map(|warning| without_pids(warning)).collect();
        assert_eq!(warnings, vec![format!("{error}; trying once more"); is_tried_again.into()]);
    }
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let mut launch = fake::launch("none", &["good", "good"]);
    launch.via = Some("no-such-program {host}".to_owned());
    let points = points(Pattern::PING_PONG, Flow::Uni);
    let error = coordinator::run(&points, &launch, None, &mut Seen::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot start the agent of rank 0 with \"no-such-program\": No such file or directory (os error 2)"
    );
}

/// Points of one to n with these numbers of peers.
fn fans(peers: &[u32]) -> Vec<PointSpec> {
    let settings =
        Settings { iterations: Some(10), timeout_s: Some(TIMEOUT.as_secs_f64()), ..Settings::default() }
            .axis(axis::PEERS.values(peers.to_vec()));
    let plan = Plan::new("test", "Test").experiment("e", Pattern::FAN_OUT, settings);
    resolve(&plan, &Options::default()).unwrap().points
}

#[test]
fn every_rank_is_told_what_all_others_have_for_it() {
    let (result, seen) = run_points(["good", "good", "good", "good", "good"], &fans(&[2, 4, 1]));
    assert_eq!(result, summary(3, 0, 0));
    assert_eq!(seen.started.len(), 5);
    let ends: Vec<_> = seen.points.iter().map(|point| point.ends.len()).collect();
    assert_eq!(ends, [3, 5, 2], "the first ranks take part");
    // Each of n ranks gets n - 1 addresses: the sum is n - 1 times 0 + 1 + ... + n - 1.
    let told: Vec<_> = seen.points.iter().map(|point| point.counters["other_ranks"]).collect();
    assert_eq!(told, [2 * 3, 4 * 10, 1]);
}

#[test]
fn one_of_many_that_dies_fails_its_point_only() {
    let many: Vec<_> = (0..3).map(|id| PointSpec { id, ..fans(&[3]).remove(0) }).collect();
    let (result, seen) = run_points(["good", "good", "die-run-1", "good"], &many);
    assert_eq!(result, summary(2, 0, 1));
    assert!(seen.errors()[0].contains("rank 2"), "{:?}", seen.errors());
    let (result, seen) = run_points(["good", "good", "good", "fail-connect-0"], &fans(&[3, 2]));
    assert_eq!(result, summary(1, 0, 1));
    assert_eq!(seen.errors(), ["rank 3: told to fail"]);
}

#[test]
fn ranks_take_hosts_and_cpus_in_turn() {
    let token = fake::token();
    let launch = Launch { start_timeout: TIMEOUT, ..fake::launch(&token, &["good", "elsewhere"]) };
    let mut seen = Seen::default();
    assert!(coordinator::run(&fans(&[3]), &launch, None, &mut seen).is_ok());
    let hosts: Vec<_> =
        seen.started.iter().map(|hello| hello.description.environment.hostname.as_str()).collect();
    assert_eq!(hosts, ["here", "elsewhere", "here", "elsewhere"]);
}

#[test]
fn children_of_agents_do_not_stay() {
    let (result, seen) = run(["good", "grandchild-run-1"]);
    assert_eq!(result, summary(2, 0, 1));
    // The child still holds the agent's output open, which must not hide the death of the agent.
    assert!(
        seen.errors()[0].contains("was killed by signal 9 while measuring point 1"),
        "{:?}",
        seen.errors()
    );
}

#[test]
fn every_calibration_is_compared_with_the_best_that_is_known() {
    let points = points(Pattern::PING_PONG, Flow::Uni);
    for (best_ns, reason) in [(None, None), (Some(20.0), None), (Some(12.5), Some("4.0 times the best seen"))]
    {
        let (result, seen) = run_into(Seen { best_ns, ..Seen::default() }, ["good", "good"], &points);
        assert_eq!(result, summary(3, 0, 0));
        let around = [0, 0, 1, 1, 2, 2].map(|id| (id, 50.0));
        assert_eq!(seen.calibrated, around, "before and after each point");
        for point in &seen.points {
            assert_eq!(point.calibration.as_ref().unwrap().best_ns, best_ns);
            let said = point.unstable.as_deref();
            assert_eq!(said.is_some(), reason.is_some(), "{said:?}");
            assert!(said.unwrap_or_default().contains(reason.unwrap_or_default()), "{said:?}");
        }
    }
    let (_, seen) = run(["refuse-calibrate", "good"]);
    assert_eq!(seen.calibrated, []);
}

#[test]
fn calibration_that_is_impossible_is_absent_and_a_moved_cpu_is_noticed() {
    let (result, seen) = run(["refuse-calibrate", "good"]);
    assert_eq!(result, summary(3, 0, 0));
    assert_eq!(seen.points[0].calibration, None);
    assert_eq!(seen.warnings, ["the core-to-core latency is not measured: told to refuse"]);
    let (_, seen) = run(["drift-calibrate", "good"]);
    assert_eq!(
        seen.points[0].unstable.as_deref(),
        Some("the core-to-core latency changed from 50 ns before the point to 75 ns after it")
    );
    // There is no pair of CPUs if the ranks are on two hosts, or if one of them is not pinned.
    for other in ["elsewhere", "loose"] {
        let (_, seen) = run(["good", other]);
        assert_eq!((seen.points[0].calibration.clone(), seen.warnings.len()), (None, 0), "{other}");
    }
}

#[test]
fn the_path_mtu_is_what_both_ports_have_unless_the_plan_says_so() {
    let mut points = points(Pattern::PING_PONG, Flow::Uni);
    points[0].message.mtu_bytes = None;
    points[1].message.mtu_bytes = Some(256);
    points[2].message.mtu_bytes = None;
    (points[2].message.service, points[2].message.size_bytes) = (bench::point::Service::Ud, 4096);
    let (_, seen) = run_points(["good", "small"], &points);
    assert_eq!(seen.points[0].axes["mtu_bytes"], 1024, "the smaller of the two");
    assert_ne!(seen.points[1].axes["mtu_bytes"], 1024);
    let Status::NotMeasured { reason } = &seen.points[2].status else { panic!("{:?}", seen.points[2]) };
    assert_eq!(reason, "fake0 of rank 0 sends datagrams of at most 1024 bytes, the path MTU");
}

#[test]
fn limits_of_a_device_are_not_measured() {
    let mut points = points(Pattern::PING_PONG, Flow::Uni);
    points[0].message.size_bytes = 1 << 40;
    points[1].message.inline = true;
    points[1].message.size_bytes = 300;
    points[2].message.mtu_bytes = Some(4096);
    let (result, _) = run_points(["good", "small"], &points);
    assert_eq!(
        result.unwrap_err(),
        "nothing of this plan can be measured: fake0 of rank 0 sends messages of at most 1073741824 bytes"
    );
    let mut possible = points[0].clone();
    let message = &mut possible.message;
    (message.mtu_bytes, message.inline, message.size_bytes) = (Some(1024), false, 64);
    points.push(possible);
    let (result, seen) = run_points(["good", "small"], &points);
    assert_eq!(result, summary(1, 3, 0));
    let reason = |index: usize| match &seen.points[index].status {
        Status::NotMeasured { reason } => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(0), "fake0 of rank 0 sends messages of at most 1073741824 bytes");
    assert_eq!(reason(1), "fake0 of rank 0 sends at most 256 bytes inline");
    assert_eq!(reason(2), "fake0 of rank 1 has a path MTU of at most 1024 bytes");
}

#[test]
fn an_agent_dies_with_its_coordinator_even_while_it_measures() {
    let token = fake::token();
    let mut agent =
        fake::command(&token, "silent-run-0").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = agent.stdin.take().unwrap();
    let mut output = agent.stdout.take().unwrap();
    let point = points(Pattern::PING_PONG, Flow::Uni).remove(0);
    input.write_all(Greeting::ours().to_line().as_bytes()).unwrap();
    let mut decoder = Decoder::default();
    let mut bytes = [0; 4096];
    while decoder.greeting().unwrap().is_none() {
        let count = output.read(&mut bytes).unwrap();
        decoder.push(&bytes[..count]);
    }
    for request in [Request::Hello { rank: 0, ranks: 2 }, Request::Prepare(Box::new(point))] {
        request.to_frame().write(&mut input).unwrap();
        while decoder.frame().unwrap().is_none() {
            let count = output.read(&mut bytes).unwrap();
            decoder.push(&bytes[..count]);
        }
    }
    Request::Run.to_frame().write(&mut input).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(agent.try_wait().unwrap().is_none(), "it measures");
    drop(input);
    assert!(ends_within(&mut agent, SLACK), "it is gone");
}

#[test]
fn a_message_survives_its_frame() {
    let outcome = fake::outcome(1, 0);
    let reply = Reply::Done(Box::new(outcome));
    assert_eq!(Reply::from_frame(reply.clone().to_frame()).unwrap(), reply);
    for point in points(Pattern::STREAM, Flow::Bi) {
        let request = Request::Prepare(Box::new(point));
        assert_eq!(Request::from_frame(&request.to_frame()).unwrap(), request);
    }
}

/// Starts a coordinator with agents that measure for ever, waits until they do, and ends it with a
/// signal.
fn end_coordinator(signal: rustix::process::Signal) -> (String, Option<i32>) {
    let token = fake::token();
    let mut coordinator = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "coordinator_process", "--ignored", "--nocapture"])
        .env("FAKE_COORDINATOR", &token)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(coordinator.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("measuring for ever")));
    let pid = rustix::process::Pid::from_child(&coordinator);
    rustix::process::kill_process(pid, signal).unwrap();
    assert!(ends_within(&mut coordinator, SLACK));
    let start = Instant::now();
    while !fake::left_behind(&token).is_empty() && start.elapsed() < SLACK {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fake::left_behind(&token), Vec::<u32>::new());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    (rest.join("\n"), coordinator.wait().unwrap().code())
}

#[test]
fn a_signal_ends_a_run_cleanly() {
    for (signal, name) in
        [(rustix::process::Signal::INT, "SIGINT"), (rustix::process::Signal::TERM, "SIGTERM")]
    {
        let (text, _) = end_coordinator(signal);
        assert!(text.contains(&format!("stopped by {name}: the points that had ended are kept")), "{text}");
    }
}

#[test]
fn agents_do_not_outlive_a_killed_coordinator() {
    let (_, code) = end_coordinator(rustix::process::Signal::KILL);
    assert_eq!(code, None);
}

fn ends_within(child: &mut Child, timeout: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < timeout {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // A child that did not end by itself must not stay either.
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

/// Not a test: the agent that the tests above start.
#[test]
#[ignore = "it is the agent of the other tests"]
fn agent_process() {
    if let Ok(mode) = std::env::var("FAKE_AGENT") {
        fake::serve(&mode);
    }
}

/// Not a test: the coordinator that the tests above end.
#[test]
#[ignore = "it is the coordinator of the other tests"]
fn coordinator_process() {
    struct Loud;
    impl Sink for Loud {
        fn started(&mut self, _: &[Hello]) -> Result<(), SinkError> {
            Ok(())
        }
        fn point_started(&mut self, _: &PointSpec) {}
        fn point(&mut self, _: Point, _: &[KeptSamples]) -> Result<(), SinkError> {
            Ok(())
        }
        fn agent_line(&mut self, _: &str, line: &str) {
            println!("{line}");
        }
        fn notice(&mut self, _: &str) {}
        fn warning(&mut self, _: &str) {}
    }
    let Ok(token) = std::env::var("FAKE_COORDINATOR") else { return };
    let mut points = points(Pattern::PING_PONG, Flow::Uni);
    points.iter_mut().for_each(|point| point.timeout_s = 600.0);
    let interrupt = Interrupt::install().unwrap();
    let launch = fake::launch(&token, &["silent-run-0", "silent-run-0"]);
    let result = coordinator::run(&points, &launch, Some(&interrupt), &mut Loud);
    println!("{}", result.unwrap_err());
}
