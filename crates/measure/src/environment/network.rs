//! Network interfaces (ABI/testing/sysfs-class-net), and the kernel's defaults for TCP and UDP
//! (tcp(7), socket(7)).

use super::files::{Facts, Root};

/// Interfaces with their state, MTU, speed and driver, and the mode of IPoIB; limits of socket
/// buffers.
pub(super) fn network(root: &Root) -> Facts {
    let mut facts = Facts::default();
    for interface in root.names(INTERFACES) {
        let line = |file: &str| root.line(&format!("{INTERFACES}/{interface}/{file}"));
        for (name, file) in INTERFACE_FACTS {
            facts.set(format!("{interface}.{name}"), line(file));
        }
        // An interface that is down, and a virtual one, has a speed of -1 or none.
        let speed = line("speed").filter(|speed| !speed.starts_with('-'));
        facts.set(format!("{interface}.speed_mbps"), speed);
        let is_ipoib = line("type").as_deref() == Some(ARPHRD_INFINIBAND);
        facts.set(format!("{interface}.ipoib_mode"), line("mode").filter(|_| is_ipoib));
        let driver = std::fs::read_link(root.path(&format!("{INTERFACES}/{interface}/device/driver")));
        let driver = driver.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        facts.set(format!("{interface}.driver"), driver);
    }
    for (name, file) in SETTINGS {
        let value = root.line(&format!("proc/sys/net/{file}"));
        facts.set(name, value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    facts
}

const INTERFACES: &str = "sys/class/net";

/// The type of IPoIB interfaces (linux/if_arp.h).
const ARPHRD_INFINIBAND: &str = "32";

/// Facts of an interface by name, and their files.
const INTERFACE_FACTS: [(&str, &str); 2] = [("mtu_bytes", "mtu"), ("state", "operstate")];

/// The kernel's defaults for sockets.
const SETTINGS: [(&str, &str); 8] = [
    ("busy_poll_us", "core/busy_poll"),
    ("congestion_control", "ipv4/tcp_congestion_control"),
    ("default_qdisc", "core/default_qdisc"),
    ("rmem_max_bytes", "core/rmem_max"),
    ("tcp_rmem_bytes", "ipv4/tcp_rmem"),
    ("tcp_wmem_bytes", "ipv4/tcp_wmem"),
    ("udp_rmem_default_bytes", "core/rmem_default"),
    ("wmem_max_bytes", "core/wmem_max"),
];
