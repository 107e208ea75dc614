//! Memory and its nodes (proc_meminfo(5), Documentation/admin-guide/mm/).

use super::files::{Facts, Root, chosen, field};

/// Size of the memory and of its pages.
pub(super) fn memory(root: &Root) -> Facts {
    let mut facts = Facts::default();
    let info = root.text("proc/meminfo").unwrap_or_default();
    for (name, key) in [
        ("total", "MemTotal"),
        ("swap", "SwapTotal"),
        ("hugepages", "HugePages_Total"),
        ("hugepages_free", "HugePages_Free"),
        ("hugepage_size", "Hugepagesize"),
    ] {
        facts.set(name, field(&info, ':', key));
    }
    let thp = |file: &str| {
        let choices = root.line(&format!("sys/kernel/mm/transparent_hugepage/{file}"))?;
        chosen(&choices).map(str::to_owned)
    };
    facts.set("transparent_hugepages", thp("enabled"));
    facts.set("transparent_hugepages_defrag", thp("defrag"));
    facts.set("ksm", root.line("sys/kernel/mm/ksm/run").map(|run| if run == "1" { "on" } else { "off" }));
    facts
}

/// Nodes with their CPUs and memory, and whether the kernel moves pages between them.
pub(super) fn numa(root: &Root) -> Facts {
    let mut facts = Facts::default();
    const NODES: &str = "sys/devices/system/node";
    let nodes = root.numbered(NODES, "node");
    facts.set("nodes", (!nodes.is_empty()).then_some(nodes.len()));
    for node in &nodes {
        facts.set(format!("{node}.cpus"), root.line(&format!("{NODES}/{node}/cpulist")));
        facts.set(format!("{node}.memory"), node_memory(root, &format!("{NODES}/{node}/meminfo")));
        facts.set(format!("{node}.distances"), root.line(&format!("{NODES}/{node}/distance")));
    }
    let balancing = root.line("proc/sys/kernel/numa_balancing");
    facts.set("balancing", balancing.map(|mode| if mode == "0" { "off" } else { "on" }));
    facts
}

/// Lines are `Node 0 MemTotal:  24 kB`.
fn node_memory(root: &Root, path: &str) -> Option<String> {
    let info = root.text(path)?;
    let total =
        info.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.ends_with(" MemTotal"));
    total.map(|(_, value)| value.trim().to_owned())
}
