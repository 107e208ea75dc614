//! The command lines of other tools, and the parsing of their output.

use std::net::IpAddr;

use serde_json::Value;

use crate::point::{Carrier, PointSpec, Tool};

/// The server of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) tool: Tool,
    pub(super) address: IpAddr,
    pub(super) port: u16,
}

/// The result of a tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    /// The mean of half a round trip, in ns.
    HalfNs(f64),
    /// The throughput at its receiver, in bytes per second.
    BytesPerS(f64),
}

impl Server {
    /// Returns the command line of the server.
    pub(super) fn command(self, endpoint: Carrier) -> Vec<String> {
        let address = self.address.to_string();
        let port = self.port.to_string();
        let mut words = match self.tool {
            Tool::Iperf3 => vec!["iperf3", "-s", "-1", "-B", &address, "-p", &port],
            Tool::Qperf => vec!["qperf", "-lp", &port],
            Tool::Sockperf => vec!["sockperf", "server", "-i", &address, "-p", &port],
        };
        if self.tool == Tool::Sockperf && endpoint == Carrier::Tcp {
            words.push("--tcp");
        }
        words.into_iter().map(str::to_owned).collect()
    }

    /// Returns the command line of the client for a measurement of `seconds`.
    pub(super) fn client(self, spec: &PointSpec, seconds: u64) -> Vec<String> {
        let address = self.address.to_string();
        let port = self.port.to_string();
        let size = spec.message.size_bytes.to_string();
        let seconds = seconds.to_string();
        let is_tcp = spec.message.endpoint == Carrier::Tcp;
        let mut words = match self.tool {
            Tool::Iperf3 => {
                vec!["iperf3", "-J", "-c", &address, "-p", &port, "-t", &seconds, "-l", &size]
            }
            Tool::Qperf => {
                let test = match (spec.pattern.row().floods, is_tcp) {
                    (true, true) => "tcp_bw",
                    (true, false) => "udp_bw",
                    (false, true) => "tcp_lat",
                    (false, false) => "udp_lat",
                };
                vec!["qperf", "-lp", &port, "-t", &seconds, "-m", &size, "-e", "6", &address, test]
            }
            Tool::Sockperf => {
                vec!["sockperf", "ping-pong", "-i", &address, "-p", &port, "-t", &seconds, "-m", &size]
            }
        };
        match self.tool {
            // Unlimited rate: iperf3 sends UDP at 1 Mbit/s by default.
            Tool::Iperf3 if !is_tcp => words.extend(["-u", "-b", "0"]),
            Tool::Sockperf if is_tcp => words.push("--tcp"),
            _ => {}
        }
        words.into_iter().map(str::to_owned).collect()
    }
}

/// Finds the result in what a client printed; the error says what is missing there.
pub(super) fn read(tool: Tool, spec: &PointSpec, printed: &str) -> Result<Found, String> {
    match tool {
        Tool::Iperf3 => iperf3(printed),
        Tool::Qperf if spec.pattern.row().floods => {
            let name = if spec.message.endpoint == Carrier::Tcp { "bw" } else { "recv_bw" };
            qperf(printed, name).map(Found::BytesPerS)
        }
        Tool::Qperf => qperf(printed, "latency").map(Found::HalfNs),
        Tool::Sockperf => sockperf(printed),
    }
}

/// Reads the throughput at the receiver from iperf3's JSON; with UDP, lost datagrams do not count.
fn iperf3(printed: &str) -> Result<Found, String> {
    let json: Value = serde_json::from_str(printed).map_err(|error| format!("no JSON ({error})"))?;
    if let Some(error) = json.get("error").and_then(Value::as_str) {
        return Err(format!("an error: {error}"));
    }
    let number = |path: &str| json.pointer(path).and_then(Value::as_f64);
    let received =
        number("/end/sum_received/bits_per_second").ok_or("no end.sum_received.bits_per_second")?;
    Ok(Found::BytesPerS(received / 8.0))
}

/// Reads the number of a line such as `latency = 12.3 us` or `recv_bw = 1,040.1 MB/sec`; qperf's
/// units are powers of ten.
fn qperf(printed: &str, name: &str) -> Result<f64, String> {
    let line = printed.lines().find(|line| line.split_whitespace().next() == Some(name));
    let line = line.ok_or_else(|| format!("no {name}"))?;
    let mut words = line.split('=').nth(1).unwrap_or_default().split_whitespace();
    let number = words.next().and_then(|word| word.replace(',', "").parse::<f64>().ok());
    let number = number.ok_or_else(|| format!("no number of {name}"))?;
    let scale = match words.next().unwrap_or_default() {
        "ns" | "bytes/sec" => 1.0,
        "us" | "KB/sec" => 1e3,
        "ms" | "MB/sec" => 1e6,
        "sec" | "GB/sec" => 1e9,
        "TB/sec" => 1e12,
        other => return Err(format!("an unknown unit {other:?} of {name}")),
    };
    Ok(number * scale)
}

/// Reads the mean of a line such as `sockperf: Summary: Latency is 33.248 usec`.
fn sockperf(printed: &str) -> Result<Found, String> {
    let found =
        printed.lines().find_map(|line| line.split_once("Summary: Latency is ")?.1.split_once(" usec"));
    let us =
        found.and_then(|(number, _)| number.trim().parse::<f64>().ok()).ok_or("no Summary: Latency is")?;
    Ok(Found::HalfNs(us * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, Plan, resolve};

    /// Returns the first point of an experiment that another tool measures.
    fn spec(pattern: &str, endpoint: &str, tool: &str) -> PointSpec {
        let text = format!(
            "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\npattern = \"{pattern}\"\nduration = \"2s\"\n\
             axes = {{ endpoint = \"{endpoint}\", tool = \"{tool}\", size_bytes = 100 }}"
        );
        let plan = Plan::parse(&text, "x.toml", std::path::Path::new(".")).unwrap();
        resolve(&plan, &Options::default()).unwrap().points.remove(0)
    }

    #[test]
    fn each_is_told_what_the_point_asks_for() {
        let words = |pattern: &str, endpoint: &str, tool: &str| {
            let spec = spec(pattern, endpoint, tool);
            let server =
                Server { tool: spec.tool.unwrap(), address: "192.0.2.7".parse().unwrap(), port: 7000 };
            [server.command(spec.message.endpoint), server.client(&spec, 2)].map(|words| words.join(" "))
        };
        for (pattern, endpoint, tool, server, client) in [
            (
                "ping-pong",
                "tcp",
                "qperf",
                "qperf -lp 7000",
                "qperf -lp 7000 -t 2 -m 100 -e 6 192.0.2.7 tcp_lat",
            ),
            ("stream", "udp", "qperf", "qperf -lp 7000", "qperf -lp 7000 -t 2 -m 100 -e 6 192.0.2.7 udp_bw"),
            (
                "ping-pong",
                "tcp",
                "sockperf",
                "sockperf server -i 192.0.2.7 -p 7000 --tcp",
                "sockperf ping-pong -i 192.0.2.7 -p 7000 -t 2 -m 100 --tcp",
            ),
            (
                "stream",
                "udp",
                "iperf3",
                "iperf3 -s -1 -B 192.0.2.7 -p 7000",
                "iperf3 -J -c 192.0.2.7 -p 7000 -t 2 -l 100 -u -b 0",
            ),
        ] {
            assert_eq!(words(pattern, endpoint, tool), [server, client]);
        }
    }

    #[test]
    fn what_they_print_is_read() {
        let of = |pattern: &str, endpoint: &str, tool: &str, printed: &str| {
            let spec = spec(pattern, endpoint, tool);
            read(spec.tool.unwrap(), &spec, printed)
        };
        let half = Ok(Found::HalfNs(27_317.9));
        assert_eq!(of("ping-pong", "udp", "qperf", "udp_lat:\n    latency  =  27.3179 us\n"), half);
        let printed = "udp_bw:\n    send_bw  =  18.6 MB/sec\n    recv_bw  =  1,018.5 MB/sec\n";
        assert_eq!(of("stream", "udp", "qperf", printed), Ok(Found::BytesPerS(1.0185e9)));
        assert_eq!(of("stream", "tcp", "qperf", "tcp_bw:\n  bw  =  2 GB/sec\n"), Ok(Found::BytesPerS(2e9)));
        let printed = "sockperf: Warmup\nsockperf: Summary: Latency is 33.248 usec\n";
        assert_eq!(of("ping-pong", "udp", "sockperf", printed), Ok(Found::HalfNs(33_248.0)));
        let printed = r#"{"end": {"sum_received": {"bits_per_second": 8e9}}}"#;
        assert_eq!(of("stream", "tcp", "iperf3", printed), Ok(Found::BytesPerS(1e9)));
        for (tool, printed, missing) in [
            ("qperf", "tcp_bw:\nfailed to connect\n", "no bw"),
            ("qperf", "tcp_bw:\n  bw  =  much\n", "no number of bw"),
            ("qperf", "tcp_bw:\n  bw  =  2 furlongs\n", "an unknown unit \"furlongs\" of bw"),
            ("iperf3", r#"{"error": "unable to connect"}"#, "an error: unable to connect"),
            ("iperf3", "{}", "no end.sum_received.bits_per_second"),
            ("iperf3", "", "no JSON (EOF while parsing a value at line 1 column 0)"),
        ] {
            assert_eq!(of("stream", "tcp", tool, printed), Err(missing.to_owned()));
        }
        assert!(of("ping-pong", "tcp", "sockperf", "sockperf: No messages were received").is_err());
    }
}
