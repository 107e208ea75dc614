//! RDMA devices (ABI/stable/sysfs-class-infiniband) and their PCI links.

use super::files::{Facts, Root, distinct};
use super::pcie;

/// Devices with firmware, ports, PCI link, NUMA node and the CPUs of their interrupts; the mode of
/// IPoIB interfaces; versions of the kernel's modules that have one.
pub(super) fn infiniband(root: &Root) -> Facts {
    let mut facts = Facts::default();
    for device in root.names(DEVICES) {
        let dir = format!("{DEVICES}/{device}");
        for (name, file) in DEVICE_FACTS {
            facts.set(format!("{device}.{name}"), root.line(&format!("{dir}/{file}")));
        }
        // Without root the register cannot be read.
        let config = root.bytes(&format!("{dir}/device/config")).ok();
        let control = config.as_deref().and_then(pcie::device_control);
        let payload_max_bytes = control.and_then(|control| control.payload_max_bytes);
        let read_request_max_bytes = control.and_then(|control| control.read_request_max_bytes);
        facts.set(format!("{device}.pcie_payload_max_bytes"), payload_max_bytes);
        facts.set(format!("{device}.pcie_read_request_max_bytes"), read_request_max_bytes);
        facts.set(format!("{device}.irq_cpus"), irq_cpus(root, &dir));
        for port in root.numbered(&format!("{dir}/ports"), "") {
            for name in PORT_FACTS {
                let fact = root.line(&format!("{dir}/ports/{port}/{name}"));
                facts.set(format!("{device}.port{port}.{name}"), fact);
            }
        }
        for interface in root.names(&format!("{dir}/device/net")) {
            let fact = |file: &str| root.line(&format!("{dir}/device/net/{interface}/{file}"));
            facts.set(format!("{device}.{interface}.mtu"), fact("mtu"));
            facts.set(format!("{device}.{interface}.ipoib_mode"), fact("mode"));
        }
    }
    for module in MODULES {
        facts.set(format!("{module}.version"), root.line(&format!("sys/module/{module}/version")));
    }
    facts
}

/// The CPUs that the interrupts of a device may go to.
fn irq_cpus(root: &Root, dir: &str) -> Option<String> {
    let irqs = root.numbered(&format!("{dir}/device/msi_irqs"), "");
    distinct(irqs.iter().filter_map(|irq| root.line(&format!("proc/irq/{irq}/smp_affinity_list"))))
}

const DEVICES: &str = "sys/class/infiniband";

/// Facts of a device by name, and their files.
const DEVICE_FACTS: [(&str, &str); 9] = [
    ("firmware", "fw_ver"),
    ("hca_type", "hca_type"),
    ("board", "board_id"),
    ("node_type", "node_type"),
    ("numa_node", "device/numa_node"),
    ("pcie_speed", "device/current_link_speed"),
    ("pcie_width", "device/current_link_width"),
    ("pcie_speed_max", "device/max_link_speed"),
    ("pcie_width_max", "device/max_link_width"),
];

/// Facts of a port, by the names of their files.
const PORT_FACTS: [&str; 4] = ["link_layer", "phys_state", "rate", "state"];

const MODULES: [&str; 6] = ["ib_core", "ib_uverbs", "irdma", "mlx4_core", "mlx5_core", "rdma_rxe"];
