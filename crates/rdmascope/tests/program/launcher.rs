//! Ranks that a launcher starts. The launcher of these tests starts too few ranks, too many, wrong
//! ones, or none.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::processes::{Process, agents, gone_within, signal, with_token};
use crate::support::{Ended, PROGRAM, Scratch, all_measured, collect, until_measuring};

/// Starts `count` ranks, tells them that there are `size`, and waits for them.
const LAUNCHER: &str = "count=$1 size=$2; shift 2; printf '%s\\n' \"$*\" > arguments; rank=0\n\
    while [ $rank -lt $count ]; do\n\
    PMI_RANK=$rank PMI_SIZE=$size MPI_LOCALRANKID=$rank \"$@\" & rank=$((rank + 1))\n\
    done; wait\n";

/// Makes the session directory of Open MPI's launcher and leaves it, as that launcher does if it is
/// ended at some moments.
const SESSION: &str = "session=$TMPDIR/ompi.$(uname -n).$(id -u)/pid.$$; mkdir -p $session\n\
    echo contact > $session/contact.txt\n";

/// Measures a point of two ranks that a launcher starts.
fn launch(scratch: &Scratch, template: &str, more: &[&str]) -> Ended {
    scratch.write("launcher.sh", LAUNCHER);
    let arguments = ["pairs", "write", "--pairs", "1", "-n", "100", "-d", "softdev0", "--mpi", template];
    scratch.run(&[&arguments[..], more].concat())
}

/// Asserts that the launch fails with one sentence that has these words, and leaves nothing.
#[track_caller]
fn assert_refused(scratch: &Scratch, template: &str, words: &[&str]) -> String {
    let ended = launch(scratch, template, &["--start-timeout", "3"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("rdmascope: "), "{ended:?}");
    for word in words {
        assert!(last.contains(word), "no {word:?} in {last}");
    }
    scratch.assert_nothing_left();
    ended.stderr
}

#[test]
fn ranks_of_a_launcher_measure_as_any_others() {
    let scratch = Scratch::alone();
    let ended = launch(&scratch, "sh launcher.sh {ranks} {ranks}", &["--out", "record"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert!(all_measured(&points), "{points:?}");
    let facts = &run.environments[1].facts["mpi"];
    assert_eq!(facts["launcher"], "sh launcher.sh {ranks} {ranks}");
    assert_ne!(run.environments[0].pinned_cpus, run.environments[1].pinned_cpus, "each has a CPU");
    let arguments = fs::read_to_string(scratch.at("arguments")).unwrap();
    assert!(arguments.contains(" agent ") && arguments.contains("--connect 127.0.0.1:"), "{arguments}");
    assert!(!arguments.contains("KEY") && !arguments.contains("--key"), "{arguments}");
    scratch.assert_nothing_left();
}

#[test]
fn each_number_of_ranks_has_a_launch() {
    let scratch = Scratch::alone();
    scratch.write("launcher.sh", format!("echo launch >> launches\n{LAUNCHER}"));
    let mpi = ["--mpi", "sh launcher.sh {ranks} {ranks}"];
    let pairs = ["pairs", "write", "--pairs", "1,2", "-s", "2,4", "-n", "50", "-d", "softdev0"];
    scratch.succeed(&[&pairs[..], &mpi].concat());
    assert_eq!(fs::read_to_string(scratch.at("launches")).unwrap().lines().count(), 2);
    scratch.assert_nothing_left();
}

/// The command before the launcher, such as an allocation of the site, may need the number, too.
#[test]
fn what_stands_before_the_launcher_is_told_the_number_of_ranks() {
    let scratch = Scratch::alone();
    scratch.write("allocate.sh", "echo \"$1\" > allocated; shift; exec \"$@\"");
    scratch.write_script("mpirun", format!("#!/bin/sh\n{LAUNCHER}"));
    let ended = launch(&scratch, "sh allocate.sh {ranks} ./mpirun {ranks} {ranks}", &[]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(fs::read_to_string(scratch.at("allocated")).unwrap(), "2\n");
    scratch.assert_nothing_left();
}

#[test]
fn ranks_that_are_not_those_of_the_point_are_refused() {
    let scratch = Scratch::waiting();
    let size = ["\"sh launcher.sh 3 3\" started 3, but the point has ranks 0 to 1", "write {ranks}"];
    assert_refused(&scratch, "sh launcher.sh 3 3", &size);
    assert_refused(&scratch, "sh launcher.sh 1 1", &["started 1, but the point has ranks 0 to 1"]);
    let few = ["only 1 of 2 ranks of sh have connected within 3 s", "--mpi-listen", "--start-timeout"];
    assert_refused(&scratch, "sh launcher.sh 1 {ranks}", &few);
    scratch.write("same.sh", "shift 2; export PMI_RANK=1 PMI_SIZE=2; \"$@\" & \"$@\" & wait");
    assert_refused(&scratch, "sh same.sh 2 2", &["started rank 1 twice"]);
    scratch.write("far.sh", "shift 2; PMI_RANK=7 \"$@\" & wait");
    assert_refused(&scratch, "sh far.sh 2 2", &["started a rank 7"]);
}

#[test]
fn a_launcher_that_cannot_says_why() {
    let scratch = Scratch::waiting();
    let missing =
        ["cannot start the launcher \"no-such-mpirun\"", "apt-get install openmpi-bin", "--mpi 'mpirun"];
    assert_refused(&scratch, "no-such-mpirun -np {ranks}", &missing);
    scratch.write("full.sh", "echo 'no queue has two slots' >&2; exit 7");
    let full =
        ["sh ended with exit status 7 when 0 of 2 ranks had connected; it said \"no queue has two slots\""];
    let all = assert_refused(&scratch, "sh full.sh {ranks}", &full);
    assert!(all.contains("[sh] no queue has two slots"), "{all}");
    scratch.write("idle.sh", "exec sleep 1000");
    assert_refused(&scratch, "sh idle.sh {ranks}", &["0 of 2 ranks", "within 3 s"]);
    let usage = launch(&scratch, "sh 'idle.sh", &[]);
    assert_eq!(usage.status, Some(2), "{usage:?}");
    assert!(usage.stderr.contains("it has an unclosed quote"), "{usage:?}");
}

#[test]
fn a_stranger_among_the_ranks_is_not_let_in() {
    let scratch = Scratch::alone();
    // The stranger connects first, with another key.
    let other = "a".repeat(26);
    let script = format!("(shift 2; RDMASCOPE_KEY={other} \"$@\"); {LAUNCHER}");
    scratch.write("stranger.sh", script);
    let ended = launch(&scratch, "sh stranger.sh {ranks} {ranks}", &[]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("was rejected: it has another key"), "{ended:?}");
    assert!(ended.stderr.contains("[sh] rdmascope: "), "the stranger gets an error: {ended:?}");
    scratch.assert_nothing_left();
}

#[test]
fn whoever_is_killed_nothing_is_left() {
    for victim in ["coordinator", "supervisor", "launcher", "rank"] {
        let scratch = Scratch::on_one_cpu();
        scratch.write("launcher.sh", format!("{SESSION}{LAUNCHER}"));
        let words = [
            "pairs", "write", "--pairs", "1", "--stream", "-D", "60", "-d", "softdev0", "--out", "r", "--mpi",
        ];
        let child =
            scratch.program([&words[..], &["sh launcher.sh {ranks} {ranks}"]].concat()).spawn().unwrap();
        let ranks = || {
            let is_rank = |process: &Process| {
                process.command.starts_with(*PROGRAM) && !process.command.contains(" supervise ")
            };
            agents(&scratch.token()).into_iter().filter(is_rank).collect::<Vec<_>>()
        };
        let mut child = until_measuring(child, &scratch.at("r"));
        let all = with_token(&scratch.token());
        let pid = match victim {
            "coordinator" => child.id().cast_signed(),
            "supervisor" => all.iter().find(|process| process.command.contains(" supervise ")).unwrap().pid,
            "launcher" => {
                all.iter().find(|process| process.command.starts_with("sh launcher.sh")).unwrap().pid
            }
            _ => ranks()[1].pid,
        };
        signal(pid, Signal::KILL);
        if victim == "coordinator" {
            child.wait().unwrap();
        } else {
            let ended = collect(child);
            assert_eq!(ended.status, Some(1), "{victim}: {ended:?}");
        }
        let left = gone_within(&scratch.token(), Duration::from_secs(20));
        assert!(left.is_empty(), "{victim}: {left:?}");
        eprintln!("{victim} was killed");
        scratch.assert_nothing_left();
    }
}
