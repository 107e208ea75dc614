//! Launches of MPI in which a process is killed at any moment: nothing is left on the host, and a
//! surviving coordinator measures the next point or says why it cannot.

use std::collections::BTreeSet;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use measure::record::Status;
use rustix::process::Signal;

use crate::support::moments::Moments;
use crate::support::processes::{Process, gone_within, signal, with_token};
use crate::support::{Ended, PROGRAM, Scratch, collect, is_installed, skip, wait};

/// A launcher, and the first word of its processes.
struct Mpi {
    launcher: &'static str,
    template: &'static str,
}

const OPEN_MPI: Mpi =
    Mpi { launcher: "mpirun.openmpi", template: "mpirun.openmpi --oversubscribe -np {ranks}" };
const MPICH: Mpi = Mpi { launcher: "mpirun.mpich", template: "mpirun.mpich -np {ranks}" };

/// The first point takes about as long as the start of the ranks. Other ranks have to measure the
/// second point.
const PLAN: &str = r#"
name = "killed"
title = "Killed"
[[experiment]]
name = "first"
pattern = "ping-pong"
iterations = 1500000
keep_samples = false
timeout = "20s"
axes = { endpoint = "mpi", size_bytes = 8 }
[[experiment]]
name = "second"
pattern = "ping-pong"
iterations = 100
axes = { endpoint = "mpi", size_bytes = 8 }
"#;

/// Kills for each MPI, of each kind of process in turn. `cargo xtask ci --full` sets more; another
/// seed gives other moments.
const KILLS: usize = 6;
const KILLS_VARIABLE: &str = "RDMASCOPE_KILLS";
const SEED_VARIABLE: &str = "RDMASCOPE_KILLS_SEED";
/// Moments are between the start and the end of both points in a run without a kill.
const RUN: Duration = Duration::from_millis(1400);
/// How long unneeded processes and files may stay.
const GONE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Victim {
    Coordinator,
    Supervisor,
    Launcher,
    /// The first or the last one.
    Rank(usize),
}

const VICTIMS: [Victim; 6] = [
    Victim::Coordinator,
    Victim::Supervisor,
    Victim::Launcher,
    Victim::Rank(0),
    Victim::Coordinator,
    Victim::Rank(1),
];

impl Victim {
    /// Returns the process, if it runs now.
    fn find(self, scratch: &Scratch, coordinator: &Child, mpi: &Mpi) -> Option<i32> {
        let of_program = |process: &Process| process.command.starts_with(*PROGRAM);
        let supervises = |process: &Process| of_program(process) && process.command.contains(" supervise ");
        let all = with_token(&scratch.token());
        let first = |is: &dyn Fn(&Process) -> bool| all.iter().find(|process| is(process)).map(|it| it.pid);
        match self {
            Self::Coordinator => Some(coordinator.id().cast_signed()),
            Self::Supervisor => first(&supervises),
            Self::Launcher => first(&|process| process.command.starts_with(&format!("{} ", mpi.launcher))),
            Self::Rank(number) => {
                let is_rank = |process: &&Process| {
                    of_program(process) && process.command.contains(" agent ") && !supervises(process)
                };
                all.iter().filter(is_rank).nth(number).map(|process| process.pid)
            }
        }
    }
}

/// Returns shared memory of Open MPI ranks that no process has mapped.
fn orphaned_segments() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let segments: BTreeSet<String> = names.filter(|name| name.starts_with("vader_segment.")).collect();
    if segments.is_empty() {
        return segments;
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let maps: String =
        processes.filter_map(|entry| fs::read_to_string(entry.path().join("maps")).ok()).collect();
    segments.into_iter().filter(|name| !maps.contains(name.as_str())).collect()
}

/// Returns files of launches outside of the directory of the test.
fn leavings() -> BTreeSet<String> {
    let sessions = fs::read_dir("/tmp").into_iter().flatten().flatten();
    let sessions = sessions.filter_map(|entry| entry.file_name().into_string().ok());
    orphaned_segments().into_iter().chain(sessions.filter(|name| name.starts_with("ompi."))).collect()
}

/// Starts a run, kills one of its processes after a time, and returns what becomes of the run.
fn kill(mpi: &Mpi, victim: Victim, moment: Duration) -> &'static str {
    let before = leavings();
    let scratch = Scratch::alone();
    scratch.write("plan.toml", PLAN);
    let arguments = ["run", "plan.toml", "--out", "record", "--mpi", mpi.template];
    let mut child = scratch.program(arguments).spawn().unwrap();
    std::thread::sleep(moment);
    let found = victim.find(&scratch, &child, mpi);
    found.into_iter().for_each(|pid| signal(pid, Signal::KILL));
    let ended = if victim == Victim::Coordinator {
        wait(&mut child);
        None
    } else {
        Some(collect(child))
    };
    let what = format!("{} {victim:?} after {moment:?} (found: {})", mpi.launcher, found.is_some());
    let since = Instant::now();
    let left = gone_within(&scratch.token(), GONE);
    assert!(left.is_empty(), "{what}: left {left:?}, {ended:?}");
    let new = || leavings().difference(&before).cloned().collect::<Vec<_>>();
    while !new().is_empty() && since.elapsed() < GONE {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(new().is_empty(), "{what}: left {:?}, {ended:?}", new());
    eprintln!("{what}");
    scratch.assert_nothing_left();
    ended.map_or("coordinator killed", |ended| outcome(&scratch, &ended, &what))
}

/// Returns how a run ended, if its coordinator was not killed.
#[track_caller]
fn outcome(scratch: &Scratch, ended: &Ended, what: &str) -> &'static str {
    let points = match scratch.at("record/run.json").exists() {
        true => scratch.record("record").1,
        false => Vec::new(),
    };
    let statuses: Vec<&Status> = points.iter().map(|point| &point.status).collect();
    let told = || ended.stderr.lines().last().unwrap_or_default().starts_with("rdmascope: ");
    match (ended.status, &statuses[..]) {
        (Some(0), [Status::Measured, Status::Measured]) => "not disturbed",
        (Some(4), [Status::Failed { error }, Status::Measured]) if error.contains("rank") => "next measured",
        (Some(4), [Status::Measured, Status::Failed { error }]) if error.contains("rank") => "second failed",
        (Some(1), []) if told() => "no point, a sentence",
        _ => panic!("{what}: {statuses:?}, {ended:?}"),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn kill_many(mpi: &Mpi, seed: u64) {
    if !is_installed(mpi.launcher) {
        return skip("mpi", &format!("there is no {}", mpi.launcher));
    }
    let kills = number(KILLS_VARIABLE).map_or(KILLS, |kills| kills as usize);
    let seed = number(SEED_VARIABLE).unwrap_or(seed);
    eprintln!("{}: {kills} kills, seed {seed}", mpi.launcher);
    let mut moments = Moments(seed);
    let mut outcomes = std::collections::BTreeMap::new();
    for victim in VICTIMS.into_iter().cycle().take(kills) {
        *outcomes.entry(kill(mpi, victim, moments.next(RUN))).or_insert(0) += 1;
    }
    eprintln!("{}: {outcomes:?}", mpi.launcher);
    assert!(outcomes.contains_key("next measured"), "the moments are spread over the run: {outcomes:?}");
}

#[test]
fn a_launch_of_open_mpi_that_is_killed_leaves_nothing() {
    kill_many(&OPEN_MPI, 0x6A09_E667_F3BC_C908);
}

#[test]
fn a_launch_of_mpich_that_is_killed_leaves_nothing() {
    kill_many(&MPICH, 0xBB67_AE85_84CA_A73B);
}
