//! What other users and programs can do to a guard: its journal, its lock, the commands that it
//! runs.

use std::os::unix::fs::chown;

use super::*;
use crate::Restored;
use crate::rights::{CAP_SYS_ADMIN, has_capability};

#[test]
fn a_command_that_starts_a_daemon_is_not_waited_for_until_the_daemon_ends() {
    let (root, host) = host();
    let ended = root.path().join("ended");
    let script = format!("(sleep 5; touch {}) & echo first; echo last >&2; exit 3", ended.display());
    let why = host.run(&["sh", "-c", &script]).unwrap_err().to_string();
    assert!(!ended.exists(), "the daemon still holds what was standard output");
    assert!(why.ends_with("failed: last"), "{why}");
    let missing = host.run(&["no-such-command"]).unwrap_err().to_string();
    assert_eq!(missing, "no-such-command is not installed here");
}

#[test]
fn a_journal_that_others_could_write_is_not_believed() {
    let journal =
        "{\"entries\":[{\"setting\":\"no_turbo\",\"before\":\"1\",\"set\":\"0\",\"holders\":[\"1-1-1\"]}]}";
    let made = |spoil: fn(&Path)| {
        let (root, host) = host();
        put(root.path(), "run/rdmascope/journal.json", journal);
        let directory = root.path().join("run/rdmascope");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        spoil(&directory);
        let refused =
            one(Keeper::new(host.clone()).apply(&performance(), &ranks(&[]), 1)).reason.unwrap_or_default();
        restore(&host);
        (get(&root, "sys/devices/system/cpu/intel_pstate/no_turbo"), refused)
    };
    let (restored, refused) = made(|_| {});
    assert_eq!((restored.as_str(), refused.as_str()), ("1", ""), "the journal is used");
    let written = |directory: &Path| {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o770)).unwrap();
    };
    let link = |directory: &Path| {
        let elsewhere = directory.with_file_name("elsewhere");
        fs::rename(directory, &elsewhere).unwrap();
        symlink(elsewhere, directory).unwrap();
    };
    for (spoil, why) in
        [(written as fn(&Path), "can be written by other users, so "), (link, "is not a directory, so ")]
    {
        let (restored, refused) = made(spoil);
        assert_eq!(restored, "0", "{why}");
        assert!(refused.contains(why), "{refused}");
    }
    if rustix::process::geteuid().is_root() {
        let (restored, refused) = made(|directory| chown(directory, Some(65534), None).unwrap());
        assert_eq!(restored, "0");
        assert!(refused.contains("belongs to another user, so "), "{refused}");
    }
}

#[test]
fn a_guard_whose_sign_cannot_be_read_is_not_taken_for_dead() {
    let (root, host) = host();
    let mut keeper = Keeper::new(host.clone());
    keeper.apply(&performance(), &ranks(&[]), 1);
    for file in fs::read_dir(root.path().join("run/rdmascope")).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("holder-") {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o000)).unwrap();
        }
    }
    without_rights(|| {
        assert_eq!(left_behind(&host), Vec::<String>::new());
        assert_eq!(restore(&host), Restored::default());
    });
    assert_eq!(governor(&root, 0), "performance");
    keeper.release();
    assert_eq!(governor(&root, 0), "powersave");
}

#[test]
fn nobody_else_can_lock_a_journal() {
    let (root, host) = host();
    // As earlier versions made it.
    let directory = root.path().join("run/rdmascope");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let mut keeper = Keeper::new(host);
    keeper.apply(&performance(), &ranks(&[]), 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "the journal, its lock, the sign of its holder: {files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    keeper.release();
}

#[test]
fn a_change_that_failed_half_way_stays_in_the_journal_until_it_is_taken_back() {
    let (root, host) = host();
    for (path, content) in [
        ("sys/fs/cgroup/cgroup.controllers", "cpuset\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "cpuset\n"),
        ("sys/fs/cgroup/rdmascope-ranks/cpuset.cpus", ""),
        // Its removal fails: a file cannot be removed while its directory is not writable.
        ("sys/fs/cgroup/rdmascope-ranks/child/tasks", ""),
    ] {
        put(root.path(), path, content);
    }
    let child = root.path().join("sys/fs/cgroup/rdmascope-ranks/child");
    let mode = |mode: u32| fs::set_permissions(&child, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    without_rights(|| {
        let mut keeper = Keeper::new(host);
        let wanted = Wanted { cpuset: Some(Cpuset::Shield), ..Wanted::default() };
        // There is no cpuset.cpus.partition, which is written after cpuset.cpus.
        let reason = one(keeper.apply(&wanted, &ranks(&[0, 1]), 1)).reason.unwrap();
        assert!(reason.contains(", and its group could not be removed: "), "{reason}");
        let text = journal(&root).unwrap_or_default();
        assert!(text.contains("\"shield\""), "CPUs are still set: {text}");
        mode(0o755);
        assert_eq!(keeper.release(), Vec::<String>::new());
    });
    assert!(!root.path().join("sys/fs/cgroup/rdmascope-ranks").exists());
    assert_eq!(journal(&root), None);
}

#[test]
fn what_the_kernel_refuses_to_root_is_no_lack_of_rights() {
    if !has_capability(&Host::here(), CAP_SYS_ADMIN) {
        return eprintln!("SKIPPED (rights): no capability of root's");
    }
    let (root, host) = host();
    let turbo = root.path().join("sys/devices/system/cpu/intel_pstate/no_turbo");
    fs::remove_file(&turbo).unwrap();
    symlink(sealed("0\n"), &turbo).unwrap();
    let wanted = Wanted { turbo: Some(Turbo::Off), ..Wanted::default() };
    let done = one(Keeper::new(host).apply(&wanted, &ranks(&[]), 1));
    assert_eq!(done.outcome, Outcome::NotApplied, "{done:?}");
    let reason = done.reason.unwrap();
    assert!(reason.ends_with("; the kernel refuses this even to root"), "{reason}");
}

#[test]
fn tuned_is_not_started_by_choosing_a_profile() {
    let (root, host) = host();
    put(root.path(), "usr/sbin/tuned-adm", "");
    put(root.path(), "etc/tuned/active_profile", "balanced\n");
    let can =
        || survey(&host, None).into_iter().find(|state| state.technique == Technique::Tuned).unwrap().can;
    for profile in ["balanced", "latency-performance"] {
        let wanted = Wanted { tuned: Some(profile.to_owned()), ..Wanted::default() };
        let done = one(Keeper::new(host.clone()).apply(&wanted, &ranks(&[]), 1));
        assert_eq!(done.outcome, Outcome::NotApplied, "{done:?}");
        assert!(done.reason.unwrap().starts_with("tuned is not running (systemctl start tuned)"));
    }
    assert!(matches!(can(), Can::Nothing(why) if why.starts_with("tuned is not running")));
    put(root.path(), "proc/812/comm", "tuned\n");
    assert_eq!(can(), Can::Apply);
}
