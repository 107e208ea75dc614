//! What each technique would find on a host, for `doctor`. Nothing is changed.

use std::io;

use measure::conditions::Technique;
use measure::environment::distinct;

use crate::host::Host;
use crate::own::{self, LATENCY, latency};
use crate::refusal::refused;
use crate::rights::{CAP_IPC_LOCK, ROOT, has_capability};
use crate::setting::{self, Setting};
use crate::shield::Groups;
use crate::targets::{numbers, scaled};

/// The state of one technique on a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct State {
    /// The technique.
    pub technique: Technique,
    /// The files that were read.
    pub looked_at: &'static str,
    /// The current value; absent if no file shows it.
    pub now: Option<String>,
    /// Whether the technique can be applied.
    pub can: Can,
}

/// Whether a technique can be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Can {
    /// It can.
    Apply,
    /// It does not apply to this host; the reason.
    Nothing(String),
    /// A right is missing; which, and how to get it.
    NotPermitted(String),
}

/// Returns the state of every technique on a host, for a rank on `device` if it is given.
pub fn survey(host: &Host, device: Option<&str>) -> Vec<State> {
    let state = |technique, looked_at, now, can| State { technique, looked_at, now, can };
    let governor = governors(host);
    let irqs = interrupts(host);
    let groups = Groups::of(host);
    let turbo = [Setting::Boost, Setting::NoTurbo].into_iter().find(|turbo| host.at(&turbo.path()).exists());
    vec![
        state(Technique::CpuDmaLatency, "/dev/cpu_dma_latency", latency(host), file(host, LATENCY)),
        state(Technique::Memory, "/proc/self/status and limits", None, memory(host)),
        state(Technique::Numa, "/sys/devices/system/node", None, numa(host, device)),
        state(Technique::Scheduler, "/proc/self/status and limits", class(), scheduler(host)),
        state(Technique::Governor, "scaling_governor of the CPUs", governor.0, governor.1),
        state(
            Technique::Turbo,
            "cpufreq/boost or intel_pstate/no_turbo",
            turbo.and_then(|turbo| Some(format!("{turbo} is {}", turbo.read(host).ok()?))),
            turbo.map_or(nothing("the kernel has no switch for turbo (no cpufreq/boost)"), |turbo| {
                file(host, &turbo.path())
            }),
        ),
        state(
            Technique::Aspm,
            "/sys/module/pcie_aspm/parameters/policy",
            Setting::Aspm.read(host).ok(),
            file(host, &Setting::Aspm.path()),
        ),
        state(Technique::IrqAffinity, "smp_affinity_list of the interrupts", irqs.0, irqs.1),
        state(
            Technique::Cpuset,
            "/sys/fs/cgroup",
            groups
                .and_then(|_| Setting::Shield.read(host).ok())
                .map(|cpus| format!("CPUs kept free: {cpus}")),
            groups.map_or(nothing("the host has no control groups with the cpuset controller"), |groups| {
                file(host, &groups.control())
            }),
        ),
        state(Technique::Tuned, "tuned-adm and /etc/tuned", Setting::Tuned.read(host).ok(), tuned(host)),
    ]
}

fn nothing(why: &str) -> Can {
    Can::Nothing(why.to_owned())
}

/// Whether a file may be written.
fn file(host: &Host, path: &str) -> Can {
    match host.refuses(path) {
        None => Can::Apply,
        Some(error) if error.kind() == io::ErrorKind::NotFound => nothing(&format!("there is no /{path}")),
        Some(error) => Can::NotPermitted(refused(&format!("write /{path}"), &error, ROOT).1),
    }
}

fn governors(host: &Host) -> (Option<String>, Can) {
    let settings: Vec<_> = scaled(host).into_iter().map(|cpu| Setting::Governor { cpu }).collect();
    all(host, &settings, "the kernel does not scale clock rates (no cpufreq)")
}

fn interrupts(host: &Host) -> (Option<String>, Can) {
    let settings: Vec<_> = numbers(host).into_iter().map(|irq| Setting::IrqAffinity { irq }).collect();
    all(host, &settings, "no interrupt can be moved to other CPUs")
}

/// Returns the values of several settings of one kind, and whether the first may be changed.
fn all(host: &Host, settings: &[Setting], none: &str) -> (Option<String>, Can) {
    let now = distinct(settings.iter().filter_map(|setting| setting.read(host).ok()));
    (now, settings.first().map_or(nothing(none), |first| file(host, &first.path())))
}

fn memory(host: &Host) -> Can {
    let is_unlimited = limit(host, "Max locked memory").is_some_and(|hard| hard == "unlimited");
    if is_unlimited || has_capability(host, CAP_IPC_LOCK) {
        return Can::Apply;
    }
    Can::NotPermitted(
        "locked memory is limited: raise the limit with ulimit -l unlimited (memlock in limits.conf) or run with \
         CAP_IPC_LOCK"
            .to_owned(),
    )
}

fn numa(host: &Host, device: Option<&str>) -> Can {
    if host.root().numbered("sys/devices/system/node", "node").len() < 2 {
        return nothing("the host has one NUMA node");
    }
    let Some(device) = device else { return Can::Apply };
    let node = host.line(&format!("sys/class/infiniband/{device}/device/numa_node"));
    match node.ok().and_then(|node| node.parse::<u32>().ok()) {
        Some(node) if node < own::NUMA_NODES => Can::Apply,
        Some(node) => nothing(&own::beyond_numa_nodes(device, node)),
        None => nothing(&format!("{device} is attached to no NUMA node")),
    }
}

fn scheduler(host: &Host) -> Can {
    let has_limit = limit(host, "Max realtime priority").is_some_and(|hard| hard != "0");
    if !has_limit && !has_capability(host, CAP_SYS_NICE) {
        return Can::NotPermitted(
            "a real-time class needs CAP_SYS_NICE, or ulimit -r 99 (rtprio in limits.conf)".to_owned(),
        );
    }
    match own::is_throttled(host) {
        true => Can::Apply,
        false => nothing(
            "kernel.sched_rt_runtime_us is not below sched_rt_period_us: a rank that never sleeps would hang its CPU",
        ),
    }
}

/// The scheduling class of this process.
fn class() -> Option<String> {
    own::scheduler().ok().map(own::in_words)
}

fn tuned(host: &Host) -> Can {
    if !TUNED.iter().any(|path| host.at(path).exists()) {
        return nothing("tuned is not installed (apt-get install tuned)");
    }
    let is_root = host.status("self", "Uid").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"));
    match is_root {
        true if !host.is_running(setting::TUNED) => nothing(setting::NO_TUNED),
        true => Can::Apply,
        false => Can::NotPermitted("only root can select a tuned profile: run as root".to_owned()),
    }
}

/// Returns a hard limit of the process (proc_pid_limits(5)): `Max realtime priority  0  0`.
fn limit(host: &Host, name: &str) -> Option<String> {
    let limits = host.root().text("proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}

/// capabilities(7).
const CAP_SYS_NICE: u32 = 23;
const TUNED: [&str; 3] = ["usr/sbin/tuned-adm", "usr/bin/tuned-adm", "sbin/tuned-adm"];
