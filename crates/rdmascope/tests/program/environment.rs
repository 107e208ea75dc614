//! Environments from the outside: applied, recorded, and reverted, whichever process is killed. The
//! host is a made-up tree of files, except in the tests that say otherwise.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use measure::conditions::{Condition, Outcome, Technique};
use measure::environment::stat_field;
use measure::record::Point;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::hands::Server;
use crate::support::processes::{Process, agents, signal, with_token};
use crate::support::{Scratch, all_measured, collect, copy_program, finish, is_installed, skip, wait};

/// Eight CPUs, two of which have a governor, an interrupt that can be moved and one that cannot.
const HOST: &[(&str, &str)] = &[
    ("run/.keep", ""),
    ("sys/devices/system/cpu/online", "0-7"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil"),
    ("proc/irq/24/smp_affinity_list", "0-7"),
];
const GOVERNORS: [&str; 2] = [
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
];
const IRQ: &str = "proc/irq/24/smp_affinity_list";
const JOURNAL: &str = "run/rdmascope/journal.json";

/// The values of the host before a run.
const BEFORE: [&str; 3] = ["powersave", "schedutil", "0-7"];
/// The values of the host while a point is measured.
const APPLIED: [&str; 3] = ["performance", "performance", "2-7"];

/// Returns a plan with a point that takes so many seconds.
fn plan(environment: &str, seconds: u32) -> String {
    format!(
        "name = \"e\"\ntitle = \"E\"\n[[environment]]\nname = \"own\"\n{environment}\n[[experiment]]\nname = \"e\"\n\
         pattern = \"ping-pong\"\nduration = \"{seconds}s\"\n[experiment.axes]\nenvironment = \"own\"\nsize_bytes = 4\n"
    )
}

const OWN: &str = "governor = \"performance\"\nirq_affinity = \"away\"";

/// Returns a scratch directory with a made-up host, which agents use as their host.
fn scratch() -> Scratch {
    let scratch = Scratch::alone();
    for (path, content) in HOST {
        let path = scratch.at("host").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }
    fs::create_dir_all(scratch.at("host/proc/irq/25")).unwrap();
    let fixed = scratch.at("host/proc/irq/25/smp_affinity_list");
    symlink("/sys/devices/system/cpu/online", fixed).unwrap();
    scratch.write("wrapper.sh", format!("exec \"$@\" --host-root {}\n", scratch.at("host").display()));
    scratch.write("plan.toml", plan(OWN, 30));
    scratch
}

const VIA: [&str; 6] = ["-d", "softdev0", "--via", "sh wrapper.sh", "--cpus", "0,1"];

/// Returns the values of the host: governors, interrupt.
fn values(scratch: &Scratch) -> [String; 3] {
    [GOVERNORS[0], GOVERNORS[1], IRQ].map(|path| {
        let text = fs::read_to_string(scratch.at("host").join(path)).unwrap_or_default();
        text.trim().to_owned()
    })
}

/// Waits until a condition holds.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a run in its own process group, and waits until it is in the middle of its point.
#[track_caller]
fn in_the_middle(scratch: &Scratch) -> Child {
    let mut command = scratch.program([&["run", "plan.toml", "--out", "record"][..], &VIA].concat());
    let child = command.process_group(0).spawn().unwrap();
    until("both guards have applied the environment", || {
        let journal = fs::read_to_string(scratch.at("host").join(JOURNAL)).unwrap_or_default();
        let holders = fs::read_dir(scratch.at("host/run/rdmascope")).into_iter().flatten().flatten();
        let holders = holders.filter(|file| file.file_name().to_string_lossy().starts_with("holder-"));
        values(scratch) == APPLIED && holders.count() == 2 && journal.matches("holders").count() == 3
    });
    // Both agents measure now, or will in a moment: both are the middle of a point.
    std::thread::sleep(Duration::from_millis(300));
    child
}

fn guards(scratch: &Scratch) -> Vec<Process> {
    let is_guard = |process: &Process| process.command.contains(" guard ");
    with_token(&scratch.token()).into_iter().filter(is_guard).collect()
}

/// Kills the coordinator and the agents, each with its process group.
fn kill_all(scratch: &Scratch, child: &mut Child) {
    let agents = agents(&scratch.token()).into_iter().map(|agent| agent.pid);
    for pid in agents.chain([child.id().cast_signed()]) {
        let _ = kill_process_group(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }
    wait(child);
}

fn by_technique(point: &Point, rank: u32) -> BTreeMap<Technique, Condition> {
    let own = point.conditions.iter().filter(|condition| condition.rank == rank);
    own.map(|condition| (condition.technique, condition.clone())).collect()
}

#[test]
fn a_run_that_is_killed_leaves_the_host_as_it_was() {
    let scratch = scratch();
    let mut child = in_the_middle(&scratch);
    assert_eq!(guards(&scratch).len(), 2);
    kill_all(&scratch, &mut child);
    until("the guards have reverted everything", || values(&scratch) == BEFORE);
    scratch.assert_nothing_left();
    assert!(!scratch.at("host").join(JOURNAL).exists());
}

#[test]
fn an_agent_that_is_killed_alone_leaves_the_host_as_it_was() {
    let scratch = scratch();
    let mut child = in_the_middle(&scratch);
    agents(&scratch.token()).iter().for_each(|agent| signal(agent.pid, Signal::KILL));
    until("the guards have reverted everything", || values(&scratch) == BEFORE);
    wait(&mut child);
    scratch.assert_nothing_left();
}

#[test]
fn a_signal_to_everything_is_no_end_for_the_guards() {
    let scratch = scratch();
    let mut child = in_the_middle(&scratch);
    for signal_of in [Signal::HUP, Signal::INT, Signal::TERM] {
        guards(&scratch).iter().for_each(|guard| signal(guard.pid, signal_of));
    }
    kill_all(&scratch, &mut child);
    until("the guards have reverted everything", || values(&scratch) == BEFORE);
    scratch.assert_nothing_left();
}

#[test]
fn what_is_left_when_the_guards_are_killed_too_is_found_told_and_restored() {
    let scratch = scratch();
    let host = scratch.at("host").display().to_string();
    let mut child = in_the_middle(&scratch);
    let guards = guards(&scratch);
    guards.iter().for_each(|guard| signal(guard.pid, Signal::KILL));
    kill_all(&scratch, &mut child);
    scratch.assert_nothing_left();
    // The fault takes effect: nothing was reverted.
    assert_eq!(values(&scratch), APPLIED);
    assert!(scratch.at("host").join(JOURNAL).exists());

    let told = scratch.succeed(&["doctor", "-d", "softdev0", "--host-root", &host]);
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "left behind: the governor of CPU 1 was set from schedutil to performance by process ";
    assert!(told.contains(line) && told.contains("$ rdmascope doctor --restore"), "{told}");

    scratch.write("small.toml", plan("", 1));
    scratch.succeed(&[&["run", "small.toml", "--out", "next"][..], &VIA].concat());
    let (run, points) = scratch.record("next");
    assert!(all_measured(&points));
    let warning = run.warnings.iter().find(|warning| warning.contains("the governor of CPU 1 was set from"));
    assert!(warning.is_some_and(|warning| warning.ends_with("see `rdmascope doctor`")), "{:?}", run.warnings);
    assert_eq!(values(&scratch), APPLIED, "a run without an environment changes nothing");

    let restored = scratch.succeed(&["doctor", "--restore", "--host-root", &host]);
    assert_eq!(restored.lines().count(), 3, "{restored}");
    assert!(restored.contains("restored the governor of CPU 1 is schedutil again\n"), "{restored}");
    assert_eq!(values(&scratch), BEFORE);
    assert!(!scratch.at("host").join(JOURNAL).exists());
    let again = scratch.succeed(&["doctor", "--restore", "--host-root", &host]);
    assert_eq!(again, "There is nothing to restore.\n");
    let files = fs::read_dir(scratch.at("host/run/rdmascope")).unwrap().flatten();
    let files: Vec<_> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    assert_eq!(files, ["lock"], "the guards leave no file");
}

#[test]
fn what_somebody_else_changes_during_a_run_is_left_alone_and_said_so() {
    let scratch = scratch();
    scratch.write("plan.toml", plan(OWN, 2));
    let child = in_the_middle(&scratch);
    fs::write(scratch.at("host").join(GOVERNORS[0]), "userspace\n").unwrap();
    let ended = collect(child);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let line = "another process changed the governor of CPU 0 to userspace after rdmascope had set it to performance; \
                it is left so (originally powersave)";
    assert!(ended.stderr.contains(line), "{ended:?}");
    assert_eq!(values(&scratch), ["userspace", "schedutil", "0-7"]);
    assert!(!scratch.at("host").join(JOURNAL).exists());
    let (_, points) = scratch.record("record");
    for rank in [0, 1] {
        let own = by_technique(&points[0], rank);
        let governor = &own[&Technique::Governor];
        assert_eq!(
            (governor.outcome, own[&Technique::IrqAffinity].outcome),
            (Outcome::NotApplied, Outcome::Applied)
        );
        let why = "it was applied, but another process changed it during the point (the governor of CPU 0: userspace)";
        assert_eq!(governor.reason.as_deref(), Some(why));
    }
}

#[test]
fn guards_that_are_killed_alone_leave_nothing_to_the_points_after() {
    let scratch = scratch();
    let text = plan(OWN, 3).replace("environment = \"own\"", "environment = [\"own\", \"as_is\"]");
    scratch.write("plan.toml", text);
    let mut child = in_the_middle(&scratch);
    guards(&scratch).iter().for_each(|guard| signal(guard.pid, Signal::KILL));
    until("what they had changed is reverted", || values(&scratch) == BEFORE);
    assert!(child.try_wait().unwrap().is_none(), "while the next point is still to be measured");
    let ended = collect(child);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (_, points) = scratch.record("record");
    assert!(all_measured(&points) && points.len() == 2, "{points:?}");
    for condition in &points[0].conditions {
        let reason = condition.reason.as_deref().unwrap_or_default();
        assert!(
            reason.starts_with("it was applied, but could not be checked after the point: "),
            "{condition:?}"
        );
    }
    assert!(!scratch.at("host").join(JOURNAL).exists());
    scratch.assert_nothing_left();
}

#[test]
fn environments_follow_each_other_without_getting_in_each_others_way() {
    let scratch = scratch();
    scratch.write("host/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "ondemand\n");
    let axis = "environment = [\"fast\", \"as_is\", \"slow\"]";
    let environment = |name: &str, governor: &str| {
        format!("[[environment]]\nname = \"{name}\"\ngovernor = \"{governor}\"\n")
    };
    let experiment = |name: &str, axis: &str| {
        format!(
            "[[experiment]]\nname = \"{name}\"\npattern = \"ping-pong\"\niterations = 100\n[experiment.axes]\n\
             size_bytes = 4\n{axis}\n"
        )
    };
    let text = [
        "name = \"e\"\ntitle = \"E\"\n".to_owned(),
        environment("fast", "performance") + &environment("slow", "powersave"),
        experiment("one", axis) + &experiment("two", "environment = \"fast\""),
    ];
    scratch.write("plan.toml", text.concat());
    scratch.succeed(&[&["run", "plan.toml", "--out", "record"][..], &VIA].concat());
    let (_, points) = scratch.record("record");
    assert!(all_measured(&points));
    let found: Vec<Vec<_>> = points
        .iter()
        .map(|point| point.conditions.iter().map(|one| (one.outcome, one.before.as_deref())).collect())
        .collect();
    let applied = (Outcome::Applied, Some("ondemand x 1, powersave x 1"));
    assert_eq!(found, [&[applied; 2][..], &[], &[applied; 2], &[applied; 2]], "{points:#?}");
    assert_eq!(values(&scratch), ["powersave", "ondemand", "0-7"]);
    assert!(!scratch.at("host").join(JOURNAL).exists());
}

/// Installs a tuned that reads its profiles from its own directory.
fn with_tuned(scratch: &Scratch) -> PathBuf {
    let bin = scratch.at("bin");
    fs::create_dir(&bin).unwrap();
    for directory in ["host/etc/tuned", "host/proc/812"] {
        fs::create_dir_all(scratch.at(directory)).unwrap();
    }
    scratch.write("host/proc/812/comm", "tuned\n");
    scratch.write("host/etc/tuned/active_profile", "balanced\n");
    scratch.write("host/etc/tuned/profile_mode", "manual\n");
    let script = format!(
        "#!/bin/sh\nset -e\necho \"$*\" >>{log}\n[ \"$2\" != unknown ] || {{ echo \"Requested profile '$2' doesn't exist.\"; \
         exit 1; }}\n[ \"$1\" != profile ] || echo \"$2\" >{active}\n",
        log = scratch.at("tuned.log").display(),
        active = scratch.at("host/etc/tuned/active_profile").display(),
    );
    scratch.write_script("bin/tuned-adm", script);
    bin
}

#[test]
fn each_technique_stands_in_the_record_with_what_became_of_it() {
    let scratch = scratch();
    let bin = with_tuned(&scratch);
    let environment = format!("{OWN}\ntuned = \"latency-performance\"\nturbo = \"off\"\nnuma = \"device\"");
    scratch.write("plan.toml", plan(&environment, 1));
    let mut command = scratch.program([&["run", "plan.toml", "--out", "record"][..], &VIA].concat());
    let path = std::env::var("PATH").unwrap_or_default();
    let ended = finish({
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
    });
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let (_, points) = scratch.record("record");
    let outcomes = |rank: u32| -> Vec<(Technique, Outcome)> {
        by_technique(&points[0], rank).values().map(|one| (one.technique, one.outcome)).collect()
    };
    let expected = [
        (Technique::Governor, Outcome::Applied),
        (Technique::IrqAffinity, Outcome::Applied),
        (Technique::Numa, Outcome::NotApplied),
        (Technique::Tuned, Outcome::Applied),
        (Technique::Turbo, Outcome::NotApplied),
    ];
    assert_eq!(outcomes(0), expected);
    assert_eq!(outcomes(1), expected);
    let before = |technique: Technique| {
        [0, 1].map(|rank| by_technique(&points[0], rank)[&technique].before.clone().unwrap_or_default())
    };
    // The second rank finds the values from before the first rank.
    assert_eq!(before(Technique::Governor), ["powersave x 1, schedutil x 1"; 2]);
    assert_eq!(before(Technique::Tuned), ["balanced"; 2]);
    let reasons: String = points[0].conditions.iter().filter_map(|one| one.reason.clone()).collect();
    assert!(
        reasons
            .contains("1 of 2 interrupts: the kernel does not move the others (the CPUs of interrupt 25: "),
        "{reasons}"
    );
    assert!(reasons.contains("held by process "), "{reasons}");
    assert_eq!(values(&scratch), BEFORE);
    let log = fs::read_to_string(scratch.at("tuned.log")).unwrap();
    assert_eq!(log, "profile latency-performance\nprofile balanced\n", "once there and once back");
    scratch.assert_nothing_left();
}

#[test]
fn a_profile_that_tuned_does_not_know_is_not_applied_in_its_own_words() {
    let scratch = scratch();
    let bin = with_tuned(&scratch);
    scratch.write("plan.toml", plan("tuned = \"unknown\"", 1));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = scratch.program([&["run", "plan.toml", "--out", "record"][..], &VIA].concat());
    command.env("PATH", path);
    assert_eq!(finish(command).status, Some(0));
    let (_, points) = scratch.record("record");
    let tuned = &by_technique(&points[0], 0)[&Technique::Tuned];
    assert_eq!(tuned.outcome, Outcome::NotApplied);
    let why = "`tuned-adm profile unknown` failed: Requested profile 'unknown' doesn't exist.";
    assert!(tuned.reason.as_ref().is_some_and(|reason| reason.ends_with(why)), "{tuned:?}");
    assert!(!scratch.at("host").join(JOURNAL).exists());
}

/// On this machine, with techniques that end with the process.
#[test]
fn the_process_s_own_is_in_force_while_a_point_is_measured_and_not_after() {
    let scratch = Scratch::alone();
    scratch.write("plan.toml", plan("memory = \"locked\"\ncpu_dma_latency_us = 3\nscheduler = \"rr:1\"", 2));
    // Both ranks have one CPU: with a real-time class, one of them would not run.
    let words = ["run", "plan.toml", "--out", "record", "-d", "softdev0", "--cpus", "0,0"];
    let mut child = scratch.program(words).spawn().unwrap();
    let locked = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("VmLck:") && line != "VmLck:\t       0 kB")
    };
    let request = || fs::read("/dev/cpu_dma_latency").unwrap_or_default();
    let mut was_locked = false;
    let mut was_held = false;
    while child.try_wait().unwrap().is_none() {
        was_locked |= agents(&scratch.token()).iter().any(|agent| locked(agent.pid));
        was_held |= request() == 3_i32.to_ne_bytes();
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = collect(child);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (_, points) = scratch.record("record");
    let own = by_technique(&points[0], 0);
    for (technique, was_seen) in [(Technique::Memory, was_locked), (Technique::CpuDmaLatency, was_held)] {
        match own[&technique].outcome {
            Outcome::Applied => assert!(was_seen, "{technique}"),
            _ => skip("rights", &format!("{:?}", own[&technique])),
        }
    }
    assert_ne!(request(), 3_i32.to_ne_bytes());
    let class = &own[&Technique::Scheduler];
    assert_eq!(class.outcome, Outcome::NotApplied, "{class:?}");
    assert!(class.reason.as_ref().is_some_and(|why| why.starts_with("both ranks have the same CPU")));
}

/// The guards of both ranks start as many threads as there are CPUs, and end them with the point.
#[test]
fn other_work_takes_the_cpus_while_a_point_is_measured_and_not_after() {
    let scratch = scratch();
    scratch.write("plan.toml", plan("stress = \"cpu\"", 2));
    let mut child =
        scratch.program([&["run", "plan.toml", "--out", "record"][..], &VIA].concat()).spawn().unwrap();
    let mut had = BTreeMap::new();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        for guard in guards(&scratch) {
            let ticks = had.entry(guard.pid).or_insert(0);
            *ticks = user_ticks(guard.pid).max(*ticks);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = start.elapsed();
    let ended = collect(child);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    // Both ranks and the load of a CPU share it: the load gets about a half, or a tenth if the
    // machine is busy otherwise.
    let ticks: u64 = had.values().sum();
    assert!(had.len() == 2 && ticks > 20, "{had:?} hundredths of a second of {took:?}");
    let (_, points) = scratch.record("record");
    for rank in [0, 1] {
        let stress = &by_technique(&points[0], rank)[&Technique::Stress];
        assert_eq!((stress.outcome, stress.asked.as_str()), (Outcome::Applied, "cpu"), "{stress:?}");
        let reason = stress.reason.as_deref();
        assert!(reason.is_some_and(|reason| reason.ends_with(" of them")), "{stress:?}");
    }
    scratch.assert_nothing_left();
}

/// Returns the CPU time of a process, in ticks of 10 ms (`utime` of proc_pid_stat(5)).
fn user_ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat_field(&stat, 14).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Returns the program without the rights of root; none if they cannot be dropped.
fn without_rights(scratch: &Scratch) -> Option<Command> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !is_installed("setpriv") {
        skip("setpriv", "the rights of root cannot be dropped");
        return None;
    }
    // A directory that every user may enter.
    let program = scratch.at("rdmascope");
    if !program.exists() {
        copy_program(&program);
    }
    let mut command = if is_root {
        chown(scratch.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = scratch.command("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"])
            .arg(&program);
        command
    } else {
        scratch.command(&program)
    };
    command.env_remove("XDG_RUNTIME_DIR");
    Some(command)
}

#[test]
fn without_rights_nothing_is_applied_and_everything_is_measured() {
    let scratch = Scratch::alone();
    let Some(mut command) = without_rights(&scratch) else { return };
    let words = "lat send --local -d softdev0 -n 100 --environment optimised --out record";
    command.args(words.split(' '));
    let ended = finish(command);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (_, points) = scratch.record("record");
    assert!(all_measured(&points));
    let own = by_technique(&points[0], 0);
    for technique in [Technique::CpuDmaLatency, Technique::Memory] {
        let Some(found) = own.get(&technique) else { panic!("{own:?}") };
        if found.outcome == Outcome::NotApplied {
            skip("the technique", &format!("{found:?}"));
            continue;
        }
        assert_eq!(found.outcome, Outcome::NotPermitted, "{found:?}");
        assert!(found.reason.as_ref().is_some_and(|why| why.contains(" run ")), "{found:?}");
    }
    assert!(own.values().all(|one| one.outcome != Outcome::Applied), "{own:?}");
    scratch.assert_nothing_left();
}

/// A key permits a client only to measure.
#[test]
fn a_client_changes_the_host_of_a_server_only_with_its_leave() {
    for (allow, is_refused) in [(&[][..], true), (&["--allow-environment"], false)] {
        let scratch = Scratch::alone();
        let Some(mut command) = without_rights(&scratch) else { return };
        command.args(["lat", "send", "-d", "softdev0", "-p", "0"]).args(allow);
        let server = Server::of(command);
        let Some(mut command) = without_rights(&scratch) else { return };
        command.args(server.words()).args("-d softdev0 -n 100 --environment event --out record".split(' '));
        let ended = finish(command);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (_, points) = scratch.record("record");
        assert!(all_measured(&points));
        let why =
            "the server does not let its client change this host: start the server with --allow-environment";
        let refused = |rank: u32| {
            let own = by_technique(&points[0], rank);
            let is_refused =
                |one: &&Condition| one.outcome == Outcome::NotPermitted && one.reason.as_deref() == Some(why);
            (own.len(), own.values().filter(is_refused).count())
        };
        assert_eq!(refused(0), (5, 0));
        assert_eq!(refused(1), (5, if is_refused { 5 } else { 0 }));
        assert_eq!(server.end().status, Some(0));
    }
}

/// User and group `nobody`.
const NOBODY: u32 = 65534;
