//! Absolute claims: the cost of a time stamp, of a `write` under `exec`, of a large report, and of
//! the start.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::process;
use crate::shell;
use crate::stats::median;

/// Names for `--only`.
pub(super) const NAMES: [&str; 4] = ["stamp", "report", "interposed", "start"];

/// How often each cost is measured; the median counts.
const RUNS: usize = 5;
/// The most that a time stamp may cost, and the most that all stamps of a message may cost its
/// sender, in ns.
const STAMP_NS_MAX: f64 = 25.0;
/// The most that `exec` may add to a `write`, in ns, and the program that calls it.
const INTERPOSED_NS_MAX: f64 = 2.0;
const CALLS: &str = "xtask/src/bench/interposed.c";
/// The samples of the large report, in so many files, and its limits of time and size.
const REPORT_SAMPLES: u64 = 20_000_000;
const REPORT_FILES: u64 = 16;
const REPORT_S_MAX: f64 = 0.5;
const REPORT_BYTES_MAX: u64 = 1_000_000;

/// The longest that `rdmascope --version` may take, in s.
const START_S_MAX: f64 = 0.010;

/// Measures the claims whose name contains `only`.
pub(super) fn run(scratch: &Path, only: &str, broken: &mut Vec<String>) -> Result<()> {
    let [stamps, large, interposed, starts] = NAMES.map(|name| name.contains(only));
    if stamps {
        stamp(scratch, broken)?;
    }
    if large {
        report(scratch, broken)?;
    }
    if interposed {
        interpose(scratch, broken)?;
    }
    if starts {
        start(broken)?;
    }
    Ok(())
}

/// Measures how long the program takes to start, and to end.
fn start(broken: &mut Vec<String>) -> Result<()> {
    let program = process::built("rdmascope");
    let seconds = seconds(&[&program, "--version"])?;
    println!("rdmascope --version takes {:.1} ms (at most {:.0})", 1e3 * seconds, 1e3 * START_S_MAX);
    if seconds > START_S_MAX {
        broken.push("rdmascope starts too slowly".to_owned());
    }
    Ok(())
}

/// How long a command takes, in s.
fn seconds(words: &[&str]) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        process::alone(words)?;
        times.push(start.elapsed().as_secs_f64());
    }
    median(&mut times).context("nothing was measured")
}

/// Measures what the library of `exec` adds to a `write` that has nothing to do with RDMA CM.
fn interpose(scratch: &Path, broken: &mut Vec<String>) -> Result<()> {
    let source = shell::root().join(CALLS).to_string_lossy().into_owned();
    let [program, nothing] =
        ["interposed", "nothing.so"].map(|name| scratch.join(name).to_string_lossy().into_owned());
    process::alone(&["cc", "-O2", "-o", &program, &source])?;
    process::alone(&["cc", "-O2", "-DNOTHING", "-shared", "-fPIC", "-o", &nothing, &source])?;
    let preload = format!("LD_PRELOAD={nothing}");
    let cost = |words: &[&str]| -> Result<f64> {
        Ok(process::alone(&[words, &["taskset", "-c", "0", &program]].concat())?.trim().parse()?)
    };
    let rdmascope = process::built("rdmascope");
    let mut more = Vec::new();
    for _ in 0..RUNS {
        let without = cost(&["env", &preload])?;
        more.push(cost(&["env", &preload, &rdmascope, "exec", "--"])? - without);
    }
    let more = median(&mut more).context("nothing was measured")?;
    println!("exec adds {more:.2} ns to a write (at most {INTERPOSED_NS_MAX})");
    if more > INTERPOSED_NS_MAX {
        broken.push(format!("exec adds {more:.2} ns to a write"));
    }
    Ok(())
}

/// Reads from the ranks' records what a time stamp costs.
fn stamp(scratch: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mut stamps = Vec::new();
    let mut messages = Vec::new();
    for run in 0..RUNS {
        let out = scratch.join(format!("stamp-{run}"));
        process::rdmascope(&["lat", "send", "--local", "-s", "8", "-n", "1000"], &out)?;
        let run: Value = serde_json::from_str(&fs::read_to_string(out.join("run.json"))?)?;
        for overhead in run["overheads"].as_array().into_iter().flatten() {
            stamps.extend(overhead["stamp_ns"].as_f64());
            messages.extend(overhead["one_way_ns"].as_f64());
        }
    }
    for (what, mut costs) in [("a time stamp", stamps), ("stamping a message twice at its sender", messages)]
    {
        let cost = median(&mut costs).with_context(|| format!("no record has the cost of {what}"))?;
        println!("{what} costs {cost:.1} ns (at most {STAMP_NS_MAX})");
        if cost > STAMP_NS_MAX {
            broken.push(format!("{what} costs {cost:.1} ns"));
        }
    }
    Ok(())
}

/// Measures the time and the size of the report of a run with twenty million samples.
fn report(scratch: &Path, broken: &mut Vec<String>) -> Result<()> {
    let out = scratch.join("report");
    let iterations = format!("iterations={}", REPORT_SAMPLES / REPORT_FILES);
    let sizes = ["--set", "size_bytes=8,64,256,1024", "--set", "service=RC", "--set", "repetitions=1"];
    let words = ["run", "quick", "--set", &iterations, "--set", "bytes_max=1TiB"];
    process::rdmascope(&[&words[..], &sizes].concat(), &out)?;
    let samples: u64 = fs::read_dir(out.join("samples"))?
        .flatten()
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len() / 8)
        .sum();
    let file = scratch.join("report.html").to_string_lossy().into_owned();
    let seconds = seconds(&[&process::built("rdmascope"), "report", &out.to_string_lossy(), "-o", &file])?;
    let bytes = fs::metadata(&file)?.len();
    println!("the report of {samples} samples takes {seconds:.2} s (at most {REPORT_S_MAX})");
    println!("the report has {bytes} B (at most {REPORT_BYTES_MAX})");
    if samples < REPORT_SAMPLES {
        broken.push(format!("the report had only {samples} samples"));
    }
    if seconds > REPORT_S_MAX || bytes > REPORT_BYTES_MAX {
        broken.push("the report is too slow or too large".to_owned());
    }
    Ok(())
}
