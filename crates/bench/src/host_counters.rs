//! The counters of a host's kernel and adapters: interrupts, context switches, packets and drops
//! (Huang, Hpcbench, 2005, records the same counters around each test).
//!
//! They count for the whole host, or for its network namespace, and include the activity of other
//! processes.
//!
//! # Invariants
//!
//! * Counters of a host are read before and after a point, never during it. They are counters of
//!   the host, not of the ranks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The interfaces and ports that carry a point's messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    /// Network interfaces, by their names.
    pub(crate) interfaces: Vec<String>,
    /// Ports of InfiniBand devices, by their directories in sysfs.
    pub(crate) ports: Vec<PathBuf>,
}

impl Ways {
    /// All interfaces and ports of this host that may carry messages.
    pub(crate) fn of_host() -> Self {
        let devices = std::fs::read_dir("/sys/class/infiniband").into_iter().flatten().flatten();
        let ports = devices.filter_map(|device| std::fs::read_dir(device.path().join("ports")).ok());
        let ports = ports.flatten().flatten().map(|port| port.path()).collect();
        let text = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
        let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
        Self { interfaces: names.collect(), ports }
    }

    /// The union of two sets.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.interfaces.extend(other.interfaces);
        self.interfaces.sort_unstable();
        self.interfaces.dedup();
        self.ports.extend(other.ports);
        self.ports.sort_unstable();
        self.ports.dedup();
        self
    }
}

/// The values of counters at one time, by name.
#[derive(Debug)]
pub(crate) struct Counted(BTreeMap<String, u64>);

impl Counted {
    /// Reads all counters of this host.
    pub(crate) fn now(ways: &Ways) -> Self {
        Self::of(Path::new("/"), ways)
    }

    /// Reads all counters below a directory.
    fn of(root: &Path, ways: &Ways) -> Self {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let mut all = stat(&text("proc/stat"), ticks_per_s());
        all.extend(snmp(&text("proc/self/net/snmp")));
        all.extend(snmp6(&text("proc/self/net/snmp6")));
        // Not from sysfs, which may show the interfaces of another network namespace: the one that
        // has mounted it.
        all.extend(interfaces(&text("proc/self/net/dev"), &ways.interfaces));
        for port in &ways.ports {
            // With several ports, the name of a counter has the name of the port.
            let prefix = if ways.ports.len() > 1 { name_of(port) } else { String::new() };
            for group in ["counters", "hw_counters"] {
                let entries = std::fs::read_dir(port.join(group)).into_iter().flatten().flatten();
                let counters = entries.filter_map(|entry| {
                    let name = entry.file_name();
                    Some((format!("port.{prefix}{}", name.to_string_lossy()), number(&entry.path())?))
                });
                all.extend(counters);
            }
        }
        Self(all)
    }

    /// The changes of the counters since `before`. Ports have many counters, so only changed ones
    /// are included.
    pub(crate) fn since(&self, before: &Self) -> BTreeMap<String, u64> {
        let change = |(name, now): (&String, &u64)| {
            let change = now.checked_sub(*before.0.get(name)?)?;
            (change > 0 || !name.starts_with("port.")).then(|| (name.clone(), change))
        };
        self.0.iter().filter_map(change).collect()
    }
}

/// The counters of interfaces that a point can change, and their columns in `/proc/net/dev`
/// (proc_pid_net(5)).
const OF_INTERFACES: [(&str, usize); 8] = [
    ("rx_bytes", 0),
    ("rx_packets", 1),
    ("rx_errors", 2),
    ("rx_dropped", 3),
    ("tx_bytes", 8),
    ("tx_packets", 9),
    ("tx_errors", 10),
    ("tx_dropped", 11),
];

/// The counters of protocols (RFC 4022, RFC 4113, RFC 4293). Linux counts UDP over IPv6 separately.
const OF_PROTOCOLS: [&str; 12] = [
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Tcp.InErrs",
    "Tcp.RetransSegs",
    "Udp.InErrors",
    "Udp.NoPorts",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp6.InErrors",
    "Udp6.NoPorts",
    "Udp6.RcvbufErrors",
    "Udp6.SndbufErrors",
];

/// The device and the number of a port, such as `mlx5_0.1.`, from its directory.
fn name_of(port: &Path) -> String {
    let parts: Vec<_> = port.components().rev().map(|part| part.as_os_str().to_string_lossy()).collect();
    let part = |at: usize| parts.get(at).map_or("", |part| part.as_ref());
    format!("{}.{}.", part(2), part(0))
}

/// Reads a file that contains only a number.
pub(crate) fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The ticks of `/proc/stat` per second.
fn ticks_per_s() -> u64 {
    // SAFETY: the function has no preconditions.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

/// The counters of all CPUs together: busy time, time of interrupts and soft interrupts, and steal
/// time, in ns; the numbers of interrupts, context switches, and soft interrupts of the network
/// (proc_stat(5)).
fn stat(text: &str, ticks_per_s: u64) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let mut put =
        |name: &str, number: Option<u64>| all.extend(number.map(|number| (name.to_owned(), number)));
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let at = |index: usize| numbers.get(index).copied();
        let ns = |indices: &[usize]| {
            let ticks = indices.iter().map(|index| at(*index)).sum::<Option<u64>>()?;
            ticks.checked_mul(1_000_000_000 / ticks_per_s)
        };
        match name {
            // user nice system idle iowait irq softirq steal
            "cpu" => {
                put("cpu.busy_ns", ns(&[0, 1, 2, 5, 6]));
                put("cpu.interrupts_ns", ns(&[5, 6]));
                put("cpu.steal_ns", ns(&[7]));
            }
            "ctxt" => put("context_switches", at(0)),
            "intr" => put("interrupts", at(0)),
            // all HI TIMER NET_TX NET_RX
            "softirq" => {
                put("softirqs.net_tx", at(3));
                put("softirqs.net_rx", at(4));
            }
            _ => {}
        }
    }
    all
}

/// Counters of protocols: for each protocol a line of names and a line of numbers
/// (proc_pid_net(5)).
fn snmp(text: &str) -> BTreeMap<String, u64> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks_exact(2).filter_map(|pair| {
        let (protocol, names) = pair[0].split_once(':')?;
        let (same, numbers) = pair[1].split_once(':')?;
        (protocol == same).then(|| {
            let named = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
            named.filter_map(move |(name, number)| Some((format!("{protocol}.{name}"), number.parse().ok()?)))
        })
    });
    pairs.flatten().filter(|(name, _)| OF_PROTOCOLS.contains(&name.as_str())).collect()
}

/// Counters of UDP over IPv6: each line has a name and a number.
fn snmp6(text: &str) -> BTreeMap<String, u64> {
    let one = |line: &str| {
        let (name, number) = line.split_once(char::is_whitespace)?;
        let name = format!("Udp6.{}", name.strip_prefix("Udp6")?);
        let is_known = OF_PROTOCOLS.contains(&name.as_str());
        Some((name, number.trim().parse().ok().filter(|_| is_known)?))
    };
    text.lines().filter_map(one).collect()
}

/// Counters of the named interfaces: each has one line.
fn interfaces(text: &str, named: &[String]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let Some((name, numbers)) = line.split_once(':') else { continue };
        let name = name.trim();
        if !named.iter().any(|known| known == name) {
            continue;
        }
        let numbers: Vec<&str> = numbers.split_ascii_whitespace().collect();
        let counters = OF_INTERFACES.iter().filter_map(|(counter, at)| {
            Some((format!("interface.{name}.{counter}"), numbers.get(*at)?.parse().ok()?))
        });
        all.extend(counters);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let text = "cpu  100 1 50 9000 7 2 3 4 0 0\ncpu0 50 1 25 4500 3 1 1 2 0 0\nintr 12345 0 9 0\nctxt 678\nbtime 1\n\
                    softirq 900 1 200 33 44 5 6 7 8 9 10\n";
        let expected = [
            ("context_switches", 678),
            ("cpu.busy_ns", 1_560_000_000),
            ("cpu.interrupts_ns", 50_000_000),
            ("cpu.steal_ns", 40_000_000),
            ("interrupts", 12_345),
            ("softirqs.net_rx", 44),
            ("softirqs.net_tx", 33),
        ];
        let owned = |all: &[(&str, u64)]| all.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!(stat(text, 100), owned(&expected));
        let text = "Ip: Forwarding InDiscards\nIp: 1 7\nTcp: MaxConn RetransSegs\nTcp: -1 42\n\
                    Udp: NoPorts RcvbufErrors\nUdp: 3 4\n";
        let expected =
            [("Ip.InDiscards", 7), ("Tcp.RetransSegs", 42), ("Udp.NoPorts", 3), ("Udp.RcvbufErrors", 4)];
        assert_eq!(snmp(text), owned(&expected));
        let text = "Ip6InDiscards                   \t1\nUdp6RcvbufErrors                \t9\nUdp6InDatagrams \t7\nUdp6\n";
        assert_eq!(snmp6(text), owned(&[("Udp6.RcvbufErrors", 9)]));
        let text = "Inter-|   Receive    |  Transmit\n face |bytes packets\n    lo: 9 8 7 6 5 4 3 2 11 12 13 14 0 0 0 0\n\
                    eth10:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n eth1: 1 2\n";
        let expected = [
            ("interface.eth1.rx_bytes", 1),
            ("interface.eth1.rx_packets", 2),
            ("interface.lo.rx_bytes", 9),
            ("interface.lo.rx_dropped", 6),
            ("interface.lo.rx_errors", 7),
            ("interface.lo.rx_packets", 8),
            ("interface.lo.tx_bytes", 11),
            ("interface.lo.tx_dropped", 14),
            ("interface.lo.tx_errors", 13),
            ("interface.lo.tx_packets", 12),
        ];
        assert_eq!(interfaces(text, &["lo".to_owned(), "eth1".to_owned()]), owned(&expected));
        for wrong in ["", "Tcp:", "Tcp: a\nUdp: 1\n", "cpu\nintr x\nsoftirq 1", "cpu 1 2 3"] {
            assert!(snmp(wrong).is_empty() && stat(wrong, 100).is_empty(), "{wrong:?}");
        }
    }

    #[test]
    fn what_has_changed_is_told() {
        let ways = Ways { interfaces: vec!["lo".to_owned(), "none0".to_owned()], ports: Vec::new() };
        let before = Counted::now(&ways);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..50 {
            socket.send_to(&[0; 100], socket.local_addr().unwrap()).unwrap();
        }
        let counted = Counted::now(&ways).since(&before);
        assert!(
            counted["interface.lo.rx_packets"] >= 50 && counted["interface.lo.tx_bytes"] >= 5000,
            "{counted:?}"
        );
        assert!(
            counted.contains_key("interrupts") && counted.contains_key("Udp.RcvbufErrors"),
            "{counted:?}"
        );
        assert!(!counted.keys().any(|name| name.contains("none0")));
    }

    #[test]
    fn ports_tell_what_has_changed() {
        let directory = std::env::temp_dir().join(format!("rdmascope-counters-{}", std::process::id()));
        let counters = directory.join("hw_counters");
        std::fs::create_dir_all(&counters).unwrap();
        let write = |name: &str, text: &str| std::fs::write(counters.join(name), text).unwrap();
        write("out_of_sequence", "5\n");
        write("rnr_nak_retry_err", "1\n");
        write("lifespan", "ten\n");
        let ways = Ways { interfaces: Vec::new(), ports: vec![directory.clone()] };
        let before = Counted::of(&directory, &ways);
        write("out_of_sequence", "9\n");
        let counted = Counted::of(&directory, &ways).since(&before);
        assert_eq!(counted, BTreeMap::from([("port.out_of_sequence".to_owned(), 4)]));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
