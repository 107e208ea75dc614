//! Techniques of this process. They end with it at the latest, however it is killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use measure::conditions::{Outcome, Scheduler, Technique, Wanted};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CpuSet;

use crate::cpus;
use crate::host::Host;
use crate::place::Place;
use crate::refusal::{Found, Refusal, refused};
use crate::rights::{CAP_IPC_LOCK, ROOT, has_capability};

/// The techniques of this process that are in force. Dropping this reverts them.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// `/dev/cpu_dma_latency`: the request holds while this file is open.
    latency: Option<File>,
    /// The memory lock limit before memory was locked.
    locked: Option<Rlimit>,
    /// The memory policy before memory was bound.
    bound: Option<Policy>,
    /// Scheduling class and priority before the change.
    scheduler: Option<(libc::c_int, libc::c_int)>,
}

impl Own {
    /// Applies a technique of this process. Host-wide techniques are ignored.
    pub(crate) fn apply(
        &mut self,
        host: &Host,
        technique: Technique,
        wanted: &Wanted,
        place: &Place,
    ) -> Result<Found, Refusal> {
        match (technique, wanted.cpu_dma_latency_us, wanted.scheduler) {
            (Technique::CpuDmaLatency, Some(us), _) => self.hold_latency(host, us),
            (Technique::Memory, ..) => self.lock_memory(host),
            (Technique::Numa, ..) => self.bind_memory(host, place),
            (Technique::Scheduler, _, Some(class)) => self.schedule(host, class, place),
            _ => Ok(Found::default()),
        }
    }

    fn hold_latency(&mut self, host: &Host, us: i32) -> Result<Found, Refusal> {
        let hold = || -> io::Result<File> {
            let mut file = OpenOptions::new().write(true).open(host.at(LATENCY))?;
            // Documentation/power/pm_qos_interface.rst: 4 bytes in native byte order.
            file.write_all(&us.to_ne_bytes())?;
            Ok(file)
        };
        match hold() {
            Ok(file) => self.latency = Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err((Outcome::NotApplied, format!("this kernel has no /{LATENCY}")));
            }
            Err(error) => return Err(refused(&format!("write /{LATENCY}"), &error, ROOT)),
        }
        // The value before is unknown: the kernel shows the smallest of all requests, which may be
        // another rank's.
        Ok(Found::default())
    }

    fn lock_memory(&mut self, host: &Host) -> Result<Found, Refusal> {
        let before = getrlimit(Resource::Memlock);
        let unlimited = Rlimit { current: None, maximum: None };
        // With a limit, allocations in the middle of a point would fail.
        let raised = setrlimit(Resource::Memlock, unlimited).is_ok()
            || setrlimit(Resource::Memlock, Rlimit { current: before.maximum, maximum: before.maximum })
                .is_ok();
        let is_unlimited = raised && getrlimit(Resource::Memlock).current.is_none();
        if !is_unlimited && !has_capability(host, CAP_IPC_LOCK) {
            let limit =
                before.maximum.map_or("unlimited".to_owned(), |bytes| format!("{} KiB", bytes / 1024));
            let _ = setrlimit(Resource::Memlock, before);
            let why = format!(
                "the limit of locked memory is {limit}: raise it with ulimit -l unlimited (LimitMEMLOCK= of a systemd \
                 unit, memlock in limits.conf) or run with CAP_IPC_LOCK"
            );
            return Err((Outcome::NotPermitted, why));
        }
        // MCL_ONFAULT locks pages when they are first touched; samples and buffers are touched
        // before they count. Without it, all of a sparse mapping would be filled, and softdev's
        // arenas map far more than the memory of the host.
        let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
        // SAFETY: mlockall takes flags and changes neither the content nor the validity of any
        // memory.
        if unsafe { libc::mlockall(flags) } != 0 {
            let error = io::Error::last_os_error();
            let _ = setrlimit(Resource::Memlock, before);
            return Err(refused("lock memory", &error, "run with CAP_IPC_LOCK"));
        }
        self.locked = Some(before);
        Ok(Found { before: Some("not locked".to_owned()), reason: None })
    }

    fn bind_memory(&mut self, host: &Host, place: &Place) -> Result<Found, Refusal> {
        let nothing = |why: String| Err((Outcome::NotApplied, why));
        let nodes = host.root().numbered("sys/devices/system/node", "node").len();
        if nodes < 2 {
            return nothing("the host has one NUMA node".to_owned());
        }
        let Some(device) = &place.device else { return nothing("no RDMA device is named".to_owned()) };
        let node = host.line(&format!("sys/class/infiniband/{device}/device/numa_node"));
        let Some(node) = node.ok().and_then(|node| node.parse::<u32>().ok()) else {
            return nothing(format!("{device} is attached to no NUMA node"));
        };
        let mask = 1_u64.checked_shl(node).unwrap_or_default();
        if mask == 0 {
            return nothing(beyond_numa_nodes(device, node));
        }
        let refuse = |error: io::Error| {
            refused(
                &format!("bind memory to NUMA node {node}"),
                &error,
                "add the node to cpuset.mems of its cpuset",
            )
        };
        let before = policy().map_err(refuse)?;
        let mut nodes = [0; NODES_MAX / 64];
        nodes[0] = mask;
        set_policy(&Policy { mode: libc::MPOL_BIND, nodes }).map_err(refuse)?;
        let was = match before.mode {
            libc::MPOL_DEFAULT => "the node of the CPU".to_owned(),
            mode => format!("memory policy {mode} (set_mempolicy(2)), as set by numactl"),
        };
        self.bound = Some(before);
        Ok(Found { before: Some(was), reason: Some(format!("node {node}")) })
    }

    fn schedule(&mut self, host: &Host, class: Scheduler, place: &Place) -> Result<Found, Refusal> {
        let (policy, priority) = match class {
            Scheduler::Other => (libc::SCHED_OTHER, 0),
            Scheduler::Fifo(priority) => (libc::SCHED_FIFO, priority.into()),
            Scheduler::RoundRobin(priority) => (libc::SCHED_RR, priority.into()),
        };
        if class != Scheduler::Other {
            harmless(host, place)?;
        }
        let before = scheduler().ok();
        // Threads that this thread starts do not inherit the class.
        set_scheduler(policy | libc::SCHED_RESET_ON_FORK, priority).map_err(|error| {
            let remedy = "run with CAP_SYS_NICE or raise the limit with ulimit -r 99 (LimitRTPRIO= of a systemd unit, \
                          rtprio in limits.conf); as root, set cpu.rt_runtime_us of its control group";
            refused(&format!("set the scheduling class {class}"), &error, remedy)
        })?;
        self.scheduler = before;
        let reason = (class != Scheduler::Other).then(|| throttle(host)).flatten();
        Ok(Found { before: before.map(in_words), reason })
    }
}

impl Own {
    /// Reverts everything. Returns what could not be reverted, and why; it ends with the process.
    pub(crate) fn take_back(&mut self) -> Option<String> {
        let mut said = None;
        // First, so that the rest does not run in a real-time class.
        if let Some((policy, priority)) = self.scheduler.take() {
            // Without CAP_SYS_NICE, the flag cannot be cleared once it is set (sched(7)).
            let restored = set_scheduler(policy, priority)
                .or_else(|_| set_scheduler(policy | libc::SCHED_RESET_ON_FORK, priority));
            said = restored.err().map(|error| {
                let class = in_words((policy, priority));
                format!("the scheduling class could not be set back to {class}: {error}")
            });
        }
        if let Some(policy) = self.bound.take()
            && let Err(error) = set_policy(&policy)
        {
            said.get_or_insert(format!("the memory policy could not be set back: {error}"));
        }
        if let Some(limit) = self.locked.take() {
            // SAFETY: munlockall has no arguments and changes neither the content nor the validity
            // of any memory.
            unsafe { libc::munlockall() };
            let _ = setrlimit(Resource::Memlock, limit);
        }
        self.latency = None;
        said
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // A caller that needs the result has called `take_back` before.
        let _ = self.take_back();
    }
}

/// Refuses a real-time class that would take a CPU from other processes: a real-time task that
/// never sleeps keeps its CPU.
fn harmless(host: &Host, place: &Place) -> Result<(), Refusal> {
    let nothing = |why: &str| Err((Outcome::NotApplied, why.to_owned()));
    let Some([own]) = place.pinned.as_deref() else {
        return nothing(
            "the rank is not pinned to one CPU, and could block other processes: pin it with --cpus A,B",
        );
    };
    if affinity().ok().as_deref() != Some(&[*own]) {
        return nothing("the rank is not on its CPU any more, and could block other processes");
    }
    if place.ranks.iter().filter(|cpu| *cpu == own).count() > 1 {
        return nothing(
            "both ranks have the same CPU: the rank that waits would keep the other from running",
        );
    }
    if !is_throttled(host) {
        return nothing(
            "the kernel does not limit real-time tasks, so a rank that polls would hang its CPU: set \
             kernel.sched_rt_runtime_us to 950000",
        );
    }
    Ok(())
}

/// Whether real-time tasks leave a share of each period to other tasks
/// (Documentation/scheduler/sched-rt-group.rst).
pub(crate) fn is_throttled(host: &Host) -> bool {
    left_to_others(host).is_some()
}

/// Describes how long the kernel stops a real-time task that never sleeps.
fn throttle(host: &Host) -> Option<String> {
    let (others_us, period_us) = left_to_others(host)?;
    let [others, period] = [others_us, period_us].map(|us| us as f64 / 1e3);
    Some(format!(
        "the kernel stops a rank that never sleeps for {others} ms of each {period} ms (kernel.sched_rt_runtime_us)"
    ))
}

/// Returns the time of each period that real-time tasks leave to others, and the period, in us.
fn left_to_others(host: &Host) -> Option<(i64, i64)> {
    let value =
        |name: &str| host.line(&format!("proc/sys/kernel/sched_rt_{name}_us")).ok()?.parse::<i64>().ok();
    let runtime = value("runtime")?;
    let period = value("period")?;
    // -1 means no limit.
    (0..period).contains(&runtime).then(|| (period - runtime, period))
}

/// The request to `/dev/cpu_dma_latency` that is in force.
pub(crate) fn latency(host: &Host) -> Option<String> {
    let bytes = host.root().bytes(LATENCY).ok()?;
    Some(match i32::from_ne_bytes(bytes.try_into().ok()?) {
        NO_REQUEST_US => "no request".to_owned(),
        us => format!("{us} us"),
    })
}

/// The scheduling class and priority of this thread.
pub(crate) fn scheduler() -> io::Result<(libc::c_int, libc::c_int)> {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread; the kernel writes a sched_param into `parameters`.
    let policy = unsafe { libc::sched_getscheduler(0) };
    // SAFETY: as above.
    if policy < 0 || unsafe { libc::sched_getparam(0, &raw mut parameters) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((policy, parameters.sched_priority))
}

/// Formats a class and its priority, in the syntax of plans where a plan can name the class.
pub(crate) fn in_words((policy, priority): (libc::c_int, libc::c_int)) -> String {
    match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => "other".to_owned(),
        libc::SCHED_FIFO => format!("fifo:{priority}"),
        libc::SCHED_RR => format!("rr:{priority}"),
        libc::SCHED_BATCH => "batch".to_owned(),
        libc::SCHED_IDLE => "idle".to_owned(),
        other => format!("class {other}"),
    }
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is the calling thread; the kernel reads the sched_param `parameters`.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A memory policy: a mode with its flags, and one bit for each node.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Policy {
    mode: libc::c_int,
    nodes: [u64; NODES_MAX / 64],
}

/// The memory policy of this thread.
fn policy() -> io::Result<Policy> {
    let mut policy = Policy { mode: 0, nodes: [0; NODES_MAX / 64] };
    let nowhere = std::ptr::null::<libc::c_void>();
    let mode = &raw mut policy.mode;
    let nodes = policy.nodes.as_mut_ptr();
    // SAFETY: the kernel writes an int and `NODES_MAX` bits into `policy`, which has room for them.
    match unsafe { libc::syscall(libc::SYS_get_mempolicy, mode, nodes, MASK_BITS, nowhere, 0) } {
        0.. => Ok(policy),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_policy(policy: &Policy) -> io::Result<()> {
    let Policy { mode, nodes } = policy;
    // SAFETY: the kernel reads `NODES_MAX` bits of `nodes`. The policy applies to future
    // allocations.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, *mode, nodes.as_ptr(), MASK_BITS) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The CPUs that this thread may run on.
fn affinity() -> io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0u32..).take(CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu as usize)).collect())
}

/// Pins this thread to CPUs, or puts it back on them: a change of its control group, or of one
/// above it, may have moved it.
///
/// # Errors
///
/// If there are no such CPUs, or the kernel refuses them, for example because another control group
/// has them.
pub fn pin(pinned: &[u32]) -> io::Result<()> {
    if affinity().is_ok_and(|affinity| affinity == pinned) {
        return Ok(());
    }
    let refused = |kind, why: String| io::Error::new(kind, format!("CPUs {}: {why}", cpus::text(pinned)));
    if pinned.iter().any(|cpu| *cpu as usize >= CpuSet::MAX_CPU) {
        return Err(refused(io::ErrorKind::InvalidInput, format!("there are at most {}", CpuSet::MAX_CPU)));
    }
    let mut set = CpuSet::new();
    pinned.iter().for_each(|cpu| set.set(*cpu as usize));
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| refused(io::Error::from(error).kind(), error.to_string()))
}

/// A set of every possible CPU. The kernel ignores CPUs of a set that the thread must not use.
pub fn every_cpu() -> CpuSet {
    let mut every = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| every.set(cpu));
    every
}

pub(crate) const LATENCY: &str = "dev/cpu_dma_latency";
/// The most nodes that a kernel supports (CONFIG_NODES_SHIFT is 10 at most).
const NODES_MAX: usize = 1024;
/// set_mempolicy(2): the kernel uses one bit less than this number.
const MASK_BITS: libc::c_ulong = 1025;
/// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`.
const NO_REQUEST_US: i32 = 2_000_000_000;

/// NUMA nodes that memory can be bound to: one bit of a word each.
pub(crate) const NUMA_NODES: u32 = u64::BITS;

/// Why memory cannot be bound to the node of a device.
pub(crate) fn beyond_numa_nodes(device: &str, node: u32) -> String {
    format!(
        "{device} is on NUMA node {node}; rdmascope can bind memory to nodes 0 to {} only",
        NUMA_NODES - 1
    )
}

#[cfg(test)]
mod tests;
