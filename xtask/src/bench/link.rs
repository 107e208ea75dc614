//! Whether softdev's link model has the rate and the added latency that were set.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::process;
use crate::stats::median;

/// Names for `--only`.
pub(super) const NAMES: [&str; 2] = ["link-rate", "link-latency"];

/// The number of rounds, of which the median counts.
const ROUNDS: usize = 5;
/// Names of link rates with their data rates in bit/s (Gamess and Ortiz-Zuazaga 2016, table 1,
/// rounded down).
const RATES: [(&str, f64); 4] =
    [("4X SDR", 8e9), ("4X DDR", 16e9), ("4X QDR", 32e9), ("4X FDR", 54_545_454_545.0)];
/// The payload and the headers of a packet; both are set, so that no default applies.
const MTU_BYTES: f64 = 4096.0;
const HEADER_BYTES: f64 = 26.0;
/// The largest relative error of a rate.
const RATE_ERROR_MAX: f64 = 0.01;
/// Latencies that are added, in ns, and their largest error.
const LATENCIES_NS: [f64; 3] = [500.0, 1000.0, 5000.0];
const LATENCY_ERROR_NS_MAX: f64 = 100.0;

/// Measures the link models whose name contains `only`.
pub(super) fn run(scratch: &Path, only: &str, broken: &mut Vec<String>) -> Result<()> {
    let [rates, latencies] = NAMES.map(|name| name.contains(only));
    if rates {
        println!(
            "rate of a link model: Send 64 KiB in one direction; `set` is the payload's share of the rate"
        );
        RATES.into_iter().try_for_each(|(name, bits_per_s)| rate(scratch, name, bits_per_s, broken))?;
    }
    if latencies {
        println!("latency of a link model: Send 8 B, the latency that it adds");
        LATENCIES_NS.into_iter().try_for_each(|told_ns| latency(scratch, told_ns, broken))?;
    }
    Ok(())
}

fn rate(scratch: &Path, name: &str, bits_per_s: f64, broken: &mut Vec<String>) -> Result<()> {
    let told = bits_per_s / 8.0 * MTU_BYTES / (MTU_BYTES + HEADER_BYTES);
    let link = format!("{name},mtu={MTU_BYTES},header={HEADER_BYTES}");
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let words = ["bw", "send", "-s", "65536", "-D", "1", "--link", &link];
        found.push(figure(scratch, &words, "/throughput/bytes_per_s")?);
    }
    let found = median(&mut found).context("no round")?;
    let error = found / told - 1.0;
    println!(
        "  {name:<8} set {:8.1} MB/s, measured {:8.1}, {:+.2} %",
        told / 1e6,
        found / 1e6,
        error * 100.0
    );
    if error.abs() > RATE_ERROR_MAX {
        broken.push(format!("the rate of a link model of {name} is {:.1} % off", error * 100.0));
    }
    Ok(())
}

fn latency(scratch: &Path, told_ns: f64, broken: &mut Vec<String>) -> Result<()> {
    let link = format!("latency={told_ns}ns");
    let mut added = Vec::new();
    for _ in 0..ROUNDS {
        let plain = ["lat", "send", "-s", "8", "-n", "20000"];
        let linked = [&plain[..], &["--link", &link]].concat();
        let without = figure(scratch, &plain, "/latency/p50_ns")?;
        added.push(figure(scratch, &linked, "/latency/p50_ns")? - without);
    }
    let added = median(&mut added).context("no round")?;
    println!("  set {told_ns:6.0} ns, added {added:6.0} ns, {:+.0} ns", added - told_ns);
    if (added - told_ns).abs() > LATENCY_ERROR_NS_MAX {
        broken.push(format!("a link model with a latency of {told_ns} ns adds {added:.0} ns"));
    }
    Ok(())
}

/// One number of the one point of a benchmark, by its path in the record.
fn figure(scratch: &Path, words: &[&str], path: &str) -> Result<f64> {
    let point = process::point(words, &scratch.join("link"))?;
    let figure = point.pointer(path).and_then(Value::as_f64);
    figure.with_context(|| format!("{} has no {path}: {point}", words.join(" ")))
}
