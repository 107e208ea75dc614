//! The facts that the checks examine. Most come from a file tree, so that tests can make up a host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use conditions::{Host, State};
use measure::clock::{Clock, StampCost};
use measure::environment::Root;
use measure::record::Environment;
use rustix::fs::{Access, access};

use super::trial::Refusal;
use crate::devices::{Device, Survey};
use crate::placing::Placing;

/// The facts about a host.
#[derive(Debug)]
pub(super) struct Facts {
    /// The environment, as the record of a run would have it.
    pub(super) environment: Environment,
    pub(super) survey: Survey,
    /// The device that the user named.
    pub(super) named: Option<String>,
    pub(super) is_root: bool,
    pub(super) locked_memory: Option<LockedMemory>,
    /// Why the device does not have the resources for a point.
    pub(super) refusal: Option<Refusal>,
    /// Why the system's libibverbs cannot be used.
    pub(super) no_libibverbs: Option<String>,
    pub(super) has_librdmacm: bool,
    /// `kernel.yama.ptrace_scope`, unless this process is exempt: how far processes of one user are
    /// kept from memory of each other (Documentation/admin-guide/LSM/Yama.rst of Linux).
    pub(super) ptrace_scope: Option<u8>,
    /// Whether the kernel offers verbs to programs.
    pub(super) has_uverbs: bool,
    /// The RDMA devices of the kernel.
    pub(super) kernel_devices: Vec<String>,
    /// The device nodes of verbs.
    pub(super) uverbs: Vec<Node>,
    pub(super) rdma_cm: Option<Node>,
    pub(super) adapters: Vec<Adapter>,
    pub(super) cpus: Cpus,
    pub(super) clock: ClockFacts,
    /// The core-to-core latency of the ranks' CPUs, or why it could not be measured; `None` if
    /// there is only one CPU.
    pub(super) core_to_core: Option<Result<CoreToCore, String>>,
    pub(super) firewall: Firewall,
    /// The state of each technique of an environment.
    pub(super) techniques: Vec<State>,
    /// Changes of runs that were not reverted.
    pub(super) left_behind: Vec<String>,
}

/// Limit of locked memory (getrlimit(2)), in bytes; `None` for no limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LockedMemory {
    pub(super) soft: Option<u64>,
    pub(super) hard: Option<u64>,
    /// Whether the limit does not apply (CAP_IPC_LOCK in the initial user namespace).
    pub(super) is_exempt: bool,
}

/// A device node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Node {
    pub(super) path: String,
    /// Whether this process may read and write it.
    pub(super) is_usable: bool,
}

/// A network interface whose adapter may do RDMA, but has no RDMA device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Adapter {
    pub(super) interface: String,
    pub(super) driver: String,
    /// The kernel module that would make an RDMA device of it.
    pub(super) module: &'static str,
}

/// Processors.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Cpus {
    /// CPUs that this process may use.
    pub(super) allowed: Vec<u32>,
    pub(super) isolated: Vec<u32>,
    /// CPU time that the control group allows, in percent of one CPU.
    pub(super) quota_percent: Option<u64>,
    /// Threads of the core of each allowed CPU.
    pub(super) siblings: BTreeMap<u32, Vec<u32>>,
    /// CPUs of each NUMA node.
    pub(super) nodes: BTreeMap<u32, Vec<u32>>,
    /// Time to leave the deepest enabled idle state, in us, and its name.
    pub(super) deepest_idle: Option<(u64, String)>,
}

/// The clock that would time messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ClockFacts {
    pub(super) name: &'static str,
    pub(super) stamp_ns: u64,
    pub(super) why_not_tsc: Option<&'static str>,
}

/// The core-to-core latency of the ranks' CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CoreToCore {
    pub(super) ns: f64,
    /// The best one known of these CPUs, which may be this one.
    pub(super) best_ns: f64,
}

/// The rules of the kernel's packet filter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Firewall {
    /// The rules cannot be read, for this reason.
    Unknown(&'static str),
    /// As `nft list ruleset` or `iptables-save` print them.
    Rules(String),
}

impl Facts {
    /// Returns the facts of this host.
    ///
    /// For tests, `host`, whose environment is examined, may be another one.
    pub(super) fn here(survey: Survey, named: Option<String>, host: &Host) -> Self {
        let mut facts = Self::read(Path::new("/"), survey, named);
        (facts.techniques, facts.left_behind) = facts.arranged(host);
        let clock = Clock::calibrate();
        facts.no_libibverbs = verbs::system::provider().err().map(ToString::to_string);
        facts.clock = ClockFacts {
            name: clock.name(),
            stamp_ns: StampCost::measure(&clock).stamp_ns.round() as u64,
            why_not_tsc: Clock::why_not_tsc(),
        };
        facts.core_to_core = facts.core_to_core();
        facts.firewall = firewall(facts.is_root);
        facts
    }

    /// Reads the facts of a host from a file tree.
    pub(super) fn read(path: &Path, survey: Survey, named: Option<String>) -> Self {
        let root = Root::new(path);
        let status = root.text("proc/self/status").unwrap_or_default();
        let mut facts = Self {
            environment: Environment::read(path, 0, None),
            survey,
            named,
            is_root: field(&status, "Uid").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0")),
            locked_memory: locked_memory(&root, &status),
            refusal: None,
            no_libibverbs: None,
            has_librdmacm: LIBRARIES.iter().any(|place| root.path(place).join("librdmacm.so.1").exists()),
            ptrace_scope: ptrace_scope(&root, &status),
            has_uverbs: root.path("sys/class/infiniband_verbs").is_dir(),
            kernel_devices: root.names("sys/class/infiniband"),
            uverbs: root
                .numbered(INFINIBAND, "uverbs")
                .iter()
                .map(|name| node(&root, &format!("{INFINIBAND}/{name}")))
                .collect(),
            rdma_cm: root
                .names(INFINIBAND)
                .iter()
                .any(|name| name == "rdma_cm")
                .then(|| node(&root, RDMA_CM)),
            adapters: adapters(&root),
            cpus: Cpus::read(&root, &status),
            clock: ClockFacts { name: "tsc", stamp_ns: 0, why_not_tsc: None },
            core_to_core: None,
            firewall: Firewall::Unknown("only root may read the rules"),
            techniques: Vec::new(),
            left_behind: Vec::new(),
        };
        (facts.techniques, facts.left_behind) = facts.arranged(&Host::new(path));
        facts
    }

    /// Returns the techniques for the device that would be measured, and changes of runs that were
    /// not reverted.
    fn arranged(&self, host: &Host) -> (Vec<State>, Vec<String>) {
        let device = self.target().map(|device| device.name.as_str());
        (conditions::survey(host, device), conditions::left_behind(host))
    }

    /// Returns the device that would be measured.
    pub(super) fn target(&self) -> Option<&Device> {
        self.survey.devices.iter().find(|device| match &self.named {
            Some(name) => device.name == *name,
            None => device.is_default,
        })
    }

    /// Returns the devices to examine: the named one, or all.
    pub(super) fn devices(&self) -> impl Iterator<Item = &Device> {
        let is_wanted = |device: &&Device| self.named.as_ref().is_none_or(|name| device.name == *name);
        self.survey.devices.iter().filter(is_wanted)
    }

    pub(super) fn is_target(&self, device: &Device) -> bool {
        self.target().is_some_and(|target| target.name == device.name)
    }

    /// Returns a fact of the environment, as a run's record would have it.
    pub(super) fn environment(&self, group: &str, name: &str) -> Option<&str> {
        self.environment.facts.get(group)?.get(name).map(String::as_str)
    }

    /// Returns a command that needs root, as this user has to type it.
    pub(super) fn as_root(&self, command: &str) -> String {
        if self.is_root { command.to_owned() } else { format!("sudo {command}") }
    }

    /// Measures the core-to-core latency of the ranks' CPUs as they are now.
    fn core_to_core(&self) -> Option<Result<CoreToCore, String>> {
        let &[one, other] = self.rank_cpus() else { return None };
        let compared = |ns: f64| {
            let environments = [one, other].map(|cpu| Environment::capture(0, Some(vec![cpu])));
            CoreToCore { ns, best_ns: Placing::best_of(&environments, ns).unwrap_or(ns) }
        };
        Some(bench::core_to_core([one, other]).map(compared).map_err(|error| error.to_string()))
    }

    /// Returns the CPUs that `run` would give to two ranks on this host.
    pub(super) fn rank_cpus(&self) -> &[u32] {
        &self.cpus.allowed[..self.cpus.allowed.len().min(2)]
    }
}

const INFINIBAND: &str = "dev/infiniband";
const RDMA_CM: &str = "dev/infiniband/rdma_cm";

/// Directories that the dynamic linker searches, on Debian and elsewhere.
const LIBRARIES: [&str; 6] = [
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "lib64",
    "usr/local/lib",
];

/// Drivers of network interfaces, and the modules that make RDMA devices of their adapters
/// (drivers/infiniband/hw).
const SIBLINGS: [(&str, &str); 10] = [
    ("bnxt_en", "bnxt_re"),
    ("cxgb4", "iw_cxgb4"),
    ("hns3", "hns-roce-hw-v2"),
    ("i40e", "irdma"),
    ("ice", "irdma"),
    ("ionic", "ionic_rdma"),
    ("mana", "mana_ib"),
    ("mlx4_core", "mlx4_ib"),
    ("mlx5_core", "mlx5_ib"),
    ("qede", "qedr"),
];

fn node(root: &Root, path: &str) -> Node {
    let is_usable = access(root.path(path), Access::READ_OK | Access::WRITE_OK).is_ok();
    Node { path: format!("/{path}"), is_usable }
}

/// Reads a line such as `Max locked memory  8388608  unlimited  bytes` (proc_pid_limits(5)).
fn locked_memory(root: &Root, status: &str) -> Option<LockedMemory> {
    let limits = root.text("proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    let mut words = line.split_whitespace();
    let mut limit = || match words.next()? {
        "unlimited" => Some(None),
        bytes => bytes.parse().ok().map(Some),
    };
    let soft = limit()?;
    let hard = limit()?;
    Some(LockedMemory { soft, hard, is_exempt: is_exempt(root, status) })
}

/// Whether the process may lock any amount of memory. Outside of the initial user namespace, the
/// capability has no effect.
fn is_exempt(root: &Root, status: &str) -> bool {
    /// The capability's number (capabilities(7)).
    const CAP_IPC_LOCK: u64 = 14;
    let effective = field(status, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok());
    let has_capability = effective.is_some_and(|bits| bits & (1 << CAP_IPC_LOCK) != 0);
    // In the initial namespace, all users are mapped to themselves.
    let map = root.line("proc/self/uid_map").unwrap_or_default();
    has_capability && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Returns the restriction of Yama, unless this process is exempt from it.
fn ptrace_scope(root: &Root, status: &str) -> Option<u8> {
    /// Number of the capability (capabilities(7)).
    const CAP_SYS_PTRACE: u32 = 19;
    let scope = root.line("proc/sys/kernel/yama/ptrace_scope")?.trim().parse().ok()?;
    let effective = field(status, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok());
    let is_exempt = scope < 3 && effective.is_some_and(|bits| bits & (1 << CAP_SYS_PTRACE) != 0);
    (!is_exempt).then_some(scope)
}

/// Returns interfaces whose driver has a companion module for RDMA, but whose adapter has no RDMA
/// device.
fn adapters(root: &Root) -> Vec<Adapter> {
    let interfaces = root.names("sys/class/net").into_iter();
    let found = interfaces.filter_map(|interface| {
        let device = root.path(&format!("sys/class/net/{interface}/device"));
        let driver = fs::read_link(device.join("driver")).ok()?;
        let driver = driver.file_name()?.to_str()?.to_owned();
        let (_, module) = SIBLINGS.iter().find(|(name, _)| *name == driver)?;
        (!device.join("infiniband").exists()).then_some(Adapter { interface, driver, module })
    });
    found.collect()
}

impl Cpus {
    fn read(root: &Root, status: &str) -> Self {
        const CPUS: &str = "sys/devices/system/cpu";
        const NODES: &str = "sys/devices/system/node";
        let allowed = list(field(status, "Cpus_allowed_list").unwrap_or_default());
        let siblings = allowed.iter().map(|cpu| {
            let threads = root.line(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"));
            (*cpu, list(&threads.unwrap_or_default()))
        });
        let nodes = root.numbered(NODES, "node").into_iter().filter_map(|name| {
            let cpus = list(&root.line(&format!("{NODES}/{name}/cpulist"))?);
            Some((name.strip_prefix("node")?.parse().ok()?, cpus))
        });
        let idle = allowed.first().and_then(|cpu| deepest_idle(root, &format!("{CPUS}/cpu{cpu}/cpuidle")));
        Self {
            siblings: siblings.collect(),
            nodes: nodes.collect(),
            isolated: list(&root.line(&format!("{CPUS}/isolated")).unwrap_or_default()),
            quota_percent: quota_percent(root),
            deepest_idle: idle,
            allowed,
        }
    }

    /// Returns the NUMA node of a CPU.
    pub(super) fn node(&self, cpu: u32) -> Option<u32> {
        self.nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map(|(node, _)| *node)
    }

    pub(super) fn share_core(&self, a: u32, b: u32) -> bool {
        self.siblings.get(&a).is_some_and(|threads| threads.contains(&b))
    }

    /// Returns two CPUs for which `fits` is true, on two cores if possible.
    pub(super) fn pair(&self, fits: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
        let fitting: Vec<u32> = self.allowed.iter().copied().filter(|cpu| fits(*cpu)).collect();
        let first = *fitting.first()?;
        let other_core = fitting[1..].iter().find(|cpu| !self.share_core(first, **cpu));
        Some((first, *other_core.or(fitting.get(1))?))
    }
}

/// Returns the enabled idle state that takes longest to leave: the time in us, and its name.
fn deepest_idle(root: &Root, directory: &str) -> Option<(u64, String)> {
    let states = root.numbered(directory, "state").into_iter().filter_map(|state| {
        let read = |file: &str| root.line(&format!("{directory}/{state}/{file}"));
        let is_disabled = read("disable").is_some_and(|value| value != "0");
        Some((read("latency")?.parse().ok()?, read("name")?)).filter(|_| !is_disabled)
    });
    states.max()
}

/// Returns the CPU time that the control group allows, in percent of one CPU (cgroups(7);
/// Documentation/admin-guide/cgroup-v2.rst and Documentation/scheduler/sched-bwc.rst of Linux).
fn quota_percent(root: &Root) -> Option<u64> {
    let groups = root.text("proc/self/cgroup").unwrap_or_default();
    groups.lines().filter_map(|line| least_quota_percent(root, line)).min()
}

/// Returns the least quota of a group, a line `hierarchy:controllers:path` of cgroups(7), and of
/// those above it, which limit it, too. Limits above a namespace's root are not visible.
fn least_quota_percent(root: &Root, line: &str) -> Option<u64> {
    let (controllers, own) = line.split_once(':')?.1.split_once(':')?;
    let is_v2 = controllers.is_empty();
    if !is_v2 && !controllers.split(',').any(|controller| controller == "cpu") {
        return None;
    }
    let percent = |group: &Path| {
        // The directory of a hierarchy of version 1 has the names of its controllers.
        let directory = format!("sys/fs/cgroup/{controllers}{}", group.display());
        let read = |file: &str| root.line(&format!("{directory}/{file}"));
        let (quota, period) = if is_v2 {
            let limit = read("cpu.max")?;
            let (quota, period) = limit.split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        } else {
            (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)
        };
        // Without a quota, it is `max` or -1.
        quota.parse::<u64>().ok()?.saturating_mul(100).checked_div(period.parse().ok()?)
    };
    Path::new(own).ancestors().filter_map(percent).min()
}

/// Reads the packet filter's rules, if this user may.
fn firewall(is_root: bool) -> Firewall {
    if !is_root {
        return Firewall::Unknown("only root may read the rules");
    }
    let rules = |words: &[&str]| {
        // `timeout` of coreutils: a command that hangs must not block the doctor.
        let output = Command::new("timeout").arg("5").args(words).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let found = rules(&["nft", "list", "ruleset"]).or_else(|| rules(&["iptables-save"]));
    found.map_or(Firewall::Unknown("neither nft nor iptables-save can print the rules"), Firewall::Rules)
}

/// Returns the value of a `Name:\tvalue` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(key, _)| *key == name).map(|(_, value)| value.trim()).next()
}

/// Parses a list of numbers such as `0-3,8`; leaves out what cannot be parsed.
fn list(text: &str) -> Vec<u32> {
    let parts = text.split(',').filter_map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    let numbers: BTreeSet<u32> = parts.flatten().collect();
    numbers.into_iter().collect()
}
