//! Ports: their state, their addresses, what they carry, and the bus behind them.

use verbs::DeviceKind;

use crate::devices::{Device, Port};
use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

/// Headers that RoCE adds to a packet's payload, at most (`iboe_get_mtu` in
/// include/rdma/ib_addr.h): global route or IP header 40 B, UDP 8, BTH 12, XRC 4, atomic 28,
/// invariant CRC 4.
const ROCE_HEADERS: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// Ports that are not active.
pub(in crate::doctor) fn state(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for device in facts.devices() {
        let has_active = device.ports.iter().any(Port::is_active);
        for port in &device.ports {
            let name = &device.name;
            let number = port.port;
            let found = format!("port {number} of {name} is {} ({})", port.state, port.physical_state);
            let finding = Finding::good("port state", "ibv_query_port", found);
            if port.is_active() {
                findings.push(finding);
                continue;
            }
            let is_fatal = facts.is_target(device) && !has_active;
            let severity = match (is_fatal, has_active) {
                (true, _) => Severity::Problem,
                (false, false) => Severity::Warning,
                // Second ports are often not connected.
                (false, true) => Severity::Note,
            };
            let finding = finding.but(severity, "nothing can be measured on it");
            findings.push(finding.mended_by(activation(facts, device, port)));
        }
        if let Some(error) = &device.error {
            let severity = if facts.is_target(device) { Severity::Problem } else { Severity::Warning };
            let finding = Finding::good("port state", "ibv_open_device", format!("{}: {error}", device.name));
            findings.push(finding.but(severity, "it cannot be looked at, let alone measured"));
        }
    }
    findings
}

/// What makes a port active.
fn activation(facts: &Facts, device: &Device, port: &Port) -> String {
    let is_infiniband = port.link_layer == "InfiniBand";
    match (is_infiniband, port.state.as_str(), &port.interface) {
        (true, "initialize" | "armed", _) => {
            // The link is up, and nobody has given the port a LID.
            format!(
                "{}   # at one host of the fabric, unless a switch does it",
                facts.as_root("systemctl start opensm")
            )
        }
        (true, ..) => {
            format!("ibstat {} {}   # the cable, or the port of the switch", device.name, port.port)
        }
        (false, _, Some(interface)) => facts.as_root(&format!("ip link set {interface} up")),
        (false, _, None) => "rdma link   # names the interface; then `ip link set NAME up`".to_owned(),
    }
}

/// GIDs that nobody can be reached by, or only neighbours.
pub(in crate::doctor) fn gids(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    // InfiniBand has a GID always, iWARP needs none, and what has no interface needs no address.
    let roce = |port: &&Port| port.protocol.as_deref() == Some("RoCE");
    for device in facts.devices() {
        for port in device.ports.iter().filter(roce) {
            let name = format!("port {} of {}", port.port, device.name);
            let looked_at = format!("the GID table of {name}");
            let interface = port.interface.as_deref().unwrap_or("DEV");
            let remedy = facts
                .as_root(&format!("ip addr add 192.0.2.1/24 dev {interface}   # an address of your network"));
            let default = port.gids.iter().find(|gid| Some(gid.index) == port.default_gid_index);
            let Some(gid) = default else {
                let severity = if facts.is_target(device) { Severity::Problem } else { Severity::Warning };
                let finding = Finding::good("GID", looked_at, format!("{name} has no GID"));
                findings.push(finding.but(severity, "nobody can send to it").mended_by(remedy));
                continue;
            };
            let kind = &gid.kind;
            let found = format!("{name} uses index {}, {} ({kind}, {})", gid.index, gid.gid, gid.reach);
            let finding = Finding::good("GID", looked_at, found);
            findings.push(match (kind.as_str(), gid.reach.as_str()) {
                (_, "link-local") => {
                    let why = "a link-local address reaches no host behind a router or in another VLAN, and both ends must \
                               choose one of the same kind";
                    finding.but(Severity::Warning, why).mended_by(remedy)
                }
                ("RoCE v1", _) => {
                    finding.but(Severity::Warning, "RoCE v1 is not routed, and a peer that chooses v2 cannot be reached")
                }
                _ => finding,
            });
        }
    }
    findings
}

/// Path MTUs that the network interface keeps small.
pub(in crate::doctor) fn mtu(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for device in facts.devices() {
        for port in
            device.ports.iter().filter(|port| port.is_active() && device.kind != DeviceKind::UserSoftware)
        {
            findings.extend(mtu_of(facts, device, port));
        }
    }
    findings
}

fn mtu_of(facts: &Facts, device: &Device, port: &Port) -> Option<Finding> {
    let Port { port: number, active_mtu_bytes: active, max_mtu_bytes: max, .. } = port;
    let name = format!("port {number} of {}", device.name);
    let looked_at = format!("ibv_query_port and the interface of {name}");
    if port.protocol.as_deref() != Some("RoCE") {
        let finding =
            Finding::good("MTU", looked_at, format!("{name} has a path MTU of {active} B of {max}"));
        let why = "the fabric allows less than the port: its packets are smaller than need be";
        let is_less = port.link_layer == "InfiniBand" && active < max;
        return Some(if is_less { finding.but(Severity::Note, why) } else { finding });
    }
    let interface = port.interface.as_ref()?;
    let mtu = port.interface_mtu_bytes?;
    let found = format!("{interface} has an MTU of {mtu}, {name} a path MTU of {active} B of {max}");
    let finding = Finding::good("MTU", looked_at, found);
    if *active > mtu {
        let why = "its packets are longer than the interface carries: they are lost";
        let remedy =
            facts.as_root(&format!("ip link set {interface} mtu {}", round_up(active + ROCE_HEADERS)));
        return Some(finding.but(Severity::Warning, why).mended_by(remedy));
    }
    if active == max {
        return Some(finding);
    }
    let why = format!(
        "messages are cut into packets of {active} B; an MTU of {} at both ends and in between allows {max}",
        round_up(max + ROCE_HEADERS)
    );
    let remedy = facts.as_root(&format!("ip link set {interface} mtu {}", round_up(max + ROCE_HEADERS)));
    Some(finding.but(Severity::Warning, why).mended_by(remedy))
}

/// The next round number, as people set MTUs: 4192 becomes 4200.
fn round_up(mtu: u32) -> u32 {
    mtu.next_multiple_of(100)
}

/// Adapters in a slot that is slower than they are.
pub(in crate::doctor) fn pcie(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for device in facts.devices().filter(|device| device.pci_address.is_some()) {
        let fact = |name: &str| facts.environment("infiniband", &format!("{}.{name}", device.name));
        let now = (fact("pcie_speed"), fact("pcie_width"));
        let (Some(speed), Some(width)) = now else { continue };
        let name = &device.name;
        let found = format!("{name} has a PCIe link of {speed} x{width}");
        let finding = Finding::good("PCIe link", "current_link_speed and current_link_width", found);
        if now == (fact("pcie_speed_max"), fact("pcie_width_max")) {
            findings.push(finding);
            continue;
        }
        let speed_max = fact("pcie_speed_max").unwrap_or("?");
        let width_max = fact("pcie_width_max").unwrap_or("?");
        let why =
            format!("it can do {speed_max} x{width_max}: throughput may end at the bus, not at the link");
        let address = device.pci_address.as_deref().unwrap_or_default();
        let remedy =
            facts.as_root(&format!("lspci -vvs {address} | grep -e LnkCap -e LnkSta   # another slot?"));
        findings.push(finding.but(Severity::Warning, why).mended_by(remedy));
    }
    findings
}
