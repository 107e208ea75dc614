//! Processors and their power management (Documentation/admin-guide/pm/ and
//! ABI/testing/sysfs-devices-system-cpu).

use super::files::{Facts, Root, chosen, distinct, field, fields};

/// Model, count, topology, rate and features of the processors.
pub(super) fn cpu(root: &Root) -> Facts {
    let mut facts = Facts::default();
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    let count = fields(&info, ':', "processor").count();
    facts.set("count", (count > 0).then_some(count));
    facts.set("online", root.line("sys/devices/system/cpu/online"));
    facts.set("model", field(&info, ':', "model name"));
    facts.set("mhz", rate_mhz(&info));
    facts.set("sockets", distinct_count(fields(&info, ':', "physical id")));
    facts.set("threads_per_core", threads_per_core(&info));
    facts.set("smt", root.line("sys/devices/system/cpu/smt/control"));
    let flags = field(&info, ':', "flags").or_else(|| field(&info, ':', "Features")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    facts.set("flags", Some(FLAGS.into_iter().filter(|flag| has(flag)).collect::<Vec<_>>().join(" ")));
    facts.set("hypervisor", hypervisor(root, has("hypervisor")));
    facts.set("microcode", field(&info, ':', "microcode"));
    facts
}

/// The CPUs that share a core, the last level of cache or a package with the CPU that a rank is
/// pinned to, itself included.
pub(super) fn pinned(root: &Root, cpus: &[u32]) -> Facts {
    let mut facts = Facts::default();
    let &[cpu] = cpus else { return facts };
    let directory = format!("sys/devices/system/cpu/cpu{cpu}");
    // Older kernels have only the second name.
    let topology =
        |names: [&str; 2]| names.iter().find_map(|name| root.line(&format!("{directory}/topology/{name}")));
    facts.set("core", topology(["core_cpus_list", "thread_siblings_list"]));
    facts.set("package", topology(["package_cpus_list", "core_siblings_list"]));
    let caches = root.numbered(&format!("{directory}/cache"), "index");
    let level = |index: &&String| root.line(&format!("{directory}/cache/{index}/level"))?.parse::<u32>().ok();
    let last = caches.iter().max_by_key(level);
    facts.set(
        "cache",
        last.and_then(|index| root.line(&format!("{directory}/cache/{index}/shared_cpu_list"))),
    );
    facts
}

/// Frequency scaling, idle states, latency requests and the tuned profile.
pub(super) fn power(root: &Root) -> Facts {
    let mut facts = Facts::default();
    let cpus = cpu_dirs(root);
    facts.set("governor", root.distinct(&cpus, "cpufreq/scaling_governor"));
    facts.set("scaling_driver", root.distinct(&cpus, "cpufreq/scaling_driver"));
    facts.set("energy_preference", root.distinct(&cpus, "cpufreq/energy_performance_preference"));
    facts.set("boost", boost(root));
    facts.set("pcie_aspm", pcie_aspm(root));
    facts.set("cpuidle_driver", root.line("sys/devices/system/cpu/cpuidle/current_driver"));
    facts.set("cpuidle_governor", root.line("sys/devices/system/cpu/cpuidle/current_governor"));
    facts.set("idle_states", distinct(cpus.iter().filter_map(|cpu| idle_states(root, cpu))));
    facts.set("cpu_dma_latency", cpu_dma_latency(root));
    facts.set("tuned_profile", root.line("etc/tuned/active_profile"));
    facts
}

/// The clock rate at this moment, or the smallest and the largest one.
fn rate_mhz(info: &str) -> Option<String> {
    let rates: Vec<f64> = fields(info, ':', "cpu MHz").filter_map(|rate| rate.parse().ok()).collect();
    let least = rates.iter().copied().reduce(f64::min)?;
    let most = rates.iter().copied().reduce(f64::max)?;
    Some(if least == most { format!("{least:.0}") } else { format!("{least:.0} to {most:.0}") })
}

fn distinct_count<'a>(values: impl Iterator<Item = &'a str>) -> Option<usize> {
    let count = values.collect::<std::collections::BTreeSet<_>>().len();
    (count > 0).then_some(count)
}

fn threads_per_core(info: &str) -> Option<u32> {
    let number = |name| field(info, ':', name)?.parse::<u32>().ok();
    number("siblings")?.checked_div(number("cpu cores")?)
}

/// The hypervisor's name, if it is known; `none` if the processor does not report a hypervisor.
fn hypervisor(root: &Root, is_guest: bool) -> Option<String> {
    let kind = || root.line("sys/hypervisor/type");
    let product = || {
        let part = |name: &str| root.line(&format!("sys/class/dmi/id/{name}"));
        let parts: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(part).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    };
    is_guest.then(|| kind().or_else(product).unwrap_or_else(|| "yes".to_owned()))
}

fn cpu_dirs(root: &Root) -> Vec<String> {
    const CPUS: &str = "sys/devices/system/cpu";
    root.numbered(CPUS, "cpu").iter().map(|cpu| format!("{CPUS}/{cpu}")).collect()
}

/// `intel_pstate` has an inverted switch.
fn boost(root: &Root) -> Option<&'static str> {
    let on = |value: &str, on: &str| if value == on { "on" } else { "off" };
    let generic = root.line("sys/devices/system/cpu/cpufreq/boost").map(|value| on(&value, "1"));
    generic.or_else(|| root.line("sys/devices/system/cpu/intel_pstate/no_turbo").map(|value| on(&value, "0")))
}

/// The policy of the PCI Express links' power management: `[default] performance powersave`.
fn pcie_aspm(root: &Root) -> Option<String> {
    chosen(&root.line("sys/module/pcie_aspm/parameters/policy")?).map(str::to_owned)
}

/// The idle states of a CPU; disabled ones are marked: `POLL, C1, C6 (disabled)`.
fn idle_states(root: &Root, cpu: &str) -> Option<String> {
    let states = root.numbered(&format!("{cpu}/cpuidle"), "state");
    let state = |state: &String| {
        let name = root.line(&format!("{cpu}/cpuidle/{state}/name"))?;
        let is_disabled =
            root.line(&format!("{cpu}/cpuidle/{state}/disable")).is_some_and(|value| value != "0");
        Some(if is_disabled { format!("{name} (disabled)") } else { name })
    };
    let names: Vec<String> = states.iter().filter_map(state).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The request in force, 4 bytes in the machine's byte order
/// (Documentation/power/pm_qos_interface.rst). Only root may read it; for others the value says so.
fn cpu_dma_latency(root: &Root) -> Option<String> {
    match root.bytes("dev/cpu_dma_latency") {
        Ok(bytes) => match i32::from_ne_bytes(bytes.try_into().ok()?) {
            PM_QOS_DEFAULT_US => Some("no request".to_owned()),
            us => Some(format!("{us} us")),
        },
        Err(cause) if cause.kind() == std::io::ErrorKind::PermissionDenied => {
            Some(format!("unknown: {cause}"))
        }
        Err(_) => None,
    }
}

/// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`: 2000 s, more than the exit latency of any idle state.
const PM_QOS_DEFAULT_US: i32 = 2_000_000_000;

/// Features that a clock, a copy or a doorbell depends on, or that show a guest.
const FLAGS: [&str; 15] = [
    "hypervisor",
    "constant_tsc",
    "nonstop_tsc",
    "tsc_reliable",
    "tsc_known_freq",
    "arat",
    "erms",
    "fsrm",
    "avx2",
    "avx512f",
    "clflushopt",
    "clwb",
    "movdiri",
    "movdir64b",
    "waitpkg",
];
