//! The CPUs that the process may use, and other users of these CPUs (cgroups(7), cpuset(7),
//! proc_pid_mountinfo(5)).

use super::files::{Facts, Root, field};

/// Affinity, control group, isolated CPUs, interrupts.
pub(super) fn isolation(root: &Root) -> Facts {
    let mut facts = Facts::default();
    let status = root.text("proc/self/status").unwrap_or_default();
    facts.set("affinity", field(&status, ':', "Cpus_allowed_list"));
    facts.set("memory_nodes", field(&status, ':', "Mems_allowed_list"));
    facts.set("cgroup_cpus", cgroup_cpus(root));
    facts.set("isolated_cpus", root.line("sys/devices/system/cpu/isolated"));
    facts
        .set("nohz_full_cpus", root.line("sys/devices/system/cpu/nohz_full").filter(|cpus| cpus != "(null)"));
    facts.set("irqbalance", irqbalance(root));
    facts.set("default_irq_cpus_mask", root.line("proc/irq/default_smp_affinity"));
    facts
}

fn irqbalance(root: &Root) -> Option<&'static str> {
    let processes = root.numbered("proc", "");
    let runs = |id: &String| root.line(&format!("proc/{id}/comm")).is_some_and(|name| name == "irqbalance");
    (!processes.is_empty()).then(|| if processes.iter().any(runs) { "running" } else { "not running" })
}

/// The CPUs that the control group of the process allows, in the hierarchy that has the cpuset
/// controller.
fn cgroup_cpus(root: &Root) -> Option<String> {
    let mounts = root.text("proc/self/mountinfo")?;
    let groups = root.text("proc/self/cgroup")?;
    mounts.lines().filter_map(Mount::parse).find_map(|mount| {
        let group = mount.directory_of(&groups)?;
        FILES.into_iter().find_map(|file| root.line(&format!("{group}/{file}")))
    })
}

/// Version 2, then version 1 with and without the restrictions of its parents.
const FILES: [&str; 3] = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];

/// A mounted hierarchy of control groups that may have the cpuset controller.
struct Mount<'a> {
    /// The group that the mount point shows.
    root: &'a str,
    point: &'a str,
    is_v2: bool,
}

impl<'a> Mount<'a> {
    /// `36 35 0:30 ROOT POINT rw,... [optional...] - TYPE SOURCE OPTIONS`
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let root = mount.next()?;
        let point = mount.next()?;
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let options = file_system.nth(1)?;
        let is_v2 = kind == "cgroup2";
        let has_cpuset = kind == "cgroup" && options.split(',').any(|option| option == "cpuset");
        (is_v2 || has_cpuset).then_some(Self { root, point, is_v2 })
    }

    /// The directory of the process's group. Lines of /proc/self/cgroup are `ID:CONTROLLERS:PATH`,
    /// and for version 2 `0::PATH`.
    fn directory_of(&self, groups: &str) -> Option<String> {
        let path = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            let path = parts.next()?;
            let is_ours = if self.is_v2 { controllers.is_empty() } else { has_cpuset(controllers) };
            is_ours.then_some(path)
        })?;
        let below = path.strip_prefix(self.root.trim_end_matches('/')).unwrap_or(path);
        Some(format!("{}{below}", self.point))
    }
}

fn has_cpuset(controllers: &str) -> bool {
    controllers.split(',').any(|controller| controller == "cpuset")
}
