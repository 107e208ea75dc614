//! Tests of sockperf, iperf3 and qperf over the loopback of this host.

use anyhow::{Context, Result};
use serde_json::Value;

use super::plan::{Point, Quantity, Tool};
use super::qperf;
use crate::process;

/// The default ports of the tools.
const SOCKPERF_PORT: u16 = 11111;
/// Time limit of a client, many times as long as a run.
const SOCKPERF_WITHIN_S: &str = "20";
/// Runs after which sockperf is given up.
const SOCKPERF_RUNS: u32 = 8;
const IPERF3_PORT: u16 = 5201;
const QPERF_PORT: u16 = 19765;
const HOST: &str = "127.0.0.1";

/// Runs a test once and returns a latency in ns, messages per second, or the CPU time of server and
/// client for 2^20 bytes, in ns.
pub(super) fn measure(point: &Point) -> Result<f64> {
    let cpus = point.part.cpus();
    let size = point.size_bytes.to_string();
    match point.tool {
        Tool::Sockperf => {
            let address = ["-i", HOST];
            let tcp: &[&str] = if point.test == "sockperf tcp" { &["--tcp"] } else { &[] };
            let server = [&["sockperf", "server"], &address[..], tcp].concat();
            let client = ["timeout", SOCKPERF_WITHIN_S, "sockperf", "ping-pong", "-t", "1", "-m", &size];
            let client = [&client, &address[..], tcp].concat();
            let run = || sockperf(&process::pair(cpus, &server, SOCKPERF_PORT, &client, false)?);
            again(run)
        }
        Tool::Iperf3 => {
            // As fast as possible: the default rate of UDP is 1 Mbit/s.
            let udp: &[&str] = if point.test.starts_with("iperf3 udp") { &["-u", "-b", "0"] } else { &[] };
            let client = [&["iperf3", "-J", "-t", "1", "-l", &size, "-c", HOST], udp].concat();
            let printed = process::pair(cpus, &["iperf3", "-s", "-1"], IPERF3_PORT, &client, true)?;
            iperf3(&printed, point)
        }
        Tool::Imb | Tool::Linked | Tool::Osu => unreachable!("these tools measure MPI only"),
        Tool::Perftest | Tool::Qperf => {
            let client = ["qperf", "-t", "1", "-m", &size, "-e", "5", HOST, point.test];
            let printed = process::pair(cpus, &["qperf"], QPERF_PORT, &client, false)?;
            qperf::read(&printed, point.quantity, point.size_bytes)
        }
    }
}

/// Runs sockperf until a run has a result. On one CPU, one TCP run of four has none: after its
/// warm-up, the client waits for an answer to nothing, and ends with "No messages were sent" or not
/// at all.
fn again(run: impl Fn() -> Result<f64>) -> Result<f64> {
    let mut result = run();
    for _ in 1..SOCKPERF_RUNS {
        if result.is_ok() {
            break;
        }
        result = run();
    }
    result
}

/// Finds the median of half a round trip: `---> percentile 50.000 =   27.205`, in microseconds.
fn sockperf(printed: &str) -> Result<f64> {
    let line = printed.lines().find(|line| line.contains("percentile 50.000"));
    let number = line.and_then(|line| line.rsplit('=').next()?.trim().parse::<f64>().ok());
    Ok(number.context("sockperf printed no median")? * 1e3)
}

/// Reads the received messages per second, or their CPU time, from iperf3's JSON.
fn iperf3(printed: &str, point: &Point) -> Result<f64> {
    let json: Value = serde_json::from_str(printed).context("iperf3 printed no JSON")?;
    let number = |path: &str| {
        json.pointer(path).and_then(Value::as_f64).with_context(|| format!("iperf3 printed no {path}"))
    };
    let bytes_per_s = number("/end/sum_received/bits_per_second")? / 8.0;
    Ok(match point.quantity {
        Quantity::Cost => {
            let percent = number("/end/cpu_utilization_percent/host_total")?
                + number("/end/cpu_utilization_percent/remote_total")?;
            percent / 100.0 * 1e9 / bytes_per_s * 1_048_576.0
        }
        _ => bytes_per_s / point.size_bytes as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Amount, Part, points};
    use super::*;

    #[test]
    fn what_they_print_is_read() {
        let printed = "sockperf: Summary: Latency is 27.740 usec\n\u{1b}[2;35msockperf: ====> avg-latency=27.740\u{1b}[0m\n\
                       sockperf: ---> percentile 75.000 =   28.000\nsockperf: ---> percentile 50.000 =   27.205\n";
        assert_eq!(sockperf(printed).unwrap(), 27_205.0);
        assert!(sockperf("sockperf: No messages were received from the server.").is_err());
        let printed = r#"{"end": {"sum_received": {"bits_per_second": 8e9},
                         "cpu_utilization_percent": {"host_total": 90.0, "remote_total": 10.0}}}"#;
        let all = points(Part::Sockets, Amount::Quick, "iperf3 tcp");
        let of = |quantity| all.iter().find(|point| point.quantity == quantity).unwrap();
        assert_eq!(iperf3(printed, of(Quantity::Rate)).unwrap(), 1e9 / of(Quantity::Rate).size_bytes as f64);
        assert_eq!(iperf3(printed, of(Quantity::Cost)).unwrap(), 1_048_576.0);
        assert!(iperf3("{}", of(Quantity::Rate)).is_err() && iperf3("", of(Quantity::Rate)).is_err());
    }
}
