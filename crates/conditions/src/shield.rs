//! CPUs reserved for the ranks (a shield, as in Potter 2018), by the version of control groups that
//! the host has (cgroups(7), cpuset(7), Documentation/admin-guide/cgroup-v2.rst).
//!
//! Version 2: the CPUs become a cpuset partition. The kernel removes them from all other groups,
//! and returns them when the partition is removed. The ranks' processes join the partition.
//!
//! Version 1: the tasks of the root cpuset move into a set with the other CPUs, as with cset. A
//! task with an affinity of its own stays, so that its affinity need not be restored: the ranks,
//! which are pinned, per-CPU kernel threads, and tasks that an administrator has placed. Tasks of
//! other sets stay, too.

use std::fs;
use std::io;

use crate::cpus;
use crate::host::Host;

/// The control groups of the host that manage CPUs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Groups {
    V1,
    V2,
}

impl Groups {
    /// Returns the version that is mounted in the usual place.
    pub(crate) fn of(host: &Host) -> Option<Self> {
        let controllers = host.line(&format!("{V2}/cgroup.controllers")).unwrap_or_default();
        if controllers.split_whitespace().any(|name| name == "cpuset") {
            return Some(Self::V2);
        }
        host.at(&format!("{V1}/cpuset.cpus")).exists().then_some(Self::V1)
    }

    /// The file whose permissions show whether a shield may be raised.
    pub(crate) fn control(self) -> String {
        match self {
            Self::V1 => format!("{V1}/tasks"),
            Self::V2 => format!("{V2}/cgroup.subtree_control"),
        }
    }
}

/// Returns the shielded CPUs, if there are any.
pub(crate) fn read(host: &Host) -> io::Result<Option<String>> {
    let group = match Groups::of(host) {
        Some(Groups::V1) => OTHERS,
        Some(Groups::V2) => RANKS,
        None => {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the host has no control groups with the cpuset controller",
            ));
        }
    };
    if !host.at(group).exists() {
        return Ok(None);
    }
    let cpus = cpus::parse(&host.line(&format!("{group}/cpuset.cpus"))?);
    if cpus.is_empty() {
        // A shield that was only begun restricts no task.
        return Ok(None);
    }
    let shielded = if group == OTHERS { cpus::without(&host.online(), &cpus) } else { cpus };
    Ok(Some(cpus::text(&shielded)))
}

/// Reserves these CPUs for the ranks.
pub(crate) fn raise(host: &Host, shielded: &[u32]) -> io::Result<()> {
    let raised = match Groups::of(host) {
        Some(Groups::V1) => raise_v1(host, shielded),
        Some(Groups::V2) => raise_v2(host, shielded),
        None => {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the host has no control groups with the cpuset controller",
            ));
        }
    };
    raised.map_err(|error| match lower(host) {
        Ok(()) => error,
        Err(rest) => {
            io::Error::new(error.kind(), format!("{error}, and its group could not be removed: {rest}"))
        }
    })
}

/// Lets every process use all CPUs again.
pub(crate) fn lower(host: &Host) -> io::Result<()> {
    match Groups::of(host) {
        Some(Groups::V1) => lower_v1(host),
        Some(Groups::V2) => lower_v2(host),
        None => Ok(()),
    }
}

fn raise_v1(host: &Host, shielded: &[u32]) -> io::Result<()> {
    let others = cpus::text(&cpus::without(&host.online(), shielded));
    host.make(OTHERS)?;
    // A set without memory nodes accepts no task.
    host.write(&format!("{OTHERS}/cpuset.mems"), &host.line(&format!("{V1}/cpuset.mems"))?)?;
    host.write(&format!("{OTHERS}/cpuset.cpus"), &others)?;
    let everywhere = cpus::parse(&host.line(&format!("{V1}/cpuset.cpus"))?);
    for _ in 0..PASSES {
        let tasks = tasks(host, &format!("{V1}/tasks"));
        let moved = tasks.iter().filter(|task| {
            let allowed = host.status(task, "Cpus_allowed_list").unwrap_or_default();
            // The kernel refuses tasks that cannot be moved or have just ended.
            cpus::parse(&allowed) == everywhere && host.write(&format!("{OTHERS}/tasks"), task).is_ok()
        });
        // A task may have started others before it was moved.
        if moved.count() == 0 {
            break;
        }
    }
    Ok(())
}

fn lower_v1(host: &Host) -> io::Result<()> {
    if !host.at(OTHERS).exists() {
        return Ok(());
    }
    for _ in 0..PASSES {
        let tasks = tasks(host, &format!("{OTHERS}/tasks"));
        if tasks.iter().filter(|task| host.write(&format!("{V1}/tasks"), task).is_ok()).count() == 0 {
            break;
        }
    }
    host.unmake(OTHERS)
}

fn raise_v2(host: &Host, shielded: &[u32]) -> io::Result<()> {
    let list = cpus::text(shielded);
    host.make(RANKS)?;
    host.write(&format!("{RANKS}/cpuset.cpus"), &list)?;
    // Linux 6.7 and later; before, a partition takes the CPUs of its group.
    if host.at(&format!("{RANKS}/cpuset.cpus.exclusive")).exists() {
        host.write(&format!("{RANKS}/cpuset.cpus.exclusive"), &list)?;
    }
    let partition = format!("{RANKS}/cpuset.cpus.partition");
    host.write(&partition, "root")?;
    match host.line(&partition)? {
        invalid if invalid.contains("invalid") => {
            Err(io::Error::other(format!("the kernel reports the partition as {invalid:?}")))
        }
        _ => Ok(()),
    }
}

fn lower_v2(host: &Host) -> io::Result<()> {
    if !host.at(RANKS).exists() {
        return Ok(());
    }
    for task in tasks(host, &format!("{RANKS}/cgroup.procs")) {
        // A process that has ended needs no other group.
        let _ = host.write(&format!("{V2}/cgroup.procs"), &task);
    }
    // The partition is removed with its group anyway.
    let _ = host.write(&format!("{RANKS}/cpuset.cpus.partition"), "member");
    host.unmake(RANKS)
}

/// Moves a process onto the shielded CPUs. Returns its previous group, for [`leave`].
pub(crate) fn join(host: &Host, process: u32) -> io::Result<Option<String>> {
    if Groups::of(host) != Some(Groups::V2) || !host.at(RANKS).exists() {
        return Ok(None);
    }
    let groups = host.root().text(&format!("proc/{process}/cgroup")).unwrap_or_default();
    let was = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_owned();
    host.write(&format!("{RANKS}/cgroup.procs"), &process.to_string())?;
    Ok(Some(was))
}

/// Moves a process back to its previous group. A process that has ended is ignored.
pub(crate) fn leave(host: &Host, process: u32, was: &str) {
    let _ = host.write(&format!("{V2}/{}/cgroup.procs", was.trim_matches('/')), &process.to_string());
}

fn tasks(host: &Host, path: &str) -> Vec<String> {
    let text = fs::read_to_string(host.at(path)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

const V1: &str = "sys/fs/cgroup/cpuset";
const V2: &str = "sys/fs/cgroup";
/// The set of all other tasks.
const OTHERS: &str = "sys/fs/cgroup/cpuset/rdmascope-others";
/// The group of the ranks.
const RANKS: &str = "sys/fs/cgroup/rdmascope-ranks";
/// Each pass moves the tasks that were started during the pass before. No ordinary program needs
/// more passes.
const PASSES: usize = 8;
