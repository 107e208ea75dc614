//! The kernel, the distribution and the limits of the process.

use super::files::{Facts, Root, field};

/// Release, parameters that matter for latency, clock source, distribution.
pub(super) fn kernel(root: &Root) -> Facts {
    let mut facts = Facts::default();
    facts.set("release", root.line("proc/sys/kernel/osrelease"));
    facts.set("version", root.line("proc/sys/kernel/version"));
    facts.set("distribution", distribution(root));
    let parameters = root.line("proc/cmdline").unwrap_or_default();
    for name in PARAMETERS {
        facts.set(format!("parameter.{name}"), parameter(&parameters, name));
    }
    const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0";
    facts.set("clocksource", root.line(&format!("{CLOCKS}/current_clocksource")));
    facts.set("clocksources", root.line(&format!("{CLOCKS}/available_clocksource")));
    facts.set("realtime", root.line("sys/kernel/realtime").map(|on| if on == "1" { "yes" } else { "no" }));
    facts.set("rt_runtime_us", root.line("proc/sys/kernel/sched_rt_runtime_us"));
    facts.set(
        "watchdog",
        root.line("proc/sys/kernel/watchdog").map(|on| if on == "0" { "off" } else { "on" }),
    );
    facts
}

/// Soft limits of the process (proc_pid_limits(5)): `Max locked memory  8388608  8388608  bytes`.
pub(super) fn limits(root: &Root) -> Facts {
    let mut facts = Facts::default();
    let limits = root.text("proc/self/limits").unwrap_or_default();
    for (name, label) in [
        ("locked_memory", "Max locked memory"),
        ("open_files", "Max open files"),
        ("realtime_priority", "Max realtime priority"),
        ("nice_priority", "Max nice priority"),
    ] {
        facts.set(name, limits.lines().find_map(|line| soft_limit(line.strip_prefix(label)?)));
    }
    facts
}

/// Soft limit, hard limit and, for some, a unit.
fn soft_limit(rest: &str) -> Option<String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    match words[..] {
        ["unlimited", ..] => Some("unlimited".to_owned()),
        [soft, _, unit] => Some(format!("{soft} {unit}")),
        [soft, _] => Some(soft.to_owned()),
        _ => None,
    }
}

/// os-release(5).
fn distribution(root: &Root) -> Option<String> {
    let text = root.text("etc/os-release").or_else(|| root.text("usr/lib/os-release"))?;
    field(&text, '=', "PRETTY_NAME").map(|name| name.trim_matches('"').to_owned())
}

/// The value of a parameter: that of its last occurrence, and `set` if it has none.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let value = |word: &'a str| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (word == name).then_some("set"),
    };
    parameters.split_whitespace().filter_map(value).next_back()
}

/// Documentation/admin-guide/kernel-parameters.txt.
const PARAMETERS: [&str; 13] = [
    "default_hugepagesz",
    "hugepages",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "mitigations",
    "nohz_full",
    "processor.max_cstate",
    "rcu_nocbs",
    "tsc",
];
