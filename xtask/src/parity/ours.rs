//! Our own benchmark of the same, through its command line; numbers come from its record.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::plan::Group;
use super::table::{Quantity, Row};

/// Measures all sizes of a group: one command for those with the same number of messages.
pub(super) fn measure(
    program: &Path,
    device: &str,
    group: &Group,
    out: &Path,
    rows: &mut [Row],
) -> Result<()> {
    let mut counts: Vec<u64> = group.sizes.iter().map(|(_, messages)| *messages).collect();
    counts.dedup();
    for messages in counts {
        let of = group.sizes.iter().filter(|(_, count)| *count == messages);
        let sizes: Vec<String> = of.map(|(size, _)| size.to_string()).collect();
        let place = out.with_extension(messages.to_string());
        let mut command = Command::new(program);
        command.args(group.ours).args(["--local", "-d", device, "-c", group.service]);
        command.args(["-s", &sizes.join(","), "-n", &messages.to_string(), "--out"]).arg(&place);
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&ended.stderr);
        // Points that failed are seen by their missing numbers.
        ensure!(place.exists(), "rdmascope measured nothing: {}", said.lines().last().unwrap_or_default());
        read(&place, group, rows)?;
        fs::remove_dir_all(&place)?;
    }
    Ok(())
}

/// Takes the numbers out of a record.
fn read(record: &Path, group: &Group, rows: &mut [Row]) -> Result<()> {
    for line in fs::read_to_string(record.join("points.jsonl"))?.lines() {
        let point: Value = serde_json::from_str(line)?;
        let size =
            point.pointer("/axes/size_bytes").and_then(Value::as_u64).context("a point has no size")?;
        let path = match group.quantity {
            Quantity::Latency => "/latency/p50_ns",
            Quantity::MeanLatency => "/latency/mean_ns",
            Quantity::Rate => "/throughput/messages_per_s",
        };
        let Some(row) = group.row(rows, size) else { continue };
        match point.pointer(path).and_then(Value::as_f64) {
            Some(value) => row.ours.push(value),
            None => row.failures.push(format!("rdmascope: {}", point["status"])),
        }
    }
    Ok(())
}
