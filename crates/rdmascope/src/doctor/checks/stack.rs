//! What lies between a program and a device: libraries, modules, device nodes.

use verbs::DeviceKind;

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

/// Reports missing libraries of rdma-core, and devices of the kernel that libibverbs does not list.
pub(in crate::doctor) fn libraries(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let looked_at = "libibverbs.so.1 and librdmacm.so.1";
    if let Some(missing) = &facts.no_libibverbs {
        let why = "without it only softdev can be measured";
        findings.push(
            Finding::good("libraries", looked_at, missing.clone())
                .but(Severity::Warning, why)
                .mended_by(facts.as_root("apt-get install libibverbs1 ibverbs-providers")),
        );
    } else if facts.has_librdmacm {
        findings.push(Finding::good("libraries", looked_at, "libibverbs and librdmacm are installed"));
    } else {
        let why = "ranks cannot connect by RDMA CM (-R), which iWARP needs";
        findings.push(
            Finding::good("libraries", looked_at, "librdmacm is missing")
                .but(Severity::Note, why)
                .mended_by(facts.as_root("apt-get install librdmacm1")),
        );
    }
    let is_listed = |name: &String| facts.survey.devices.iter().any(|device| device.name == *name);
    let is_wanted = |name: &&String| facts.named.as_ref().is_none_or(|named| named == *name);
    for name in facts.kernel_devices.iter().filter(is_wanted) {
        if facts.no_libibverbs.is_none() && facts.has_uverbs && !is_listed(name) {
            let found = format!("the kernel has {name}, but libibverbs does not list it");
            let why = "libibverbs has no provider for its driver, or its device node is missing";
            findings.push(
                Finding::good("libraries", "/sys/class/infiniband", found)
                    .but(Severity::Warning, why)
                    .mended_by(facts.as_root("apt-get install ibverbs-providers rdma-core")),
            );
        }
    }
    findings
}

/// Reports missing kernel modules, which offer verbs and RDMA CM to programs.
pub(in crate::doctor) fn kernel(facts: &Facts) -> Vec<Finding> {
    let looked_at = "/sys/class/infiniband_verbs and /dev/infiniband/rdma_cm";
    if !facts.has_uverbs {
        let why = "no device of the kernel can be measured";
        let finding = Finding::good("modules", looked_at, "ib_uverbs is not loaded");
        // Without an adapter that needs it, that is no fault.
        let severity = match facts.kernel_devices.is_empty() && facts.adapters.is_empty() {
            true => Severity::Note,
            false => Severity::Warning,
        };
        return vec![finding.but(severity, why).mended_by(facts.as_root("modprobe ib_uverbs"))];
    }
    if facts.rdma_cm.is_none() {
        let why = "ranks cannot connect by RDMA CM (-R), which iWARP needs";
        return vec![
            Finding::good("modules", looked_at, "rdma_ucm is not loaded")
                .but(Severity::Note, why)
                .mended_by(facts.as_root("modprobe rdma_ucm")),
        ];
    }
    vec![Finding::good("modules", looked_at, "ib_uverbs and rdma_ucm are loaded")]
}

/// Reports adapters whose driver for RDMA is not loaded.
pub(in crate::doctor) fn adapters(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for adapter in &facts.adapters {
        let remedy = facts.as_root(&format!("modprobe {}", adapter.module));
        // The ports and virtual functions of one adapter are separate interfaces.
        if findings.iter().any(|finding| finding.remedy.as_ref() == Some(&remedy)) {
            continue;
        }
        let found = format!("{} is driven by {} and has no RDMA device", adapter.interface, adapter.driver);
        let why = "its adapter may support RDMA, if its model does and RDMA is enabled in the adapter";
        let finding = Finding::good("adapters", "/sys/class/net/*/device", found);
        findings.push(finding.but(Severity::Warning, why).mended_by(remedy));
    }
    findings
}

/// Reports device nodes that are missing or closed to this user.
pub(in crate::doctor) fn nodes(facts: &Facts) -> Vec<Finding> {
    if facts.kernel_devices.is_empty() || !facts.has_uverbs {
        return Vec::new();
    }
    let looked_at = "/dev/infiniband";
    let is_needed = facts.target().is_none_or(|device| device.kind != DeviceKind::UserSoftware);
    let severity = if is_needed { Severity::Problem } else { Severity::Warning };
    let why = "no device of the kernel can be opened";
    if facts.uverbs.is_empty() {
        let found = "there is no /dev/infiniband/uverbs*, although the kernel has devices";
        let remedy = "docker run --device /dev/infiniband ...   # in a container\n\
                      udevadm trigger --subsystem-match=infiniband_verbs   # elsewhere, as root";
        return vec![Finding::good("device nodes", looked_at, found).but(severity, why).mended_by(remedy)];
    }
    let closed: Vec<_> = facts
        .uverbs
        .iter()
        .chain(&facts.rdma_cm)
        .filter(|node| !node.is_usable)
        .map(|node| &*node.path)
        .collect();
    if closed.is_empty() {
        let found = format!("{} can be read and written", facts.uverbs[0].path);
        return vec![Finding::good("device nodes", looked_at, found)];
    }
    let found = format!("this user may not read and write {}", closed.join(" and "));
    // The udev rules of rdma-core set this mode; without them, only root may open the nodes.
    let remedy = facts.as_root(&format!("chmod 666 {}", closed.join(" ")));
    vec![Finding::good("device nodes", looked_at, found).but(severity, why).mended_by(remedy)]
}
