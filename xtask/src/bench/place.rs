//! The current placement of the two CPUs, by the core-to-core latency between them.

use anyhow::{Context, Result};
use serde_json::Value as Json;

use super::process;

/// The program that measures raw limits.
pub(super) const BASELINE: &str = "baseline";
/// Two core-to-core latencies belong to one placement if they differ by at most this share.
const SAME: f64 = 0.2;

/// The core-to-core latency: half the round trip of a cache line between the CPUs, in ns.
pub(super) fn line_ns(cpus: &[String; 2]) -> Result<f64> {
    read_line(&process::alone(&[&process::built(BASELINE), "line", &cpus[0], &cpus[1]])?)
}

fn read_line(printed: &str) -> Result<f64> {
    let object: Json = serde_json::from_str(printed)?;
    object["line_ns"].as_f64().filter(|ns| *ns > 0.0).context("the calibration printed no line_ns")
}

/// Whether two core-to-core latencies belong to one placement.
pub(super) fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME * one.min(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read() {
        assert_eq!(
            read_line("{\"line_ns\":61.38,\"nearest_ns\":55.34,\"plain_ns\":61.49}\n").unwrap(),
            61.38
        );
        assert!(read_line("{\"line_ns\":0}").is_err() && read_line("").is_err());
    }

    #[test]
    fn placements_are_told_apart() {
        assert!(is_same(50.0, 59.9) && is_same(59.9, 50.0) && !is_same(50.0, 60.1) && !is_same(24.0, 50.0));
    }
}
