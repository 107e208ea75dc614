//! Agents for the tests: this binary again. The name of the host selects its behaviour: `good`,
//! `ACTION-STEP` or `ACTION-STEP-POINT`, e.g. `die-run-1`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bench::point::PointSpec;
use bench::process::agent::{self, PointError, Worker};
use bench::process::coordinator::Launch;
use bench::process::frame::{Decoder, Greeting};
use bench::process::message::{
    Calibrated, CalibrationStep, Description, Hello, Limits, Neighbour, Outcome, Prepared, Reply,
};
use measure::conditions::{Condition, Wanted};
use measure::record::{
    Device, Direction, Environment, Latency, LatencyKind, Mavericks, Overhead, Throughput,
};
use serde_json::json;

/// How to start agents with these behaviours. The token identifies their processes.
pub(crate) fn launch(token: &str, modes: &[&str]) -> Launch {
    let exe = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    Launch {
        // The test harness prints to standard output, so frames go to a separate descriptor.
        program: ["sh", "-c", SCRIPT, &exe].map(str::to_owned).to_vec(),
        via: Some(format!("env FAKE_TOKEN={token} FAKE_AGENT={{host}}")),
        hosts: modes.iter().map(|mode| (*mode).to_owned()).collect(),
        cpus: Vec::new(),
        arguments: Vec::new(),
        server: None,
        launcher: None,
        start_timeout: Duration::from_secs(30),
        launches_before: 0,
    }
}

/// The command of one agent.
pub(crate) fn command(token: &str, mode: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(SCRIPT).arg(std::env::current_exe().unwrap());
    command.env("FAKE_TOKEN", token).env("FAKE_AGENT", mode).stderr(Stdio::null());
    command
}

const SCRIPT: &str =
    "exec 3>&1 1>/dev/null; unset FAKE_COORDINATOR; exec \"$0\" --exact agent_process --ignored --nocapture";

/// A text that no other process has in its environment.
pub(crate) fn token() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("token-{}-{}-", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes that were started with this token and still run.
pub(crate) fn left_behind(token: &str) -> Vec<u32> {
    let wanted = format!("FAKE_TOKEN={token}");
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    processes
        .filter_map(|name| name.parse().ok())
        .filter(|pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

/// Runs as an agent with a behaviour. Does not return.
pub(crate) fn serve(mode: &str) -> ! {
    // SAFETY: the script opened descriptor 3 for this, and nothing else of this process knows it.
    let output = unsafe { File::from_raw_fd(3) };
    let mut fake =
        Fake { mode: mode.to_owned(), rank: 0, point: None, others: 0, calibrations: 0, arranged: 0, output };
    if let Some(action) = fake.action("start") {
        fake.act(&action).unwrap();
    }
    if fake.mode == "deaf" {
        fake.introduce_and_stop_reading();
    }
    let input: File = io::stdin().as_fd().try_clone_to_owned().unwrap().into();
    let output = fake.output.try_clone().unwrap();
    let status = i32::from(agent::serve(input, output, fake).is_err());
    std::process::exit(status)
}

struct Fake {
    mode: String,
    rank: u32,
    point: Option<u64>,
    others: u64,
    calibrations: u32,
    arranged: u32,
    output: File,
}

impl Fake {
    /// Answers the first request and never reads again.
    fn introduce_and_stop_reading(&mut self) -> ! {
        let mut decoder = Decoder::default();
        let mut bytes = [0; 1];
        self.output.write_all(Greeting::ours().to_line().as_bytes()).unwrap();
        let mut input: File = io::stdin().as_fd().try_clone_to_owned().unwrap().into();
        let mut read = |decoder: &mut Decoder| {
            input.read_exact(&mut bytes).unwrap();
            decoder.push(&bytes);
        };
        while decoder.greeting().unwrap().is_none() {
            read(&mut decoder);
        }
        while decoder.frame().unwrap().is_none() {
            read(&mut decoder);
        }
        let hello = Hello { pid: std::process::id(), description: self.describe(1).unwrap() };
        Reply::Hello(Box::new(hello)).to_frame().write(&mut self.output).unwrap();
        loop {
            std::thread::park();
        }
    }

    /// The action at a step, if any.
    fn action(&self, step: &str) -> Option<String> {
        let mut parts = self.mode.split('-');
        let action = parts.next()?;
        let wanted = parts.next()?;
        let point = parts.next();
        let here = point.is_none_or(|point| self.point.is_some_and(|id| id.to_string() == point));
        (wanted == step && here).then(|| action.to_owned())
    }

    fn at(&self, step: &str) -> Result<(), PointError> {
        self.action(step).map_or(Ok(()), |action| self.act(&action))
    }

    #[allow(clippy::zombie_processes, reason = "that is what `grandchild` is about")]
    fn act(&self, action: &str) -> Result<(), PointError> {
        let mut output = &self.output;
        match action {
            "fail" => return Err(PointError::Failed("told to fail".to_owned())),
            "refuse" => return Err(PointError::NotMeasured("told to refuse".to_owned())),
            "die" => die(),
            "exit" => {
                eprintln!("the device fell off");
                std::process::exit(7);
            }
            "ask" => {
                output.write_all(b"Password: ").unwrap();
                std::thread::sleep(Duration::from_secs(1000));
            }
            "silent" => {
                eprintln!("measuring for ever");
                // As a measurement that never ends, which does not read its input.
                loop {
                    std::thread::park();
                }
            }
            "garbage" => output.write_all(b"bash: rdmascope: command not found\nmore\n").unwrap(),
            "prompt" => output.write_all(b"$ ").unwrap(),
            "version" => output.write_all(b"rdmascope 9.9.9 protocol 999\n{}\n").unwrap(),
            "stray" => output.write_all(b"Segmentation fault\n").unwrap(),
            "half" => {
                let mut bytes = Vec::new();
                Reply::Connected.to_frame().write(&mut bytes).unwrap();
                output.write_all(&bytes[..bytes.len() - 3]).unwrap();
                std::process::exit(3);
            }
            "babble" if self.point.is_none() => while output.write_all(&[b'x'; 4096]).is_ok() {},
            "babble" => while Reply::Connected.to_frame().write(&mut output).is_ok() {},
            "grandchild" => {
                Command::new("sleep").arg("1000").spawn().unwrap();
                die();
            }
            "drift" => {}
            other => panic!("unknown action {other}"),
        }
        if matches!(action, "garbage" | "prompt" | "version") {
            std::process::exit(0);
        }
        Ok(())
    }
}

impl Worker for Fake {
    fn describe(&mut self, rank: u32) -> Result<Description, PointError> {
        self.rank = rank;
        self.at("describe")?;
        let hostname = if matches!(self.mode.as_str(), "deaf" | "elsewhere") { "elsewhere" } else { "here" };
        let mtu_bytes_max = if self.mode == "small" { 1024 } else { 4096 };
        Ok(Description {
            device: Some(Device {
                rank,
                name: "fake0".to_owned(),
                provider: "fake".to_owned(),
                attributes: Default::default(),
            }),
            limits: Limits {
                inline_bytes_max: Some(256),
                message_bytes_max: Some(1 << 30),
                mtu_bytes_max: Some(mtu_bytes_max),
                ..Limits::default()
            },
            environment: Environment {
                rank,
                hostname: hostname.to_owned(),
                pinned_cpus: (self.mode != "loose").then(|| vec![rank]),
                ..Default::default()
            },
            overhead: Overhead { rank, ..Default::default() },
        })
    }

    fn arrange(&mut self, wanted: &Wanted, ranks: &[u32]) -> Vec<Condition> {
        self.at("arrange").unwrap();
        self.arranged += 1;
        let rank = self.rank;
        let reason = Some(format!("request {} for CPUs {ranks:?}", self.arranged));
        let conditions = wanted.techniques().into_iter().map(|(technique, asked)| Condition {
            rank,
            technique,
            asked,
            outcome: measure::conditions::Outcome::NotApplied,
            before: None,
            reason: reason.clone(),
        });
        conditions.collect()
    }

    fn prepare(&mut self, spec: &PointSpec) -> Result<Prepared, PointError> {
        self.point = Some(spec.id);
        eprintln!("set up");
        self.at("prepare")?;
        Ok(told(self.rank, spec))
    }

    fn connect(&mut self, ranks: &[Neighbour]) -> Result<(), PointError> {
        self.at("connect")?;
        self.others = others(self.rank, ranks);
        Ok(())
    }

    fn run(&mut self) -> Result<Outcome, PointError> {
        self.at("run")?;
        Ok(outcome(self.rank, self.others))
    }

    fn calibrate(&mut self, step: &CalibrationStep) -> Result<Calibrated, PointError> {
        self.at("calibrate")?;
        Ok(match step {
            CalibrationStep::Offer => Calibrated::Offered { handle: json!("memory") },
            CalibrationStep::Open { handle } => {
                assert_eq!(handle, "memory");
                Calibrated::Opened
            }
            CalibrationStep::Run => {
                self.calibrations += 1;
                let drifted = self.mode.starts_with("drift") && self.calibrations == 2;
                Calibrated::Measured { one_way_ns: if drifted { 75.0 } else { 50.0 } }
            }
        })
    }

    fn reset(&mut self) {
        self.at("reset").unwrap();
        self.point = None;
    }
}

/// What a rank tells the others of a point.
pub(crate) fn told(rank: u32, spec: &PointSpec) -> Prepared {
    let ways = (0..spec.ranks()).map(|to| json!({ "from": rank, "to": to })).collect();
    Prepared { address: json!({ "rank": rank }), ways }
}

/// The sum of the other ranks. Each must have sent what is meant for this rank.
pub(crate) fn others(rank: u32, ranks: &[Neighbour]) -> u64 {
    let others = (0u32..).zip(ranks).filter(|(from, _)| *from != rank).map(|(from, other)| {
        assert_eq!(other.way, json!({ "from": from, "to": rank }));
        other.address["rank"].as_u64().unwrap()
    });
    others.sum()
}

/// The outcome of a rank, with numbers that distinguish the ranks.
pub(crate) fn outcome(rank: u32, others: u64) -> Outcome {
    let ns = 1000 * (1 + u64::from(rank));
    Outcome {
        latency: Some(Latency {
            kind: LatencyKind::RttHalf,
            count: 10,
            min_ns: ns,
            p10_ns: ns,
            p50_ns: ns,
            p90_ns: ns,
            p99_ns: ns,
            p999_ns: ns,
            max_ns: ns,
            mean_ns: ns as f64,
            stddev_ns: Some(0.0),
            p50_ci95_ns: None,
            share_above: Default::default(),
            share_above_bounds: Default::default(),
            mavericks: Mavericks { rule: "> 2 x mean".to_owned(), count: 0 },
            resolution: None,
        }),
        kinds: Vec::new(),
        throughput: Some(Throughput {
            bytes_per_s: ns as f64,
            messages_per_s: 1.0,
            direction: Direction::Uni,
        }),
        cpu: None,
        host: Default::default(),
        histogram: None,
        // The coordinator adds these numbers up: for two ranks 0 + 1.
        counters: [("other_ranks".to_owned(), others)].into(),
        library: None,
        transport: None,
        oversubscribed: None,
        reported: None,
        skew: None,
        told: None,
        column_words: 0,
        columns: Vec::new(),
        unstable: None,
        samples: (0..10).collect(),
    }
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}
