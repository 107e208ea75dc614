//! Ranks and agents that Slurm starts, with a Slurm that the test starts: what is measured, which
//! libraries do not fit, and what is left of a job after its coordinator or launcher was killed.

use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use measure::record::{Point, Run, Status};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::support::processes::{Process, gone_within, signal, with_token};
use crate::support::slurm::Cluster;
use crate::support::{
    DEADLINE, Ended, PROGRAM, Scratch, all_measured, collect, finish, until_measuring, wait,
};

/// Commands by which srun connects the ranks of each library.
const PMIX: &str = "srun --mpi=pmix -K1 -n {ranks}";
const PMI2: &str = "srun --mpi=pmi2 -n {ranks}";
const NONE: &str = "srun --mpi=none -n {ranks}";
/// How long a job may take to end: the time of its step, after `KillWait`.
const JOB_ENDS: Duration = Duration::from_secs(10);

fn program(scratch: &Scratch, cluster: &Cluster, arguments: &[&str]) -> Command {
    let mut command = scratch.program(arguments);
    let (name, value) = cluster.variable();
    command.env(name, value);
    command
}

/// Measures a latency between two ranks.
fn latency(scratch: &Scratch, cluster: &Cluster, template: &str, more: &[&str]) -> Ended {
    let arguments = ["lat", "mpi", "-s", "8", "-n", "300", "--out", "record", "--mpi", template];
    finish(program(scratch, cluster, &[&arguments[..], more].concat()))
}

#[track_caller]
fn assert_nothing_left(scratch: &Scratch, cluster: &Cluster) {
    let jobs = cluster.jobs_after(JOB_ENDS);
    assert_eq!(jobs, "", "jobs are left");
    scratch.assert_nothing_left();
}

/// Returns the name that the library of every rank reports; asserts that each rank has its own CPU.
fn library((run, points): (Run, Vec<Point>)) -> String {
    assert!(all_measured(&points), "{points:?}");
    let cpus = run.environments.iter().map(|environment| environment.pinned_cpus.clone());
    let cpus: Vec<_> = cpus.collect();
    assert!(cpus.len() == 2 && cpus[0] != cpus[1], "each rank has a CPU: {cpus:?}");
    run.environments[1].facts["mpi"]["library"].clone()
}

#[test]
fn the_ranks_of_slurm_are_measured_with_the_library_that_fits() {
    let scratch = Scratch::on_all_cpus();
    let Some(cluster) = Cluster::new() else { return };
    for (template, more, name) in [
        (PMIX, &[][..], "Open MPI v"),
        (PMI2, &["--mpi-library", "libmpich.so.12"], "MPICH "),
        (PMI2, &[], "MPICH "),
    ] {
        let ended = latency(&scratch, &cluster, template, more);
        assert_eq!(ended.status, Some(0), "{template}: {ended:?}");
        assert!(library(scratch.record("record")).starts_with(name), "{template}: {ended:?}");
        assert_nothing_left(&scratch, &cluster);
        fs::remove_dir_all(scratch.at("record")).unwrap();
    }
}

#[test]
fn ranks_of_slurm_that_are_alone_are_a_sentence() {
    let scratch = Scratch::waiting();
    let Some(cluster) = Cluster::new() else { return };
    let alone = ["MPI_COMM_WORLD has size ", "MPICH ", "srun", "--mpi-library"];
    let library = ["--mpi-library", "libmpich.so.12"];
    for (template, more, words) in [
        (NONE, &library[..], &alone[..]),
        (PMIX, &library, &alone),
        (NONE, &[], &["Slurm gave the rank no PMI", "add --mpi=pmix"]),
    ] {
        let ended = latency(&scratch, &cluster, template, more);
        assert_eq!(ended.status, Some(1), "{template}: {ended:?}");
        let (_, points) = scratch.record("record");
        let Status::Failed { error } = &points[0].status else { panic!("{:?}", points[0].status) };
        for word in words {
            assert!(error.contains(word), "{template}: no {word:?} in {error}");
        }
        assert_nothing_left(&scratch, &cluster);
        fs::remove_dir_all(scratch.at("record")).unwrap();
    }
}

/// Starts a run with a long point, and waits until it is in the middle of the point.
fn in_a_point(scratch: &Scratch, cluster: &Cluster, template: &str) -> Child {
    let arguments = ["lat", "mpi", "-s", "8", "-D", "60", "--out", "record", "--mpi", template];
    let child = program(scratch, cluster, &arguments).spawn().unwrap();
    let child = until_measuring(child, &scratch.at("record"));
    // MPI is initialised, and messages are sent.
    std::thread::sleep(Duration::from_millis(700));
    child
}

/// The process that is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Victim {
    Coordinator,
    Supervisor,
    /// Only srun, which has a helper that cancels the job.
    Launcher,
    /// srun and its helper.
    LauncherGroup,
    Rank,
}

/// Kills a process in the middle of a point.
fn kill(victim: Victim, template: &str) {
    let scratch = Scratch::on_all_cpus();
    let Some(cluster) = Cluster::new() else { return };
    let mut child = in_a_point(&scratch, &cluster, template);
    let all = with_token(&scratch.token());
    let find = |is: &dyn Fn(&Process) -> bool| {
        let found = all.iter().filter(|process| is(process)).map(|process| process.pid).min();
        found.unwrap_or_else(|| panic!("no {victim:?} in {all:?}"))
    };
    let is_rank = |process: &Process| {
        process.command.starts_with(*PROGRAM)
            && process.command.contains(" agent ")
            && !process.command.contains(" supervise ")
    };
    match victim {
        Victim::Coordinator => signal(child.id().cast_signed(), Signal::KILL),
        Victim::Supervisor => signal(find(&|process| process.command.contains(" supervise ")), Signal::KILL),
        Victim::Launcher => signal(find(&|process| process.command.starts_with("srun ")), Signal::KILL),
        Victim::LauncherGroup => {
            let group = find(&|process| process.command.starts_with("srun "));
            kill_process_group(Pid::from_raw(group).unwrap(), Signal::KILL).unwrap();
        }
        Victim::Rank => signal(find(&is_rank), Signal::KILL),
    }
    if victim == Victim::Coordinator {
        wait(&mut child);
    } else {
        let ended = collect(child);
        assert_eq!(ended.status, Some(1), "{victim:?}: {ended:?}");
        assert!(ended.stderr.contains("1 of 1 points failed"), "{victim:?}: {ended:?}");
        let (_, points) = scratch.record("record");
        let Status::Failed { error } = &points[0].status else { panic!("{:?}", points[0].status) };
        let is_told = victim != Victim::Rank || error.contains("was killed by signal 9");
        assert!(is_told, "{victim:?}, {template}: {error}, {ended:?}");
    }
    let left = gone_within(&scratch.token(), Duration::from_secs(5));
    assert!(left.is_empty(), "{victim:?}: {left:?}");
    assert_nothing_left(&scratch, &cluster);
}

#[test]
fn whoever_of_a_job_is_killed_nothing_is_left() {
    for (victim, template) in [
        (Victim::Coordinator, PMIX),
        (Victim::LauncherGroup, PMI2),
        (Victim::Rank, PMIX),
        (Victim::Supervisor, PMIX),
        (Victim::Launcher, PMI2),
    ] {
        kill(victim, template);
    }
}

/// srun runs in an existing job of the user, from outside of the job.
#[test]
fn a_job_of_the_user_outlives_the_launch_in_it() {
    let scratch = Scratch::on_all_cpus();
    let Some(cluster) = Cluster::new() else { return };
    let of_slurm = |words: &[&str]| {
        let (name, value) = cluster.variable();
        let ended = Command::new(words[0]).args(&words[1..]).env(name, value).output().unwrap();
        assert!(ended.status.success(), "{words:?}: {ended:?}");
    };
    of_slurm(&["salloc", "--no-shell", "-n", "2", "-J", "of-the-user"]);
    let before = cluster.jobs();
    let job = before.split(' ').next().unwrap();
    let template = format!("srun --jobid={job} --mpi=pmi2 -n {{ranks}}");
    let child = in_a_point(&scratch, &cluster, &template);
    let all = with_token(&scratch.token());
    let launcher = all.iter().filter(|process| process.command.starts_with("srun "));
    let group = launcher.map(|process| process.pid).min().unwrap();
    kill_process_group(Pid::from_raw(group).unwrap(), Signal::KILL).unwrap();
    let ended = collect(child);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_eq!(cluster.jobs(), before, "the job is the user's");
    let left = gone_within(&scratch.token(), JOB_ENDS);
    assert!(left.is_empty(), "the step is not: {left:?}");
    of_slurm(&["scancel", job]);
    assert_nothing_left(&scratch, &cluster);
}

/// The names of the measured members of a fleet; asserts that no other member was left out.
#[track_caller]
fn members(scratch: &Scratch, ended: &Ended) -> Vec<String> {
    let (run, points) = scratch.record("fleet");
    assert!(!points.is_empty() && all_measured(&points), "{ended:?}");
    let fleet = run.fleet.unwrap();
    assert!(fleet.left.is_empty() && fleet.examined.is_some(), "{ended:?}");
    fleet.members.into_iter().map(|member| member.name).collect()
}

/// Two passes fewer than usual, and little to measure: agents start through a real Slurm all the
/// same.
const FLEET: &str = "tcp --passes 1 -n 50 -D 20ms --visits-apart 0 --out fleet";

/// Inside an allocation, nothing but what is measured is typed: the nodes and the way into them are
/// Slurm's. The same as a job of a batch, which runs on its first node.
#[test]
fn a_fleet_in_an_allocation_has_the_nodes_of_the_job() {
    let scratch = Scratch::on_all_cpus();
    let Some(cluster) = Cluster::with_nodes(4) else { return };
    let (name, value) = cluster.variable();
    scratch.write("job.sh", format!("#!/bin/sh\nexec {} fleet {FLEET}\n", *PROGRAM));
    for (way, expected) in [
        (&format!("salloc --quiet -N 3 \"$0\" fleet {FLEET}"), "n1 n2 n3"),
        (&"sbatch --quiet --wait -w n2,n4 -o job.out job.sh".to_owned(), "n2 n4"),
    ] {
        let mut shell = scratch.shell(way);
        shell.env(name, &value);
        let ended = finish(shell);
        // Too few members for a verdict.
        assert_eq!(ended.status, Some(1), "{way}: {ended:?}");
        assert_eq!(members(&scratch, &ended).join(" "), expected, "{way}: {ended:?}");
        assert_nothing_left(&scratch, &cluster);
        fs::rename(scratch.at("fleet"), scratch.at(expected)).unwrap();
    }
    // The job of the second fleet has ended before it did. It goes on in a job with its nodes.
    fs::rename(scratch.at("n2 n4"), scratch.at("fleet")).unwrap();
    cut(&scratch);
    for (job, why) in [
        ("salloc --quiet -w n1,n2", "this Slurm job lacks n4: resume it in a job that has all of its hosts"),
        ("", "its hosts are nodes of a Slurm job: resume it in a job that has them"),
    ] {
        let mut shell = scratch.shell(&format!("{job} \"$0\" fleet --resume fleet"));
        shell.env(name, &value);
        let ended = finish(shell);
        assert_eq!(ended.status, Some(2), "{job}: {ended:?}");
        assert!(ended.stderr.contains(&format!("cannot resume fleet: {why}")), "{job}: {ended:?}");
    }
    let mut shell = scratch.shell("salloc --quiet -N 4 \"$0\" fleet --resume fleet");
    shell.env(name, &value);
    let ended = finish(shell);
    assert_eq!((ended.status, members(&scratch, &ended).join(" ").as_str()), (Some(1), "n2 n4"), "{ended:?}");
    assert_nothing_left(&scratch, &cluster);
}

/// Takes the end away from the record of a fleet, as a kill does.
fn cut(scratch: &Scratch) {
    let file = scratch.at("fleet/run.json");
    let mut run: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    run.as_object_mut().unwrap().remove("ended");
    run["fleet"].as_object_mut().unwrap().remove("examined");
    fs::write(file, run.to_string()).unwrap();
    let points = fs::read_to_string(scratch.at("fleet/points.jsonl")).unwrap();
    let lines: Vec<&str> = points.lines().collect();
    let kept: String = lines[..lines.len() - 1].iter().map(|line| format!("{line}\n")).collect();
    fs::write(scratch.at("fleet/points.jsonl"), kept).unwrap();
}

/// From outside of a job, each agent is a job of its own.
#[test]
fn a_fleet_reaches_nodes_with_srun_from_outside() {
    let scratch = Scratch::on_all_cpus();
    let Some(cluster) = Cluster::with_nodes(3) else { return };
    let via = "srun --quiet --nodes=1 --ntasks=1 --nodelist={host}";
    let words = ["fleet", "--hosts", "n[1-3]", "--via", via];
    let ended =
        finish(program(&scratch, &cluster, &[&words[..], &FLEET.split(' ').collect::<Vec<_>>()].concat()));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_eq!(members(&scratch, &ended), ["n1", "n2", "n3"]);
    assert_nothing_left(&scratch, &cluster);
    // Whatever ends the coordinator, the jobs of its agents end as well.
    for signal_of_end in [Signal::INT, Signal::TERM, Signal::KILL] {
        fs::remove_dir_all(scratch.at("fleet")).unwrap();
        let long = ["tcp", "-n", "50", "-D", "10s", "--out", "fleet"];
        let mut child = program(&scratch, &cluster, &[&words[..], &long].concat()).spawn().unwrap();
        let start = Instant::now();
        while fs::read_to_string(scratch.at("fleet/points.jsonl")).unwrap_or_default().is_empty() {
            assert!(start.elapsed() < DEADLINE, "nothing is measured");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(cluster.jobs().lines().count(), 3, "each agent has a job");
        signal(child.id().cast_signed(), signal_of_end);
        wait(&mut child);
        assert_nothing_left(&scratch, &cluster);
    }
}
