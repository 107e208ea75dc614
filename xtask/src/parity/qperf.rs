//! A test of qperf, through RDMA CM.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

use anyhow::{Context, Result};

use super::plan::{Point, Quantity};
use crate::process;

/// The default port of qperf.
const PORT: u16 = 19765;

/// Runs the test once and returns the mean latency in ns, or messages per second.
pub(super) fn measure(point: &Point, device: &str) -> Result<f64> {
    let size = point.size_bytes.to_string();
    let address = address(device)?.to_string();
    let polls = if point.has_events { "0" } else { "1" };
    // One second, five digits.
    let client = ["qperf", "-t", "1", "-m", &size, "-cm", "1", "-cp", polls, "-e", "5", &address, point.test];
    let printed = process::pair(point.part.cpus(), &["qperf"], PORT, &client, false)?;
    read(&printed, point.quantity, point.size_bytes)
}

/// The IPv4 address of a device for RDMA CM: the address in one of its GIDs.
fn address(device: &str) -> Result<Ipv4Addr> {
    let directory = format!("/sys/class/infiniband/{device}/ports/1/gids");
    let entries = fs::read_dir(&directory).with_context(|| format!("cannot read {directory}"))?;
    let gids = entries.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let mut mapped = gids.filter_map(|gid| gid.trim().parse::<Ipv6Addr>().ok()?.to_ipv4_mapped());
    mapped.next().with_context(|| format!("{device} has no GID with an IPv4 address"))
}

/// Finds the number in the output, such as `latency  =  12.3 us` or `bw  =  40,1 MB/sec`.
pub(super) fn read(printed: &str, quantity: Quantity, size: u64) -> Result<f64> {
    let name = if quantity == Quantity::Rate { "bw" } else { "latency" };
    let line = printed.lines().find(|line| line.split_whitespace().next() == Some(name));
    let line = line.with_context(|| format!("qperf printed no {name}"))?;
    let mut words = line.split('=').nth(1).unwrap_or_default().split_whitespace();
    let number: f64 = words
        .next()
        .and_then(|word| word.replace(',', "").parse().ok())
        .context("qperf printed no number")?;
    // qperf's units are powers of ten.
    let scale = match words.next().unwrap_or_default() {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "bytes/sec" => 1.0,
        "KB/sec" => 1e3,
        "MB/sec" => 1e6,
        "GB/sec" => 1e9,
        "sec" => 1e9,
        other => anyhow::bail!("qperf printed an unknown unit `{other}`"),
    };
    Ok(if quantity == Quantity::Rate { number * scale / size as f64 } else { number * scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        let printed = "rc_lat:\n    latency  =  31.5 us\n";
        assert_eq!(read(printed, Quantity::MeanLatency, 2).unwrap(), 31500.0);
        let printed = "rc_bw:\n    bw  =  40.5 MB/sec\n";
        assert_eq!(read(printed, Quantity::Rate, 1000).unwrap(), 40500.0);
        assert!(read("rc_lat:\nfailed to connect", Quantity::MeanLatency, 2).is_err());
    }
}
