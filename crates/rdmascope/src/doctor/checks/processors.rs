//! Processors: the CPUs that the ranks get, their speed, and the clock.

use measure::placement::Far;

use crate::doctor::facts::{CoreToCore, Facts};
use crate::doctor::finding::{Finding, Severity};

/// Longest time to leave an idle state, in us, that does not show in the latency of a rank that
/// sleeps: a round trip on a good fabric.
const IDLE_MAX_US: u64 = 2;

/// Reports fewer CPUs than ranks.
pub(in crate::doctor) fn allowed(facts: &Facts) -> Vec<Finding> {
    let cpus = &facts.cpus.allowed;
    let mut findings = Vec::new();
    let looked_at = "Cpus_allowed_list in /proc/self/status";
    match cpus[..] {
        [] => return Vec::new(),
        [only] => {
            let why = "two ranks on this host share it: their latencies are scheduling delays, not times of the network";
            let finding = Finding::good("CPUs", looked_at, format!("this process may use CPU {only} only"));
            findings
                .push(finding.but(Severity::Warning, why).mended_by("taskset -c 0,1 rdmascope run quick"));
        }
        _ => findings.push(Finding::good(
            "CPUs",
            looked_at,
            format!("this process may use {} CPUs", cpus.len()),
        )),
    }
    if let Some(percent) = facts.cpus.quota_percent.filter(|percent| *percent < 200) {
        let found = format!("the control group allows {percent} % of one CPU");
        let why = "two ranks that poll need two whole CPUs: they are stopped for milliseconds when the quota is used up";
        let finding = Finding::good("CPUs", "cpu.max or cpu.cfs_quota_us of the control group", found);
        findings.push(
            finding.but(Severity::Warning, why).mended_by("docker run --cpus 4 ...   # or without --cpus"),
        );
    }
    findings
}

/// Reports ranks on two threads of one core, and isolated CPUs that the ranks would not use.
pub(in crate::doctor) fn cores(facts: &Facts) -> Vec<Finding> {
    let [a, b] = facts.rank_cpus() else { return Vec::new() };
    let a = *a;
    let b = *b;
    let cpus = &facts.cpus;
    let is_isolated = |cpu: u32| cpus.isolated.contains(&cpu);
    if let Some((c, d)) = cpus.pair(is_isolated).filter(|_| !is_isolated(a) && !is_isolated(b)) {
        let found = format!("the ranks would get CPUs {a} and {b}, although {c} and {d} are isolated");
        let why = "the scheduler runs nothing else on isolated CPUs";
        let finding = Finding::good("cores", "/sys/devices/system/cpu/isolated", found);
        return vec![finding.but(Severity::Note, why).mended_by(run_on((c, d)))];
    }
    let finding = |text: String| Finding::good("cores", "thread_siblings_list of the CPUs", text);
    if !cpus.share_core(a, b) {
        return vec![finding(format!("the ranks would get CPUs {a} and {b}, on two cores"))];
    }
    let why = "two ranks that poll on one core slow each other down";
    let shared = finding(format!("the ranks would get CPUs {a} and {b}, two threads of one core"));
    let shared = shared.but(Severity::Warning, why);
    let other = cpus.pair(|_| true).filter(|(c, d)| !cpus.share_core(*c, *d));
    vec![match other {
        Some(pair) => shared.mended_by(run_on(pair)),
        None => shared,
    }]
}

fn run_on((a, b): (u32, u32)) -> String {
    format!("rdmascope run quick --cpus {a},{b}")
}

/// Reports CPUs of the ranks that are farther from each other than they have been, or than two
/// cores of one processor are.
pub(in crate::doctor) fn distance(facts: &Facts) -> Vec<Finding> {
    let [a, b] = facts.rank_cpus() else { return Vec::new() };
    let finding = |found: String| {
        Finding::good("core-to-core latency", "a cache line that bounces between the CPUs", found)
    };
    let CoreToCore { ns, best_ns } = match &facts.core_to_core {
        Some(Ok(measured)) => *measured,
        Some(Err(reason)) => {
            let why = "ranks that poll need both CPUs for themselves: stop what runs there";
            let found = format!("it could not be measured between CPUs {a} and {b}: {reason}");
            return vec![finding(found).but(Severity::Warning, why)];
        }
        None => return Vec::new(),
    };
    let now = format!("{ns:.0} ns between CPUs {a} and {b}");
    if let Some(far) = Far::of(ns, best_ns) {
        let found = format!("{now}, {:.1} times the best seen on this host ({best_ns:.0} ns)", far.ratio());
        let why = "latencies between ranks of this host are several times too high, and their points are marked as unstable \
                   (!), as long as this lasts: measure again later";
        return vec![finding(found).but(Severity::Warning, why)];
    }
    let is_one_node = facts.cpus.node(*a) == facts.cpus.node(*b);
    if ns <= NEAR_MAX_NS || !is_one_node {
        return vec![finding(now)];
    }
    let why = "two cores of one processor take 24 to 50 ns: the CPUs are on two processors or are slow, and latencies between \
               ranks of this host are several times higher than they could be";
    vec![finding(now).but(Severity::Note, why)]
}

/// Core-to-core latency, in ns, up to which two CPUs may be on one processor
/// ([`measure::placement`]).
const NEAR_MAX_NS: f64 = 150.0;

/// Reports ranks on another NUMA node than the device.
pub(in crate::doctor) fn numa(facts: &Facts) -> Vec<Finding> {
    let Some((device, node)) = facts.target().and_then(|device| Some((device, device.numa_node?))) else {
        return Vec::new();
    };
    let cpus = &facts.cpus;
    let ranks = facts.rank_cpus();
    let far: Vec<_> = ranks.iter().filter(|cpu| cpus.node(**cpu).is_some_and(|at| at != node)).collect();
    let names = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ");
    let looked_at = "numa_node of the device and cpulist of the nodes";
    let name = &device.name;
    if far.is_empty() {
        let found = format!("{name} and CPUs {names} are on node {node}");
        return vec![Finding::good("NUMA", looked_at, found)];
    }
    let found = format!("{name} is on node {node}, the ranks would get CPUs {names}");
    let finding = Finding::good("NUMA", looked_at, found);
    let why = "every doorbell, completion and payload crosses the link between the sockets";
    let near = |cpu: u32| cpus.node(cpu) == Some(node);
    let remedy = match cpus.pair(near) {
        Some(pair) => run_on(pair),
        None => format!("numactl --cpunodebind={node} --membind={node} rdmascope run quick"),
    };
    vec![finding.but(Severity::Warning, why).mended_by(remedy)]
}

/// Reports a governor that lets the clock rate follow the load.
pub(in crate::doctor) fn governor(facts: &Facts) -> Vec<Finding> {
    let Some(governor) = facts.environment("power", "governor") else { return Vec::new() };
    let finding =
        Finding::good("governor", "scaling_governor of the CPUs", format!("the governor is {governor}"));
    if governor == "performance" {
        return vec![finding];
    }
    let why = "the first microseconds of each burst run at a lower clock rate, and numbers depend on what ran before";
    let file = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    vec![
        finding
            .but(Severity::Warning, why)
            .mended_by(format!("echo performance | {}", facts.as_root(&format!("tee {file}")))),
    ]
}

/// Reports idle states that take long to leave, unless a latency request prevents them.
pub(in crate::doctor) fn idle(facts: &Facts) -> Vec<Finding> {
    let Some((latency_us, name)) = &facts.cpus.deepest_idle else { return Vec::new() };
    let request = facts.environment("power", "cpu_dma_latency").unwrap_or("unknown");
    let found =
        format!("the deepest idle state, {name}, takes {latency_us} us to leave; latency request: {request}");
    let finding = Finding::good("idle states", "cpuidle of the CPUs and /dev/cpu_dma_latency", found);
    let held_us = request.strip_suffix(" us").and_then(|us| us.parse::<u64>().ok()).unwrap_or(u64::MAX);
    if (*latency_us).min(held_us) <= IDLE_MAX_US {
        return vec![finding];
    }
    let why = "a rank that sleeps for completions (-e) wakes up that much later; a rank that polls never sleeps: compare \
               the two";
    let remedy = facts.as_root(&format!("cpupower idle-set -D {IDLE_MAX_US}"));
    vec![finding.but(Severity::Note, why).mended_by(remedy)]
}

/// Reports irqbalance, which moves interrupts between CPUs.
pub(in crate::doctor) fn interrupts(facts: &Facts) -> Vec<Finding> {
    let Some(state) = facts.environment("isolation", "irqbalance") else { return Vec::new() };
    let finding = Finding::good("interrupts", "/proc/*/comm", format!("irqbalance is {state}"));
    if state != "running" {
        return vec![finding];
    }
    let why = "it may move the interrupts of adapters and disks to the CPUs of the ranks while they measure";
    vec![finding.but(Severity::Note, why).mended_by(facts.as_root("systemctl stop irqbalance"))]
}

/// Reports a virtual machine.
pub(in crate::doctor) fn guest(facts: &Facts) -> Vec<Finding> {
    let Some(hypervisor) = facts.environment("cpu", "hypervisor") else { return Vec::new() };
    // The processor may say that there is one, and no more.
    let of = if hypervisor == "yes" { String::new() } else { format!(" of {hypervisor}") };
    let finding =
        Finding::good("virtual machine", "/proc/cpuinfo", format!("this host is a virtual machine{of}"));
    let why = "the hypervisor moves and stops its CPUs: expect steps of latency and outliers that no setting of this host \
               removes";
    vec![finding.but(Severity::Note, why)]
}

/// Reports a clock that takes more than a few nanoseconds to read.
pub(in crate::doctor) fn clock(facts: &Facts) -> Vec<Finding> {
    let clock = facts.clock;
    let found = format!("messages are timed by {}, at {} ns for each stamp", clock.name, clock.stamp_ns);
    let finding = Finding::good("clock", "CPUID, the kernel's clock sources and a calibration", found);
    if clock.name == "tsc" {
        return vec![finding];
    }
    let reason = clock.why_not_tsc.unwrap_or("its rate could not be calibrated");
    let why = format!("the time stamp counter would cost less, but {reason}");
    let remedy = if facts.environment("cpu", "hypervisor").is_some() {
        "qemu-system-x86_64 -cpu host,+invtsc ...   # on the host, if its own counter is steady"
    } else {
        "dmesg | grep -i tsc"
    };
    vec![finding.but(Severity::Warning, why).mended_by(remedy)]
}
