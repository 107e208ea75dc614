//! Memory that must be locked.

use verbs::DeviceKind;

use crate::doctor::facts::{Facts, LockedMemory};
use crate::doctor::finding::{Finding, Severity};

/// Memory that a rank locks for a point of `bw` without flags: two buffers of 64 KiB and the queues
/// of an adapter (128 sends, 512 receives and their completions), and as much again, 1 MiB, for
/// samples.
const POINT_BYTES: u64 = 2 << 20;
/// Memory for the largest messages of `-a`, two buffers of 8 MiB, and for the most samples that a
/// point keeps, 32 MiB.
const LARGE_POINT_BYTES: u64 = 64 << 20;

/// Reports whether a device has the resources for a point. perftest's error for this is "Couldn't
/// allocate MR".
pub(in crate::doctor) fn registration(facts: &Facts) -> Vec<Finding> {
    // A device that cannot be opened was not tried.
    let Some(device) = facts.target().filter(|device| device.error.is_none()) else { return Vec::new() };
    let looked_at = "a trial: a queue pair, its queues and two buffers of 64 KiB";
    let Some(refusal) = &facts.refusal else {
        let found = format!("{} has the resources for a point", device.name);
        return vec![Finding::good("registration", looked_at, found)];
    };
    let finding = Finding::good("registration", looked_at, refusal.error.clone());
    let finding = finding.but(Severity::Problem, "a point with the default settings cannot be set up");
    let remedy = facts.locked_memory.map(|limit| raise(facts, limit)).filter(|_| refusal.is_memory);
    vec![match remedy {
        Some(remedy) => finding.mended_by(remedy),
        None => finding,
    }]
}

/// Reports a setting that keeps programs on the software device from memory of each other.
pub(in crate::doctor) fn other_processes(facts: &Facts) -> Vec<Finding> {
    // Below 2 a process can allow it, which those on the software device do.
    let Some(scope) = facts.ptrace_scope.filter(|scope| *scope >= 2) else { return Vec::new() };
    let looked_at = "kernel.yama.ptrace_scope";
    let finding = Finding::good("other processes", looked_at, format!("{looked_at} is {scope}"));
    let why = "programs of `rdmascope exec` cannot reach memory that another one has allocated: their RDMA Reads, \
               RDMA Writes and Sends above 8320 B end with an error";
    let finding = finding.but(Severity::Note, why);
    vec![match scope {
        2 => finding.mended_by(facts.as_root("sysctl -w kernel.yama.ptrace_scope=1")),
        // Linux takes no smaller number once it is 3.
        _ => finding,
    }]
}

/// Reports a limit of locked memory that is too small.
pub(in crate::doctor) fn locked_memory(facts: &Facts) -> Vec<Finding> {
    let Some(limit) = facts.locked_memory else { return Vec::new() };
    let finding =
        |text: String| Finding::good("locked memory", "Max locked memory in /proc/self/limits", text);
    if limit.is_exempt {
        return vec![finding("this process may lock any amount (CAP_IPC_LOCK)".to_owned())];
    }
    let finding = finding(format!(
        "the limit of locked memory is {}, and may be raised to {}",
        shown(limit.soft),
        shown(limit.hard)
    ));
    let is_pinned = facts.target().is_some_and(|device| device.kind != DeviceKind::UserSoftware);
    let soft = limit.soft.unwrap_or(u64::MAX);
    if soft >= LARGE_POINT_BYTES {
        return vec![finding];
    }
    let (severity, why) = match (is_pinned, soft < POINT_BYTES) {
        (true, true) => (Severity::Warning, "devices register only locked memory: each rank needs 2 MiB"),
        (true, false) => (
            Severity::Warning,
            "the largest messages (-a) and long lists of samples need 64 MiB for each rank",
        ),
        (false, true) => {
            (Severity::Warning, "samples cannot be locked: page faults become part of latencies")
        }
        (false, false) => {
            (Severity::Note, "long lists of samples, up to 32 MiB for each rank, cannot be locked")
        }
    };
    vec![finding.but(severity, why).mended_by(raise(facts, limit))]
}

/// Returns the command that raises the limit: at once if that is allowed, else for the next login.
fn raise(facts: &Facts, limit: LockedMemory) -> String {
    if limit.hard.is_none() {
        return "ulimit -l unlimited".to_owned();
    }
    let file = facts.as_root("tee /etc/security/limits.d/90-rdma.conf");
    format!("echo '* - memlock unlimited' | {file}   # then log in again")
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or("unlimited".to_owned(), |bytes| format!("{} KiB", bytes / 1024))
}
