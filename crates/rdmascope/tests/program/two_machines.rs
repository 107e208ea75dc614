//! Two machines with separate kernels and one link between them: what crosses the link, and what
//! happens when a machine is gone.
//!
//! `RDMASCOPE_TWO_MACHINES` names the machines as `--hosts` does, `RDMASCOPE_KERNEL_DEVICE` the
//! RDMA device that both have over that link. The machines are reached by ssh, and have the same
//! files. Without the first variable, nothing here is tested.

use std::process::Command;
use std::time::{Duration, Instant};

use measure::record::{Point, Status};

use crate::support::failures::assert_words;
use crate::support::{DEADLINE, Ended, Scratch, collect};

/// The machines and their device.
struct Machines {
    hosts: String,
    device: String,
}

impl Machines {
    fn find() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let found = variable("RDMASCOPE_TWO_MACHINES").zip(variable("RDMASCOPE_KERNEL_DEVICE"));
        if found.is_none() {
            eprintln!("SKIPPED: no two machines are named by RDMASCOPE_TWO_MACHINES");
        }
        found.map(|(hosts, device)| Self { hosts, device })
    }

    fn words<'a>(&'a self, words: &'a str) -> impl Iterator<Item = &'a str> {
        words.split(' ').chain(["--hosts", &self.hosts, "--via", "ssh {host}"])
    }

    fn run(&self, scratch: &Scratch, words: &str) -> Ended {
        scratch.run(&self.words(words).collect::<Vec<_>>())
    }

    /// Returns a command that runs shell commands on the second machine.
    fn peer(&self, commands: &str) -> Command {
        let peer = self.hosts.split(',').nth(1).expect("two");
        let mut ssh = Command::new("ssh");
        ssh.args(["-o", "ConnectTimeout=5", peer, commands]);
        ssh
    }

    #[track_caller]
    fn at_peer(&self, commands: &str) {
        let ended = self.peer(commands).output().unwrap();
        assert!(ended.status.success(), "{commands}: {ended:?}");
    }
}

/// Returns the bytes that rank 1's interface received in a point, for any endpoint.
fn received(point: &Point) -> u64 {
    let host = &point.ends[1].host;
    host.iter()
        .find(|(name, _)| name.starts_with("interface.eth") && name.ends_with(".rx_bytes"))
        .map_or(0, |(_, n)| *n)
}

/// The plan that compares RDMA over Ethernet and TCP/IP over the same link, without InfiniBand.
#[test]
fn rdma_over_ethernet_and_tcp_are_measured_over_one_link() {
    let Some(machines) = Machines::find() else { return };
    let scratch = Scratch::alone();
    let words = format!("run subramoni-2009 --quick --set iterations=50 -d {} --out record", machines.device);
    let ended = machines.run(&scratch, &words);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let points = scratch.record("record").1;
    for endpoint in ["verbs", "tcp"] {
        let of_mode = |layer: &str| {
            let is_it = |point: &&Point| {
                point.axes.get("endpoint") == Some(&endpoint.into())
                    && point.axes.get("link_layer") == Some(&layer.into())
            };
            points.iter().filter(is_it).collect::<Vec<_>>()
        };
        let ethernet = of_mode("ethernet");
        let infiniband = of_mode("infiniband");
        assert!(ethernet.len() == 5 && infiniband.len() == 5, "{endpoint}: {points:?}");
        for point in infiniband {
            assert!(matches!(point.status, Status::NotMeasured { .. }), "{endpoint}: {point:?}");
        }
        for point in ethernet {
            assert_eq!(point.status, Status::Measured, "{endpoint}: {point:?}");
            let latency = point.latency.as_ref().unwrap();
            let bytes = point.axes["size_bytes"].as_u64().unwrap() * latency.count;
            assert!(
                received(point) >= bytes,
                "{endpoint}: {} of {bytes} B crossed: {point:?}",
                received(point)
            );
        }
    }
    assert!(ended.stdout.contains("RDMA over Ethernet takes less time than TCP/IP"), "{}", ended.stdout);
}

/// The machine goes down, and with it the connection to its agent.
#[test]
fn a_machine_that_is_gone_ends_the_run_in_bounded_time() {
    let Some(machines) = Machines::find() else { return };
    let scratch = Scratch::alone();
    let began = Instant::now();
    let child = scratch.program(machines.words("lat tcp -D 120 --out record")).spawn().unwrap();
    let packets = || {
        let text = std::fs::read_to_string("/sys/class/net/eth0/statistics/rx_packets").unwrap();
        text.trim().parse::<u64>().unwrap()
    };
    let before = packets();
    while packets() < before + 3000 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing crosses the link");
        std::thread::sleep(Duration::from_millis(20));
    }
    machines.at_peer("(ip link set eth0 down; sleep 12; ip link set eth0 up) </dev/null >/dev/null 2>&1 &");
    let gone = Instant::now();
    let ended = collect(child);
    let took = gone.elapsed();
    // For the other test.
    while !machines.peer("true").status().unwrap().success() {
        assert!(gone.elapsed() < DEADLINE, "the machine does not come back");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(took < Duration::from_secs(30), "{took:?}: {ended:?}");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let Status::Failed { error } = &scratch.record("record").1[0].status else { panic!("{ended:?}") };
    assert_words(error, &["nothing came from the peer for 10"]);
}
