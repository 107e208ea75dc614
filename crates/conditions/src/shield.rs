//! CPUs that others are kept off (V2 of the evaluations), by whichever control groups the host has
//! (cgroups(7), cpuset(7), Documentation/admin-guide/cgroup-v2.rst).
//!
//! Version 2: the CPUs become a partition of their own. The kernel takes them from every other
//! group by itself, and gives them back when the partition goes. The ranks' processes join it.
//!
//! Version 1: a set with the other CPUs, into which the tasks of the topmost set are moved, as cset
//! does. Tasks with an affinity of their own stay, so that it need not be set back: the ranks,
//! which are pinned, the kernel's threads of one CPU, and what an administrator has placed. So do
//! tasks of other sets.

use std::fs;
use std::io;

use crate::cpus;
use crate::host::Host;

/// Control groups of the host that know CPUs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Groups {
    V1,
    V2,
}

impl Groups {
    /// Those that are there, where they are usually mounted.
    pub(crate) fn of(host: &Host) -> Option<Self> {
        let controllers = host.line(&format!("{V2}/cgroup.controllers")).unwrap_or_default();
        if controllers.split_whitespace().any(|name| name == "cpuset") {
            return Some(Self::V2);
        }
        host.at(&format!("{V1}/cpuset.cpus")).exists().then_some(Self::V1)
    }

    /// The file that shows whether a shield may be raised.
    pub(crate) fn control(self) -> String {
        match self {
            Self::V1 => format!("{V1}/tasks"),
            Self::V2 => format!("{V2}/cgroup.subtree_control"),
        }
    }
}

/// The shielded CPUs, if there are any.
pub(crate) fn read(host: &Host) -> io::Result<Option<String>> {
    let group = match Groups::of(host) {
        Some(Groups::V1) => OTHERS,
        Some(Groups::V2) => RANKS,
        None => return Err(io::Error::new(io::ErrorKind::NotFound, "there are no control groups of CPUs")),
    };
    if !host.at(group).exists() {
        return Ok(None);
    }
    let cpus = cpus::parse(&host.line(&format!("{group}/cpuset.cpus"))?);
    if cpus.is_empty() {
        // Begun, and in nobody's way.
        return Ok(None);
    }
    let shielded = if group == OTHERS { cpus::without(&host.online(), &cpus) } else { cpus };
    Ok(Some(cpus::text(&shielded)))
}

/// Keeps others off these CPUs.
pub(crate) fn raise(host: &Host, shielded: &[u32]) -> io::Result<()> {
    let raised = match Groups::of(host) {
        Some(Groups::V1) => raise_v1(host, shielded),
        Some(Groups::V2) => raise_v2(host, shielded),
        None => return Err(io::Error::new(io::ErrorKind::NotFound, "there are no control groups of CPUs")),
    };
    raised.map_err(|error| match lower(host) {
        Ok(()) => error,
        Err(rest) => {
            io::Error::new(error.kind(), format!("{error}, and its group could not be removed: {rest}"))
        }
    })
}

/// Lets everybody use all CPUs again.
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
    // A set without memory takes no task.
    host.write(&format!("{OTHERS}/cpuset.mems"), &host.line(&format!("{V1}/cpuset.mems"))?)?;
    host.write(&format!("{OTHERS}/cpuset.cpus"), &others)?;
    let everywhere = cpus::parse(&host.line(&format!("{V1}/cpuset.cpus"))?);
    for _ in 0..PASSES {
        let tasks = tasks(host, &format!("{V1}/tasks"));
        let moved = tasks.iter().filter(|task| {
            let allowed = host.status(task, "Cpus_allowed_list").unwrap_or_default();
            // What cannot be moved, or has just ended, is refused by the kernel.
            cpus::parse(&allowed) == everywhere && host.write(&format!("{OTHERS}/tasks"), task).is_ok()
        });
        // A task that was moved may have started others before.
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
    // Linux 6.7 and later; before, a partition takes what its group has.
    if host.at(&format!("{RANKS}/cpuset.cpus.exclusive")).exists() {
        host.write(&format!("{RANKS}/cpuset.cpus.exclusive"), &list)?;
    }
    let partition = format!("{RANKS}/cpuset.cpus.partition");
    host.write(&partition, "root")?;
    match host.line(&partition)? {
        invalid if invalid.contains("invalid") => {
            Err(io::Error::other(format!("the partition is {invalid}")))
        }
        _ => Ok(()),
    }
}

fn lower_v2(host: &Host) -> io::Result<()> {
    if !host.at(RANKS).exists() {
        return Ok(());
    }
    for task in tasks(host, &format!("{RANKS}/cgroup.procs")) {
        // One that has ended meanwhile needs no other group.
        let _ = host.write(&format!("{V2}/cgroup.procs"), &task);
    }
    // The group goes anyway, and with it the partition.
    let _ = host.write(&format!("{RANKS}/cpuset.cpus.partition"), "member");
    host.unmake(RANKS)
}

/// Lets a process onto the shielded CPUs; gives where it was, for [`leave`].
pub(crate) fn join(host: &Host, process: u32) -> io::Result<Option<String>> {
    if Groups::of(host) != Some(Groups::V2) || !host.at(RANKS).exists() {
        return Ok(None);
    }
    let groups = host.root().text(&format!("proc/{process}/cgroup")).unwrap_or_default();
    let was = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_owned();
    host.write(&format!("{RANKS}/cgroup.procs"), &process.to_string())?;
    Ok(Some(was))
}

/// Puts a process back where it was. One that has ended is nowhere.
pub(crate) fn leave(host: &Host, process: u32, was: &str) {
    let _ = host.write(&format!("{V2}/{}/cgroup.procs", was.trim_matches('/')), &process.to_string());
}

fn tasks(host: &Host, path: &str) -> Vec<String> {
    let text = fs::read_to_string(host.at(path)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

const V1: &str = "sys/fs/cgroup/cpuset";
const V2: &str = "sys/fs/cgroup";
/// The set of everybody else.
const OTHERS: &str = "sys/fs/cgroup/cpuset/rdmascope-others";
/// The group of the ranks.
const RANKS: &str = "sys/fs/cgroup/rdmascope-ranks";
/// Tasks that start others while they are moved are caught by the next pass; more than this no
/// honest program needs.
const PASSES: usize = 8;
