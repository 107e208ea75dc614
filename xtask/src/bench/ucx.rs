//! ucx_perftest over shared memory, and over softdev.

use anyhow::{Context, Result};

use super::process;
use super::value::{Unit, Value};

/// The default port of ucx_perftest.
const PORT: &str = "13337";

/// A test of ucx_perftest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) name: &'static str,
    /// Transports for tests of the upper layer (UCP), which reads them from the environment.
    pub(super) transports: Option<&'static str>,
    pub(super) size_bytes: u64,
    /// The number of messages: they take about 10 ms.
    pub(super) messages: u64,
    /// Whether the test runs under `rdmascope exec`.
    pub(super) on_softdev: bool,
}

/// Runs a test once. The server ends by itself.
pub(super) fn measure(test: &Test, unit: Unit, cpus: &[String; 2]) -> Result<Value> {
    let tls = test.transports.map(|transports| format!("UCX_TLS={transports}"));
    let size = test.size_bytes.to_string();
    let messages = test.messages.to_string();
    let warmup = (test.messages / 10).to_string();
    let mut server = vec!["ucx_perftest", "-p", PORT];
    if let Some(tls) = &tls {
        server.splice(0..0, ["env", tls]);
    }
    let rdmascope = process::built("rdmascope");
    if test.on_softdev {
        server.splice(0..0, [&rdmascope, "exec", "--"]);
    }
    let mut client = server.clone();
    client.extend(["127.0.0.1", "-t", test.name, "-s", &size, "-n", &messages, "-w", &warmup]);
    if tls.is_none() {
        // A test of the lower layer (UCT) needs one transport and device.
        client.extend(["-x", "posix", "-d", "memory"]);
    }
    read(&process::pair(cpus, &server, PORT.parse()?, &client)?, unit)
}

/// Finds the number in the output: `Final:`, iterations, latency in microseconds (a percentile, by
/// default the median; the average since the last report; the overall average), bandwidth in 2^20
/// bytes per second and messages per second (average since the last report and overall).
fn read(printed: &str, unit: Unit) -> Result<Value> {
    let row = printed.lines().find_map(|line| line.trim_start().strip_prefix("Final:"));
    let row = row.context("ucx_perftest printed no final numbers")?;
    let numbers: Vec<f64> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let number = |index: usize| {
        let number = numbers.get(index).copied().filter(|number| *number > 0.0);
        number.with_context(|| format!("ucx_perftest printed a row `{}`", row.trim()))
    };
    Ok(match unit {
        Unit::Latency => Value { median: Some(number(1)? * 1e3), mean: Some(number(3)? * 1e3) },
        Unit::Bandwidth => Value::mean(number(5)? * 1_048_576.0),
        Unit::Rate => Value::mean(number(7)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of ucx_perftest 1.13.1: `UCX_TLS=posix,self ucx_perftest 127.0.0.1 -t ucp_am_lat
    /// -s 8 -n 1000000`.
    const LATENCY: &str = "\
+--------------+--------------+------------------------------+---------------------+-----------------------+
|              |              |        latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
Final:               1000000      0.341     0.367     0.368       20.78      20.78     2723746     2723746
";
    /// The same with `-t am_bw -x posix -d memory -s 8 -n 200000`.
    const RATE: &str = "\
|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
Final:                200000      0.099     3.055     3.055        2.50       2.51      327295      327296
";

    #[test]
    fn the_right_columns_are_read() {
        assert_eq!(read(LATENCY, Unit::Latency).unwrap(), Value { median: Some(341.0), mean: Some(368.0) });
        assert_eq!(read(RATE, Unit::Bandwidth).unwrap(), Value::mean(2.51 * 1_048_576.0));
        assert_eq!(read(RATE, Unit::Rate).unwrap(), Value::mean(327_296.0));
    }

    #[test]
    fn what_is_no_result_is_refused() {
        let head = LATENCY.lines().next().unwrap();
        assert!(read(head, Unit::Rate).is_err());
        assert!(read("Final:    200000   0.099", Unit::Rate).is_err());
        assert!(read(&RATE.replace("327296", "0"), Unit::Rate).is_err());
    }
}
