//! rdmascope's benchmark, by its command line; the numbers come from its record.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::mpi;
use super::plan::{Part, Point, Quantity};

/// Measures a point once: the median or mean latency in ns, CPU time in ns, or messages per second.
pub(super) fn measure(program: &Path, device: &str, point: &Point, out: &Path) -> Result<f64> {
    let mut command = Command::new(program);
    command.args(point.ours).args(["--cpus", &point.part.cpus().join(",")]);
    let messages = point.messages.to_string();
    if point.part == Part::Mpi {
        let launcher = format!("{} -np {{ranks}}", mpi::launcher(point.service));
        command.args(["-n", &messages, "--mpi", &launcher]).envs(mpi::VARIABLES);
    } else {
        command.arg("--local");
    }
    if point.part == Part::Mpi {
        // The MPI library chooses the transport of its messages.
    } else if point.part.is_of_sockets() {
        // As long as the other tool's run; every sample is kept, as by default, not a histogram.
        let length = if point.is_counted_latency() { ["-n", &messages] } else { ["-D", "1"] };
        command.args(length);
    } else {
        command.args(["-d", device, "-c", point.service, "-n", &messages]);
        if point.has_events {
            command.arg("-e");
        }
    }
    if point.part == Part::Native {
        // As perftest, which can use no other memory.
        command.args(["--memory", "process"]);
    }
    command.args(["-s", &point.size_bytes.to_string(), "--out"]).arg(out);
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(out.exists(), "rdmascope measured nothing: {}", said.lines().last().unwrap_or_default());
    let measured = read(out, point.quantity);
    fs::remove_dir_all(out)?;
    measured
}

/// Reads the number from a record of one point.
fn read(record: &Path, quantity: Quantity) -> Result<f64> {
    let points = fs::read_to_string(record.join("points.jsonl"))?;
    let point: Value = serde_json::from_str(points.lines().next().context("the record has no point")?)?;
    if quantity == Quantity::Cost {
        return cost(&point);
    }
    let path = match quantity {
        Quantity::Latency => "/latency/p50_ns",
        Quantity::MeanLatency => "/latency/mean_ns",
        Quantity::MeanOfRanks => "/own/collective/t_avg_ns",
        Quantity::Cost | Quantity::Rate => "/throughput/messages_per_s",
    };
    // In the pattern `pairs`, each sender has its own latency.
    let of_end = || point.pointer(&format!("/ends/0{path}"));
    let value = point.pointer(path).or_else(of_end).and_then(Value::as_f64);
    value.with_context(|| format!("the point has no {path}: {}", point["status"]))
}

/// The CPU time of both ranks for 2^20 bytes of payload, in ns.
fn cost(point: &Value) -> Result<f64> {
    let size = point["axes"]["size_bytes"].as_f64().context("the point has no size_bytes")?;
    let ends = point["ends"].as_array().context("the point has no ends")?;
    let of = |end: &Value| {
        let cpu = &end["cpu"];
        let spent_ns = cpu["user_ns"].as_f64()? + cpu["system_ns"].as_f64()?;
        Some(spent_ns / (cpu["messages"].as_f64()? * size) * 1_048_576.0)
    };
    ends.iter().map(of).sum::<Option<f64>>().context("the point's ends have no CPU time")
}
