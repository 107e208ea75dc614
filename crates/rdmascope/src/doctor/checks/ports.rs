//! Ports: their state, their GIDs, their MTUs, and the PCIe links of their adapters.

use verbs::DeviceKind;

use crate::devices::{Device, Port};
use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

/// Most bytes of headers that RoCE adds to a packet's payload (`iboe_get_mtu` in
/// include/rdma/ib_addr.h): global route or IP header 40 B, UDP 8, BTH 12, XRC 4, atomic 28,
/// invariant CRC 4.
const ROCE_HEADERS: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// Reports ports that are not active.
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
            findings.push(finding.but(severity, "the device can neither be examined nor measured"));
        }
    }
    findings
}

/// Returns the command that makes a port active.
fn activation(facts: &Facts, device: &Device, port: &Port) -> String {
    let is_infiniband = port.link_layer == "InfiniBand";
    match (is_infiniband, port.state.as_str(), &port.interface) {
        (true, "initialize" | "armed", _) => {
            // The link is up, but no subnet manager has given the port a LID.
            format!(
                "{}   # on one host of the fabric, unless a switch does it",
                facts.as_root("systemctl start opensm")
            )
        }
        (true, ..) => {
            format!("ibstat {} {}   # check the cable and the port of the switch", device.name, port.port)
        }
        (false, _, Some(interface)) => facts.as_root(&format!("ip link set {interface} up")),
        (false, _, None) => "rdma link   # shows the interface; then `ip link set NAME up`".to_owned(),
    }
}

/// Reports ports without a GID, or with a GID that only neighbours can reach.
pub(in crate::doctor) fn gids(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A port of InfiniBand always has a GID; iWARP and ports without an interface need none.
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
                findings.push(finding.but(severity, "no rank can send to it").mended_by(remedy));
                continue;
            };
            let kind = &gid.kind;
            let found = format!("{name} uses index {}, {} ({kind}, {})", gid.index, gid.gid, gid.reach);
            let finding = Finding::good("GID", looked_at, found);
            findings.push(match (kind.as_str(), gid.reach.as_str()) {
                (_, "link-local") => {
                    let why = "a link-local GID does not reach hosts behind a router or in another VLAN, and both ranks \
                               must use GIDs of the same kind";
                    finding.but(Severity::Warning, why).mended_by(remedy)
                }
                ("RoCE v1", _) => {
                    finding.but(Severity::Warning, "RoCE v1 is not routable, and a peer with RoCE v2 cannot be reached")
                }
                _ => finding,
            });
        }
    }
    findings
}

/// Reports path MTUs that are smaller than the port allows, or larger than the interface allows.
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
            Finding::good("MTU", looked_at, format!("{name} has a path MTU of {active} B of at most {max}"));
        let why = "the fabric allows a smaller MTU than the port: packets are smaller than they could be";
        let is_less = port.link_layer == "InfiniBand" && active < max;
        return Some(if is_less { finding.but(Severity::Note, why) } else { finding });
    }
    let interface = port.interface.as_ref()?;
    let mtu = port.interface_mtu_bytes?;
    let found = format!("{interface} has an MTU of {mtu}, {name} a path MTU of {active} B of at most {max}");
    let finding = Finding::good("MTU", looked_at, found);
    if *active > mtu {
        let why = "packets that are longer than the interface allows are lost";
        let remedy =
            facts.as_root(&format!("ip link set {interface} mtu {}", round_up(active + ROCE_HEADERS)));
        return Some(finding.but(Severity::Warning, why).mended_by(remedy));
    }
    if active == max {
        return Some(finding);
    }
    let why = format!(
        "messages are split into packets of {active} B; an MTU of {} on both hosts and between them allows {max}",
        round_up(max + ROCE_HEADERS)
    );
    let remedy = facts.as_root(&format!("ip link set {interface} mtu {}", round_up(max + ROCE_HEADERS)));
    Some(finding.but(Severity::Warning, why).mended_by(remedy))
}

/// Rounds an MTU up to a multiple of 100: 4192 becomes 4200.
fn round_up(mtu: u32) -> u32 {
    mtu.next_multiple_of(100)
}

/// Reports adapters whose PCIe link is slower than the adapter.
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
        let why = format!(
            "it supports {speed_max} x{width_max}: PCIe may limit throughput, and not the network link"
        );
        let address = device.pci_address.as_deref().unwrap_or_default();
        let remedy =
            facts.as_root(&format!("lspci -vvs {address} | grep -e LnkCap -e LnkSta   # another slot?"));
        findings.push(finding.but(Severity::Warning, why).mended_by(remedy));
    }
    findings
}
