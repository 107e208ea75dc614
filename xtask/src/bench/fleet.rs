//! What a large fleet costs: agents on one machine, and the schedule and model of many hosts.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::process;
use crate::process::Running;
use crate::shell;

/// Names for `--only`.
pub(super) const NAMES: [&str; 2] = ["fleet-agents", "fleet-model"];

/// The numbers of agents of the fleets. The limits are meant for the last one.
const AGENTS: [usize; 4] = [100, 200, 400, 1000];
/// The longest time in which they start, join and measure a round, in s, and the most memory that
/// they may have, in GiB.
const ROUND_S_MAX: f64 = 120.0;
const MEMORY_GIB_MAX: f64 = 12.0;
/// A pass of `ring` measures each host with the next. A limit that is met is a verdict by itself.
const RING: &str = "fleet tcp --schedule ring --passes 1 -n 50 -D 10ms --at-most 10s --start-timeout 2min";
/// A fleet that takes longer has hung.
const DEADLINE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(10);

/// The hosts of the model, and the longest that their schedule and model may take, in s.
const HOSTS: usize = 10_000;
const MODEL_S_MAX: f64 = 5.0;

/// Measures the rows whose name contains `only`.
pub(super) fn run(scratch: &Path, only: &str, broken: &mut Vec<String>) -> Result<()> {
    let [agents, model] = NAMES.map(|name| name.contains(only));
    if agents {
        for count in AGENTS {
            let cost = ring(scratch, count)?;
            let Cost { started_s, all_s, memory_gib } = cost;
            println!(
                "{count} agents start in {started_s:.1} s, a pass of {count} pairs ends after {all_s:.1} s (at most \
                 {ROUND_S_MAX:.0}), and they have {memory_gib:.2} GiB (at most {MEMORY_GIB_MAX:.0})"
            );
            if all_s > ROUND_S_MAX || memory_gib > MEMORY_GIB_MAX {
                broken.push(format!("a fleet of {count} agents is too slow or too large"));
            }
        }
    }
    if model {
        shell::run(&["cargo", "build", "--release", "--quiet", "-p", "verdict", "--bin", "verdicts"])?;
        let start = Instant::now();
        let said = process::alone(&[&process::built("verdicts"), "--hosts", &HOSTS.to_string()])?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{}: {seconds:.2} s (at most {MODEL_S_MAX:.0})", said.trim_end());
        if seconds > MODEL_S_MAX {
            broken.push(format!("the schedule and model of {HOSTS} hosts are too slow"));
        }
    }
    Ok(())
}

/// What a fleet costs. Times are from the start of the program.
struct Cost {
    /// When the first pair has been measured.
    started_s: f64,
    /// When the program has ended.
    all_s: f64,
    /// The memory of all agents when the first pair has been measured: each page that several
    /// processes share is divided among them (`Pss` of proc_pid_smaps_rollup(5)).
    memory_gib: f64,
}

/// Measures a fleet of so many agents, with the priority of any program.
fn ring(scratch: &Path, count: usize) -> Result<Cost> {
    let out = scratch.join(format!("agents-{count}"));
    let program = process::built("rdmascope");
    let mut command = Command::new(&program);
    command.args(RING.split(' ')).args(["--local", &count.to_string()]).arg("--out").arg(&out);
    let start = Instant::now();
    let mut fleet = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    let points = out.join("points.jsonl");
    let is_measured = || fs::metadata(&points).is_ok_and(|file| file.len() > 0);
    while !is_measured() {
        ensure!(start.elapsed() < DEADLINE, "{count} agents have measured nothing");
        let ended = fleet.ended_before(Instant::now() + PAUSE)?;
        ensure!(ended.is_none(), "the fleet of {count} agents ended early");
    }
    let started_s = start.elapsed().as_secs_f64();
    let memory_gib = memory_of(&program)?;
    let ended = fleet.ended_before(start + DEADLINE)?;
    let status = ended.with_context(|| format!("the fleet of {count} agents has not ended"))?;
    ensure!(status.success(), "the fleet of {count} agents failed ({status})");
    Ok(Cost { started_s, all_s: start.elapsed().as_secs_f64(), memory_gib })
}

/// The memory of all agents of a program, in GiB.
fn memory_of(program: &str) -> Result<f64> {
    let mut kib = 0.0;
    for process in fs::read_dir("/proc")?.flatten() {
        let command = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let mut words = command.split('\0');
        if words.next() == Some(program) && words.any(|word| word == "agent") {
            // A process may end meanwhile.
            let text = fs::read_to_string(process.path().join("smaps_rollup")).unwrap_or_default();
            let pss = text.lines().find_map(|line| line.strip_prefix("Pss:"));
            kib += pss.and_then(|pss| pss.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0);
        }
    }
    ensure!(kib > 0.0, "no agent of {program} has memory");
    Ok(kib / f64::from(1 << 20))
}
