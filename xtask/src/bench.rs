//! The project's performance claims. Each is a ratio of two things measured side by side in one run, or a bound that the
//! program's own record shows; absolute times of different runs mean nothing on a shared machine.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell;

/// Runs of the latency benchmark; the placement of virtual CPUs changes between them.
const RUNS: usize = 7;
/// Most that an RC Send of 8 B may cost, in raw cache-line transfers.
const LINE_RATIO_MAX: f64 = 3.0;
/// Most that a time stamp may cost, in ns.
const STAMP_NS_MAX: f64 = 25.0;
/// Samples in the large report, the most seconds that it may take and the most bytes that it may have.
const REPORT_SAMPLES: u64 = 10_000_000;
const REPORT_S_MAX: f64 = 2.0;
const REPORT_BYTES_MAX: u64 = 6_000_000;

/// Measures every claim, prints a table, and fails where one does not hold.
pub(crate) fn run() -> Result<()> {
    shell::run(&["cargo", "build", "--release", "--quiet"])?;
    let scratch = shell::root().join("target/bench");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    let mut broken = Vec::new();
    latency(&scratch, &mut broken)?;
    report(&scratch, &mut broken)?;
    if !broken.is_empty() {
        bail!("{}", broken.join("; "));
    }
    Ok(())
}

const PROGRAM: &str = "target/release/rdmascope";

/// RC Send of 8 B beside the raw cache line of the same CPUs, taken before and after it; runs in which the placement
/// changed are shown and do not count.
fn latency(scratch: &Path, broken: &mut Vec<String>) -> Result<()> {
    println!("RC Send 8 B, rtt_half, beside the raw cache line between the same CPUs");
    println!(
        "{:>4} {:>12} {:>12} {:>12} {:>7}  note",
        "run", "line before", "line after", "send p50", "ratio"
    );
    let (mut ratios, mut stamps) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let out = scratch.join(format!("latency-{run}"));
        let place = out.to_string_lossy().into_owned();
        shell::output(&[PROGRAM, "lat", "send", "--local", "-s", "8", "-n", "200000", "--out", &place])?;
        let point = first_point(&out)?;
        let number =
            |path: &str| point.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"));
        let (before, after) = (number("/calibration/before_ns")?, number("/calibration/after_ns")?);
        let median = number("/latency/p50_ns")?;
        let ratio = median / before.midpoint(after);
        let unstable = point.get("unstable").is_some();
        println!(
            "{run:>4} {before:>9.1} ns {after:>9.1} ns {median:>9.0} ns {ratio:>7.2}  {}",
            if unstable { "unstable: not counted" } else { "" }
        );
        if !unstable {
            ratios.push(ratio);
        }
        let run: Value = serde_json::from_str(&fs::read_to_string(out.join("run.json"))?)?;
        let costs = run["overheads"].as_array().into_iter().flatten();
        stamps.extend(costs.filter_map(|overhead| overhead["stamp_ns"].as_f64()));
    }
    match median(&mut ratios) {
        Some(ratio) => {
            println!(
                "     median ratio {ratio:.2} of {} stable runs (at most {LINE_RATIO_MAX})",
                ratios.len()
            );
            if ratio > LINE_RATIO_MAX {
                broken.push(format!("a Send costs {ratio:.2} cache-line transfers"));
            }
        }
        None => println!("     no run was stable: nothing can be said"),
    }
    if let Some(stamp) = median(&mut stamps) {
        println!("a time stamp costs {stamp:.1} ns (at most {STAMP_NS_MAX})");
        if stamp > STAMP_NS_MAX {
            broken.push(format!("a time stamp costs {stamp:.1} ns"));
        }
    }
    Ok(())
}

/// The report of a run with ten million samples.
fn report(scratch: &Path, broken: &mut Vec<String>) -> Result<()> {
    let out = scratch.join("report");
    let place = out.to_string_lossy().into_owned();
    let iterations = format!("iterations={}", REPORT_SAMPLES / 2 / 4);
    let sizes = ["--set", "size_bytes=8,64,256,1024", "--set", "service=RC", "--set", "repetitions=1"];
    let words = [PROGRAM, "run", "quick", "--set", &iterations, "--set", "bytes_max=1TiB", "--out", &place];
    shell::output(&words.into_iter().chain(sizes).collect::<Vec<_>>())?;
    let samples: u64 = fs::read_dir(out.join("samples"))?
        .flatten()
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len() / 8)
        .sum();
    let file = scratch.join("report.html").to_string_lossy().into_owned();
    let start = Instant::now();
    shell::output(&[PROGRAM, "report", &place, "-o", &file])?;
    let (seconds, bytes) = (start.elapsed().as_secs_f64(), fs::metadata(&file)?.len());
    println!("the report of {samples} samples takes {seconds:.2} s (at most {REPORT_S_MAX})");
    println!("and has {bytes} B (at most {REPORT_BYTES_MAX})");
    if samples < REPORT_SAMPLES {
        broken.push(format!("the report was of only {samples} samples"));
    }
    if seconds > REPORT_S_MAX || bytes > REPORT_BYTES_MAX {
        broken.push("the report is too slow or too large".to_owned());
    }
    std::io::stdout().flush()?;
    Ok(())
}

fn first_point(run: &Path) -> Result<Value> {
    let lines = fs::read_to_string(run.join("points.jsonl"))?;
    Ok(serde_json::from_str(lines.lines().next().context("the record is empty")?)?)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
