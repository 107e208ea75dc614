//! Made-up hosts, changed and restored.

use std::fs;
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use measure::conditions::{
    Aspm, Condition, Cpuset, IpoibMode, IrqAffinity, Memory, Outcome, Stress, Technique, Turbo, Wanted,
};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use tempfile::TempDir;

use crate::keeper::Keeper;
use crate::place::Ranks;
use crate::restore::settle;
use crate::{Arranger, Can, Host, Leave, Place, left_behind, restore, survey};

/// Four CPUs with a scaled clock rate, one with another governor than the rest; four interrupts.
const FILES: &[(&str, &str)] = &[
    ("run/.keep", ""),
    ("proc/self/status", "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
    ("proc/self/uid_map", "         0          0 4294967295\n"),
    ("proc/self/limits", "Max locked memory  8388608  unlimited  bytes\nMax realtime priority  0  0\n"),
    ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors", "performance powersave\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
    ("sys/module/pcie_aspm/parameters/policy", "[default] performance powersave powersupersave\n"),
    ("proc/irq/24/smp_affinity_list", "0-3\n"),
    ("proc/irq/25/smp_affinity_list", "2\n"),
    ("proc/irq/26/smp_affinity_list", "0\n"),
];

fn host() -> (TempDir, Host) {
    let root = tempfile::tempdir().unwrap();
    FILES.iter().for_each(|(path, content)| put(root.path(), path, content));
    // An interrupt that shows its CPUs but cannot be moved, such as a timer's.
    fs::create_dir_all(root.path().join("proc/irq/27")).unwrap();
    symlink(sealed("0-3\n"), root.path().join("proc/irq/27/smp_affinity_list")).unwrap();
    let host = Host::new(root.path());
    (root, host)
}

/// A file that every user may open, and whose content cannot be changed (EPERM), like an interrupt
/// that the kernel does not move. It exists until the process ends.
fn sealed(content: &str) -> String {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let mut file = fs::File::from(memfd_create("sealed", flags).unwrap());
    file.write_all(content.as_bytes()).unwrap();
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW).unwrap();
    format!("/proc/{}/fd/{}", std::process::id(), file.into_raw_fd())
}

/// Ranks on these CPUs.
fn ranks(cpus: &[u32]) -> Ranks {
    Ranks { count: cpus.len().max(1), cpus: cpus.to_vec(), interfaces: Vec::new() }
}

fn put(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    let directory = path.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    // Independent of the umask.
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(path, content).unwrap();
}

fn get(root: &TempDir, path: &str) -> String {
    fs::read_to_string(root.path().join(path)).unwrap().trim().to_owned()
}

fn governor(root: &TempDir, cpu: u32) -> String {
    get(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
}

fn journal(root: &TempDir) -> Option<String> {
    fs::read_to_string(root.path().join("run/rdmascope/journal.json")).ok()
}

fn performance() -> Wanted {
    Wanted { governor: Some("performance".to_owned()), ..Wanted::default() }
}

/// Simulates a guard that was killed: its journal stays, and it holds nothing any more.
fn kill(keeper: Keeper, root: &TempDir) {
    drop(keeper);
    assert!(journal(root).is_some());
}

#[track_caller]
fn one(conditions: Vec<Condition>) -> Condition {
    let [one] = &conditions[..] else { panic!("{conditions:#?}") };
    one.clone()
}

#[test]
fn what_is_applied_is_in_the_journal_and_taken_back() {
    let (root, host) = host();
    let mut keeper = Keeper::new(host.clone());
    let done = one(keeper.apply(&performance(), &ranks(&[]), 1));
    assert_eq!((done.technique, done.outcome, done.reason), (Technique::Governor, Outcome::Applied, None));
    assert_eq!(done.before.as_deref(), Some("performance x 1, powersave x 3"));
    assert_eq!([0, 1, 2, 10].map(|cpu| governor(&root, cpu)), ["performance"; 4]);
    let text = journal(&root).unwrap();
    assert_eq!(text.matches("\"before\": \"powersave\"").count(), 3, "{text}");
    assert!(left_behind(&host).is_empty(), "its guard lives");
    assert_eq!(keeper.release(), Vec::<String>::new());
    let after = ["powersave", "powersave", "powersave", "performance"];
    assert_eq!([0, 1, 2, 10].map(|cpu| governor(&root, cpu)), after);
    assert_eq!(journal(&root), None);
}

#[test]
fn a_value_that_somebody_else_changed_is_left_alone_and_said_so() {
    let (root, host) = host();
    let mut keeper = Keeper::new(host);
    keeper.apply(&performance(), &ranks(&[]), 1);
    put(root.path(), "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n");
    let said = keeper.release();
    let expected = "another process changed the governor of CPU 1 to schedutil after rdmascope had set it to \
                    performance; it is left so (originally powersave)";
    assert_eq!(said, [expected]);
    assert_eq!([0, 1, 2].map(|cpu| governor(&root, cpu)), ["powersave", "schedutil", "powersave"]);
    assert_eq!(journal(&root), None);
}

#[test]
fn the_last_of_two_takes_back_what_both_hold() {
    let (root, host) = host();
    let mut first = Keeper::new(host.clone());
    let mut second = Keeper::new(host);
    first.apply(&performance(), &ranks(&[]), 1);
    let shared = one(second.apply(&performance(), &ranks(&[]), 2));
    assert_eq!(shared.outcome, Outcome::Applied);
    assert_eq!(
        shared.before.as_deref(),
        Some("performance x 1, powersave x 3"),
        "not what the first made of it"
    );
    first.release();
    assert_eq!(governor(&root, 0), "performance", "the second holds it");
    second.release();
    assert_eq!(governor(&root, 0), "powersave");
    assert_eq!(journal(&root), None);
}

#[test]
fn what_another_holds_at_another_value_is_not_touched() {
    let (root, host) = host();
    let mut first = Keeper::new(host.clone());
    let mut second = Keeper::new(host);
    first.apply(&performance(), &ranks(&[]), 1);
    let powersave = Wanted { governor: Some("powersave".to_owned()), ..Wanted::default() };
    let refused = one(second.apply(&powersave, &ranks(&[]), 2));
    let id = std::process::id();
    let why = format!("process {id} of rdmascope holds the governor of CPU 0 at performance");
    assert_eq!((refused.outcome, refused.reason), (Outcome::NotApplied, Some(why)));
    second.release();
    assert_eq!(governor(&root, 0), "performance");
    first.release();
    assert_eq!(governor(&root, 0), "powersave");
}

#[test]
fn what_a_killed_guard_left_behind_is_found_and_restored() {
    let (root, host) = host();
    let mut keeper = Keeper::new(host.clone());
    keeper.apply(&performance(), &ranks(&[]), 1);
    kill(keeper, &root);
    let found = left_behind(&host);
    assert_eq!(found.len(), 3, "{found:?}");
    let first = format!(
        "the governor of CPU 0 was set from powersave to performance by process {}, which was killed",
        std::process::id()
    );
    assert_eq!(found[0], first);
    put(root.path(), "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n");
    let restored = restore(&host);
    assert_eq!(restored.restored.len(), 2, "{restored:?}");
    assert_eq!(restored.left_alone.len(), 1, "{restored:?}");
    assert_eq!(restored.failed, Vec::<String>::new());
    assert_eq!([0, 1, 2].map(|cpu| governor(&root, cpu)), ["powersave", "schedutil", "powersave"]);
    assert_eq!((journal(&root), left_behind(&host)), (None, Vec::new()));
}

#[test]
fn the_next_run_takes_over_what_a_killed_guard_left_behind() {
    for (asked, own) in [("performance", "performance"), ("powersave", "powersave")] {
        let (root, host) = host();
        let mut killed = Keeper::new(host.clone());
        killed.apply(&performance(), &ranks(&[]), 1);
        kill(killed, &root);
        let mut next = Keeper::new(host);
        let wanted = Wanted { governor: Some(asked.to_owned()), ..Wanted::default() };
        let done = one(next.apply(&wanted, &ranks(&[]), 2));
        assert_eq!((done.outcome, governor(&root, 0)), (Outcome::Applied, own.to_owned()));
        assert!(
            done.reason.as_ref().is_some_and(|why| why.contains("was killed before it reverted this")),
            "{done:?}"
        );
        assert_eq!(done.before.as_deref(), Some("performance x 1, powersave x 3"));
        next.release();
        let after = ["powersave", "powersave", "powersave", "performance"];
        assert_eq!([0, 1, 2, 10].map(|cpu| governor(&root, cpu)), after, "what was before both");
        assert_eq!(journal(&root), None);
    }
}

#[test]
fn interrupts_leave_the_ranks_cpus_where_the_kernel_lets_them() {
    let (root, host) = host();
    let mut keeper = Keeper::new(host);
    let wanted = Wanted { irq_affinity: Some(IrqAffinity::Away), ..Wanted::default() };
    let done = one(keeper.apply(&wanted, &ranks(&[0, 1]), 1));
    assert_eq!(done.outcome, Outcome::Applied, "{done:?}");
    let reason = done.reason.unwrap();
    let expected = "3 of 4 interrupts: the kernel does not move the others (the CPUs of interrupt 27: ";
    assert!(reason.starts_with(expected), "{reason}");
    let list = |irq: u32| get(&root, &format!("proc/irq/{irq}/smp_affinity_list"));
    // An interrupt with no other CPU goes to all other CPUs.
    assert_eq!([24, 25, 26].map(list), ["2-3", "2", "2-3"]);
    keeper.release();
    assert_eq!([24, 25, 26].map(list), ["0-3", "2", "0"]);
    assert_eq!(journal(&root), None);
    let all = one(keeper.apply(&wanted, &ranks(&[0, 1, 2, 3]), 1));
    let why = "the ranks use all CPUs, and none is left for other work";
    assert_eq!((all.outcome, all.reason.as_deref()), (Outcome::NotApplied, Some(why)));
    let none = one(keeper.apply(&wanted, &ranks(&[]), 1));
    assert!(none.reason.unwrap().contains("pin them with --cpus"), "no rank has a CPU");
}

/// Runs a closure on a thread without any capability.
fn without_rights(test: impl FnOnce() + Send) {
    let none = CapabilitySet::empty();
    let rights = CapabilitySets { effective: none, permitted: none, inheritable: none };
    thread::scope(|scope| {
        scope.spawn(|| {
            set_capabilities(None, rights).unwrap();
            test();
        });
    });
}

#[test]
fn interrupts_that_are_where_they_should_be_are_no_right_to_move_the_others() {
    let (root, host) = host();
    for irq in [24, 25, 26] {
        let path = root.path().join(format!("proc/irq/{irq}/smp_affinity_list"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
    }
    without_rights(|| {
        let wanted = Wanted { irq_affinity: Some(IrqAffinity::Away), ..Wanted::default() };
        let done = one(Keeper::new(host).apply(&wanted, &ranks(&[0, 1]), 1));
        assert_eq!(done.outcome, Outcome::NotPermitted, "interrupt 25 is away already: {done:?}");
        let reason = done.reason.unwrap();
        assert!(reason.starts_with("cannot set the CPUs of interrupt 24: Permission denied"), "{reason}");
    });
}

#[test]
fn irqbalance_is_named_as_who_undoes_it() {
    let (root, host) = host();
    put(root.path(), "proc/812/comm", "irqbalance\n");
    let wanted = Wanted { irq_affinity: Some(IrqAffinity::Away), ..Wanted::default() };
    let done = one(Keeper::new(host).apply(&wanted, &ranks(&[0]), 1));
    assert!(
        done.reason
            .unwrap()
            .ends_with("irqbalance is running and may move them back: systemctl stop irqbalance")
    );
}

#[test]
fn switches_are_written_as_their_drivers_have_them() {
    let (root, host) = host();
    let mut keeper = Keeper::new(host.clone());
    let wanted = Wanted { aspm: Some(Aspm::Performance), turbo: Some(Turbo::Off), ..Wanted::default() };
    let done = keeper.apply(&wanted, &ranks(&[]), 1);
    assert!(done.iter().all(|done| done.outcome == Outcome::Applied), "{done:?}");
    assert_eq!(done.iter().map(|d| d.before.as_deref().unwrap()).collect::<Vec<_>>(), ["0", "default"]);
    assert_eq!(get(&root, "sys/devices/system/cpu/intel_pstate/no_turbo"), "1");
    assert_eq!(get(&root, "sys/module/pcie_aspm/parameters/policy"), "performance");
    // As the kernel shows the choices.
    put(root.path(), "sys/module/pcie_aspm/parameters/policy", "default [performance] powersave\n");
    keeper.release();
    assert_eq!(get(&root, "sys/module/pcie_aspm/parameters/policy"), "default");
    put(root.path(), "sys/devices/system/cpu/cpufreq/boost", "1\n");
    one(keeper.apply(&Wanted { turbo: Some(Turbo::Off), ..Wanted::default() }, &ranks(&[]), 1));
    assert_eq!(get(&root, "sys/devices/system/cpu/cpufreq/boost"), "0");
}

#[test]
fn what_is_not_there_is_not_applied_and_says_what_is_missing() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("run")).unwrap();
    let mut keeper = Keeper::new(Host::new(root.path()));
    let wanted = Wanted {
        aspm: Some(Aspm::Performance),
        turbo: Some(Turbo::On),
        cpuset: Some(Cpuset::Shield),
        irq_affinity: Some(IrqAffinity::Away),
        ..performance()
    };
    let done = keeper.apply(&wanted, &ranks(&[0]), 1);
    assert_eq!(done.len(), 5);
    for (done, word) in done.iter().zip(["cpufreq", "boost", "pcie_aspm", "CPUs", "cpuset"]) {
        assert_eq!(done.outcome, Outcome::NotApplied, "{done:?}");
        assert!(done.reason.as_ref().is_some_and(|why| why.contains(word)), "no {word} in {done:?}");
    }
    let (_root, host) = host();
    let unknown = Wanted { governor: Some("fastest".to_owned()), ..Wanted::default() };
    let why = one(Keeper::new(host).apply(&unknown, &ranks(&[]), 1)).reason.unwrap();
    assert_eq!(why, "there is no governor \"fastest\" here, only performance powersave");
}

#[test]
fn without_a_place_for_the_journal_nothing_is_changed() {
    let (root, host) = host();
    fs::remove_dir_all(root.path().join("run")).unwrap();
    let done = one(Keeper::new(host).apply(&performance(), &ranks(&[]), 1));
    assert_eq!(done.outcome, Outcome::NotApplied);
    assert!(done.reason.unwrap().ends_with("without a journal, rdmascope changes nothing"));
    assert_eq!(governor(&root, 0), "powersave");
}

#[test]
fn a_journal_of_something_else_stops_changes_and_is_told_of() {
    let (root, host) = host();
    put(
        root.path(),
        "run/rdmascope/journal.json",
        "{\"entries\":[{\"setting\":{\"file\":\"/etc/passwd\"}}]}",
    );
    let done = one(Keeper::new(host.clone()).apply(&performance(), &ranks(&[]), 1));
    assert!(done.reason.unwrap().contains("is not a journal of this version of rdmascope"));
    assert_eq!(governor(&root, 0), "powersave");
    assert!(left_behind(&host)[0].contains("is not a journal of this version"));
    assert_eq!(restore(&host).failed.len(), 1);
}

#[test]
fn a_journal_cannot_make_values_of_what_is_none() {
    let (root, host) = host();
    let entry = |setting: &str, before: &str, set: &str| {
        format!("{{\"setting\":{setting},\"before\":\"{before}\",\"set\":\"{set}\",\"holders\":[\"../1\"]}}")
    };
    put(root.path(), "etc/tuned/active_profile", "x\n");
    put(root.path(), "proc/812/comm", "tuned\n");
    let entries = [
        entry("\"tuned\"", "--loglevel", "x"),
        entry("{\"irq_affinity\":{\"irq\":25}}", "x", "2"),
        entry("\"no_turbo\"", "2", "0"),
    ];
    put(root.path(), "run/rdmascope/journal.json", &format!("{{\"entries\":[{}]}}", entries.join(",")));
    let restored = restore(&host);
    assert_eq!(restored.failed.len(), 3, "{restored:?}");
    assert!(restored.failed.iter().all(|why| why.contains("is not a valid value of ")), "{restored:?}");
    assert_eq!(get(&root, "proc/irq/25/smp_affinity_list"), "2");
}

/// A host with control groups of version 1, and two tasks: one that may run on all CPUs, one that
/// is pinned to a rank's CPU.
fn with_v1(root: &TempDir) {
    for (path, content) in [
        ("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n"),
        ("sys/fs/cgroup/cpuset/cpuset.mems", "0-1\n"),
        ("sys/fs/cgroup/cpuset/tasks", "100\n101\n"),
        ("proc/100/status", "Cpus_allowed_list:\t0-3\n"),
        ("proc/101/status", "Cpus_allowed_list:\t1\n"),
    ] {
        put(root.path(), path, content);
    }
}

#[test]
fn a_shield_of_version_1_moves_who_may_be_anywhere() {
    let (root, host) = host();
    with_v1(&root);
    let mut keeper = Keeper::new(host.clone());
    let wanted = Wanted { cpuset: Some(Cpuset::Shield), ..Wanted::default() };
    let done = one(keeper.apply(&wanted, &ranks(&[1, 0]), 1));
    assert_eq!((done.outcome, done.before.as_deref()), (Outcome::Applied, Some("none")), "{done:?}");
    let others = |file: &str| get(&root, &format!("sys/fs/cgroup/cpuset/rdmascope-others/{file}"));
    assert_eq!([others("cpuset.cpus"), others("cpuset.mems"), others("tasks")], ["2-3", "0-1", "100"]);
    let state = survey(&host, None).into_iter().find(|state| state.technique == Technique::Cpuset).unwrap();
    assert_eq!((state.now.as_deref(), state.can), (Some("CPUs kept free: 0-1"), Can::Apply));
    put(root.path(), "sys/fs/cgroup/cpuset/tasks", "");
    keeper.release();
    assert_eq!(get(&root, "sys/fs/cgroup/cpuset/tasks"), "100", "back where it was");
    assert!(!root.path().join("sys/fs/cgroup/cpuset/rdmascope-others").exists());
    assert_eq!(journal(&root), None);
}

#[test]
fn a_shield_of_version_2_is_a_partition_that_the_agent_joins() {
    let (root, host) = host();
    for (path, content) in [
        ("sys/fs/cgroup/cgroup.controllers", "cpu cpuset memory\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
        ("sys/fs/cgroup/cgroup.procs", ""),
        ("sys/fs/cgroup/user.slice/cgroup.procs", ""),
        ("proc/4711/cgroup", "0::/user.slice\n"),
    ] {
        put(root.path(), path, content);
    }
    let mut keeper = Keeper::new(host);
    let wanted = Wanted { cpuset: Some(Cpuset::Shield), ..Wanted::default() };
    let done = one(keeper.apply(&wanted, &ranks(&[2, 3]), 4711));
    assert_eq!(done.outcome, Outcome::Applied, "{done:?}");
    let ranks = |file: &str| get(&root, &format!("sys/fs/cgroup/rdmascope-ranks/{file}"));
    let made = [ranks("cpuset.cpus"), ranks("cpuset.cpus.partition"), ranks("cgroup.procs")];
    assert_eq!(made, ["2-3", "root", "4711"]);
    assert_eq!(get(&root, "sys/fs/cgroup/cgroup.subtree_control"), "+cpuset");
    // As the kernel shows it.
    put(root.path(), "sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu memory\n");
    keeper.release();
    assert_eq!(get(&root, "sys/fs/cgroup/user.slice/cgroup.procs"), "4711", "back where it was");
    assert!(!root.path().join("sys/fs/cgroup/rdmascope-ranks").exists());
    assert_eq!(get(&root, "sys/fs/cgroup/cgroup.subtree_control"), "-cpuset");
    assert_eq!(journal(&root), None);
}

#[test]
fn a_survey_says_what_could_be_applied() {
    let (root, host) = host();
    put(root.path(), "dev/cpu_dma_latency", "");
    fs::write(root.path().join("dev/cpu_dma_latency"), 2_000_000_000_i32.to_ne_bytes()).unwrap();
    let states = survey(&host, None);
    let can = |technique| states.iter().find(|state| state.technique == technique).unwrap().can.clone();
    for technique in [
        Technique::Aspm,
        Technique::CpuDmaLatency,
        Technique::Governor,
        Technique::IrqAffinity,
        Technique::Memory,
        Technique::Scheduler,
        Technique::Turbo,
    ] {
        assert_eq!(can(technique), Can::Apply, "{technique}");
    }
    for technique in [Technique::Cpuset, Technique::Numa, Technique::Tuned] {
        assert!(matches!(can(technique), Can::Nothing(_)), "{technique}");
    }
    let now: Vec<_> = states.iter().filter_map(|state| state.now.clone()).collect();
    assert!(
        now.contains(&"no request".to_owned()) && now.contains(&"performance x 1, powersave x 3".to_owned())
    );
    put(root.path(), "proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
    put(root.path(), "proc/self/limits", "Max locked memory  8  8  bytes\nMax realtime priority  0  0\n");
    put(root.path(), "usr/sbin/tuned-adm", "");
    let states = survey(&host, None);
    for technique in [Technique::Memory, Technique::Scheduler, Technique::Tuned] {
        let state = states.iter().find(|state| state.technique == technique).unwrap();
        assert!(matches!(state.can, Can::NotPermitted(_)), "{state:?}");
    }
}

mod guards;
mod ipoib;
mod safety;
