//! Two network namespaces with a link between them, as two hosts on one machine.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use measure::record::Point;

use super::{DEADLINE, Ended, Scratch, all_measured, skip};

/// Two namespaces and the link between them, until the value is dropped.
pub(crate) struct Hosts {
    pub(crate) names: [String; 2],
}

impl Hosts {
    /// Makes the namespaces, each with an IPv4 and an IPv6 address; none if that is not allowed or
    /// not possible, which is reported.
    pub(crate) fn new() -> Option<Self> {
        let number = std::process::id().wrapping_mul(16).wrapping_add(NUMBER.fetch_add(1, Relaxed));
        let names = ["a", "b"].map(|side| format!("rs{number}{side}"));
        let hosts = Self { names };
        match hosts.make() {
            Ok(()) => Some(hosts),
            Err(why) => {
                skip("namespaces", &why);
                None
            }
        }
    }

    /// Makes two namespaces with packet filters on the link.
    pub(crate) fn filtered() -> Option<Self> {
        match run(&["nft", "--version"]) {
            Ok(_) => Self::new(),
            Err(why) => {
                skip("namespaces", &why);
                None
            }
        }
    }

    fn make(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        // Both are made before the link, so that everything ends with them.
        for name in &self.names {
            run(&["ip", "netns", "add", name])?;
            run(&["ip", "-n", name, "link", "set", "lo", "up"])?;
        }
        run(&[
            "ip", "link", "add", "link0", "netns", a, "type", "veth", "peer", "name", "link0", "netns", b,
        ])?;
        for (name, host) in self.names.iter().zip(1..) {
            run(&["ip", "-n", name, "address", "add", &format!("10.98.7.{host}/24"), "dev", "link0"])?;
            let v6 = format!("fd98::{host}/64");
            run(&["ip", "-n", name, "address", "add", &v6, "dev", "link0", "nodad"])?;
            run(&["ip", "-n", name, "link", "set", "link0", "up"])?;
        }
        Ok(())
    }

    /// Returns the flags that place ranks in the namespaces.
    pub(crate) fn placed(&self) -> [String; 4] {
        ["--hosts".to_owned(), self.names.join(","), "--via".to_owned(), "ip netns exec {host}".to_owned()]
    }

    /// Runs a command in a namespace; returns what it prints.
    #[track_caller]
    pub(crate) fn on(&self, host: usize, command: &[&str]) -> String {
        let words = [&["ip", "netns", "exec", &self.names[host]], command].concat();
        run(&words).unwrap_or_else(|why| panic!("{command:?}: {why}"))
    }

    /// Lets a namespace drop IPv4 packets from the link: all, or packets that match `which`, in the
    /// syntax of nft(8).
    pub(crate) fn drop_at(&self, host: usize, which: &str) {
        let rules = format!(
            "table ip faults {{ chain arriving {{ type filter hook prerouting priority 0; iif link0 {which} counter drop; }}\n }}"
        );
        self.on(host, &["nft", &rules]);
    }

    /// Lets a namespace accept all packets again.
    pub(crate) fn drop_no_more_at(&self, host: usize) {
        self.on(host, &["nft", "flush", "ruleset"]);
    }

    /// Returns how many packets a namespace has dropped by that rule.
    pub(crate) fn dropped_at(&self, host: usize) -> u64 {
        let listed = self.on(host, &["nft", "list", "ruleset"]);
        let count = listed.split("counter packets ").nth(1).and_then(|rest| rest.split(' ').next());
        count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no counter: {listed}"))
    }

    /// Delays, loses, repeats or reorders packets that a namespace sends over the link, in the
    /// syntax of tc-netem(8). Replaces the earlier setting.
    ///
    /// # Errors
    /// If the kernel does not support it: the message of `tc`.
    pub(crate) fn emulate(&self, host: usize, netem: &str) -> Result<(), String> {
        // The queue has room for all packets that a delay holds back.
        let words =
            format!("tc -n {} qdisc replace dev link0 root netem limit 100000 {netem}", self.names[host]);
        run(&words.split(' ').collect::<Vec<_>>()).map(drop)
    }

    /// Returns how many packets a namespace has lost by netem.
    pub(crate) fn lost_at(&self, host: usize) -> u64 {
        let shown = self.on(host, &["tc", "-s", "qdisc", "show", "dev", "link0"]);
        let count = shown.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next());
        count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count: {shown}"))
    }

    /// Makes interfaces, besides the link, that appear as InfiniBand: `ib0`. They are removed when
    /// the value is dropped.
    #[track_caller]
    pub(crate) fn ipoib(&self) -> Ipoib {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/support/ipoib.py");
        let mut command = Command::new("python3");
        command.arg(script).args(&self.names).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n", "the script made no interfaces");
        for (host, name) in self.names.iter().enumerate() {
            let address = format!("10.99.7.{}/24", host + 1);
            self.on(host, &["ip", "-n", name, "address", "add", &address, "dev", "ib0"]);
            self.on(host, &["ip", "-n", name, "link", "set", "ib0", "up"]);
        }
        Ipoib(child)
    }

    /// Waits until the first namespace has sent so many packets over the link.
    #[track_caller]
    pub(crate) fn await_packets(&self, count: u64) {
        let began = Instant::now();
        while self.counter(0, "tx_packets") < count {
            assert!(began.elapsed() < DEADLINE, "nothing is sent");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns a counter of the link's interface in a namespace.
    pub(crate) fn counter(&self, host: usize, name: &str) -> u64 {
        let text = self.on(host, &["cat", &format!("/sys/class/net/link0/statistics/{name}")]);
        text.trim().parse().unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // The namespace may not have been made.
            let _ = run(&["ip", "netns", "delete", name]);
        }
    }
}

/// Runs the program between the two hosts; returns the points of its record.
#[track_caller]
pub(crate) fn measured(scratch: &Scratch, hosts: &Hosts, arguments: &str, record: &str) -> Vec<Point> {
    let (ended, points) = run_between(scratch, hosts, arguments, record);
    assert_eq!(ended.status, Some(0), "{arguments}: {ended:?}");
    assert!(all_measured(&points), "{arguments}: {points:?}");
    points
}

/// Runs the program between the two hosts, even if it fails; returns its output, too.
pub(crate) fn run_between(
    scratch: &Scratch,
    hosts: &Hosts,
    arguments: &str,
    record: &str,
) -> (Ended, Vec<Point>) {
    let placed = hosts.placed();
    let words = arguments.split(' ').chain(["--out", record]).chain(placed.iter().map(String::as_str));
    let ended = scratch.run(&words.collect::<Vec<_>>());
    (ended, scratch.record(record).1)
}

/// The process that carries the packets of [`Hosts::ipoib`].
pub(crate) struct Ipoib(Child);

impl Drop for Ipoib {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Runs a command; returns what it prints, or why it failed.
pub(crate) fn run(words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.map_err(|error| format!("{} cannot be started: {error}", words[0]))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}
