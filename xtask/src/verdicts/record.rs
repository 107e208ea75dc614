//! Records how the numbers of this machine vary when nothing changes, for the simulations.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell;

/// Where the simulation reads the series.
const FILE: &str = "crates/verdict/src/bin/verdicts/noise/recorded.txt";
/// The commands of a cycle. Each of their points is a series.
const COMMANDS: [&str; 7] = [
    "lat send -s 64,4KiB,64KiB -n 4000",
    "lat send -e -s 64,64KiB -n 2000",
    "lat write -s 64,64KiB -n 4000",
    "lat tcp -s 64,64KiB -n 2000",
    "bw write -s 4KiB,64KiB,1MiB -D 100ms",
    "bw send -s 4KiB,64KiB -D 100ms",
    "bw tcp -s 64KiB -D 100ms",
];
const HEAD: &str = "\
# Numbers that vary although nothing changes, in the order in which they were measured: `cargo xtask verdicts --record N`
# writes them. A line `series` names what was measured. Each other line is a number, larger is better (1 / median latency in
# ns, or throughput in bytes per second), and the larger core-to-core latency before and after it, in ns.
";

/// A point of one of the commands, in all cycles.
struct Series {
    name: String,
    numbers: Vec<[f64; 2]>,
}

/// Measures all commands so often, in turn, and replaces the file.
pub(super) fn record(cycles: u32) -> Result<()> {
    ensure!(cycles >= 70, "a comparison of sessions needs 70 cycles: record at least 70");
    shell::run_quietly(&["cargo", "build", "--release", "--quiet", "-p", "rdmascope"])?;
    let program = shell::root().join("target/release/rdmascope");
    let mut series: Vec<Series> = Vec::new();
    for cycle in 1..=cycles {
        let points: Vec<(String, [f64; 2])> =
            COMMANDS.iter().map(|words| points(&program, words)).collect::<Result<Vec<_>>>()?.concat();
        if cycle == 1 {
            series =
                points.iter().map(|(name, _)| Series { name: name.clone(), numbers: Vec::new() }).collect();
        }
        ensure!(points.len() == series.len(), "cycle {cycle} measured {} points", points.len());
        series.iter_mut().zip(points).for_each(|(series, (_, number))| series.numbers.push(number));
        eprintln!("xtask: cycle {cycle} of {cycles}");
    }
    let mut text = HEAD.to_owned();
    for Series { name, numbers } in series {
        writeln!(text, "series {name}")?;
        numbers.iter().try_for_each(|[number, placement]| writeln!(text, "{number:.6e} {placement:.1}"))?;
    }
    let file = shell::root().join(FILE);
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Runs one command; returns each of its points with its name.
fn points(program: &Path, words: &str) -> Result<Vec<(String, [f64; 2])>> {
    let program = program.to_string_lossy();
    let command = format!("{program} {words} --local --json");
    // Without what it prints beside the points.
    let output = shell::command(&command.split(' ').collect::<Vec<&str>>()).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{command}` failed ({}):\n{told}", output.status);
    let lines = String::from_utf8(output.stdout)?;
    let option = words.find(" -s").unwrap_or(words.len());
    let point = |line: &str| {
        let point: Value =
            serde_json::from_str(line).with_context(|| format!("`{words}` printed: {line}"))?;
        let size = &point["axes"]["size_bytes"];
        let number = match point["latency"]["p50_ns"].as_f64() {
            Some(median_ns) => Some(1.0 / median_ns),
            None => point["throughput"]["bytes_per_s"].as_f64(),
        };
        let number = number.with_context(|| format!("`{words}` did not measure {size} B: {line}"))?;
        let placement = ["before_ns", "after_ns"].map(|when| point["calibration"][when].as_f64());
        let placement = placement.into_iter().flatten().fold(0.0, f64::max);
        Ok((format!("{} {size} B", &words[..option]), [number, placement]))
    };
    lines.lines().map(point).collect()
}
