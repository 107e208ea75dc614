//! Memory that must stay where it is.

use verbs::DeviceKind;

use crate::doctor::facts::{Facts, LockedMemory};
use crate::doctor::finding::{Finding, Severity};

/// What one end of a point of `bw` without flags locks, with as much again as it keeps ready for
/// samples: two buffers of 64 KiB, the queues of an adapter (128 sends, 512 receives and their
/// completions), 1 MiB of samples.
const POINT_BYTES: u64 = 2 << 20;
/// What the largest messages of `-a` need, two buffers of 8 MiB, and the most samples that a point
/// keeps, 32 MiB.
const LARGE_POINT_BYTES: u64 = 64 << 20;

/// Whether a device gives what a point needs. The field knows the answer as "Couldn't allocate MR".
pub(in crate::doctor) fn registration(facts: &Facts) -> Vec<Finding> {
    // What cannot be opened was not tried.
    let Some(device) = facts.target().filter(|device| device.error.is_none()) else { return Vec::new() };
    let looked_at = "a trial: a queue pair, its queues and two buffers of 64 KiB";
    let Some(refusal) = &facts.refusal else {
        let found = format!("{} gives what a point needs", device.name);
        return vec![Finding::good("registration", looked_at, found)];
    };
    let finding = Finding::good("registration", looked_at, refusal.error.clone());
    let finding = finding.but(Severity::Problem, "a point without flags cannot be set up");
    let remedy = facts.locked_memory.map(|limit| raise(facts, limit)).filter(|_| refusal.is_memory);
    vec![match remedy {
        Some(remedy) => finding.mended_by(remedy),
        None => finding,
    }]
}

/// The limit of locked memory.
pub(in crate::doctor) fn locked_memory(facts: &Facts) -> Vec<Finding> {
    let Some(limit) = facts.locked_memory else { return Vec::new() };
    let finding =
        |text: String| Finding::good("locked memory", "Max locked memory in /proc/self/limits", text);
    if limit.is_exempt {
        return vec![finding("this process may lock what it wants (CAP_IPC_LOCK)".to_owned())];
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
        (true, true) => {
            (Severity::Warning, "a device registers locked memory only: points need 2 MiB at each end")
        }
        (true, false) => {
            (Severity::Warning, "the largest messages (-a) and long lists of samples need 64 MiB at each end")
        }
        (false, true) => {
            (Severity::Warning, "samples cannot be locked: page faults become part of latencies")
        }
        (false, false) => {
            (Severity::Note, "long lists of samples, up to 32 MiB at each end, cannot be locked")
        }
    };
    vec![finding.but(severity, why).mended_by(raise(facts, limit))]
}

/// What raises the limit: at once where it may be, else for the next login.
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
