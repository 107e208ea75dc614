//! Programs of several ranks under the installed launchers. `mpirun` starts this file's own binary
//! again.
//!
//! The launchers are those of Debian's Open MPI and MPICH. `RDMASCOPE_MPI5_PREFIX` names the
//! directory of an MPICH 5, to test the standard ABI as well (`pip download mpich` has one).

mod collectives;
mod launch;
mod messages;
mod others;

use std::ffi::OsStr;

use launch::{Launcher, run};
use mpi::{Library, ThreadLevel, World};

/// The variable that makes a process a rank of a program.
const PROGRAM: &str = "RDMASCOPE_TEST_MPI_PROGRAM";

/// A check, and its name.
type Check = (&'static str, fn(&World));

/// What a program checks.
fn checks(program: &str) -> &'static [Check] {
    match program {
        "messages" => messages::CHECKS,
        "collectives" => collectives::CHECKS,
        "grid" => others::GRID,
        "windows" => others::WINDOWS,
        "unfinished" => others::UNFINISHED,
        _ => panic!("there is no program {program}"),
    }
}

/// Not a test by itself: the program of a rank.
#[test]
fn rank_program() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    let candidates = mpi::search::candidates(|name| std::env::var(name).ok());
    let library = candidates.iter().find_map(|candidate| Library::open(&candidate.name).ok());
    let library = library.expect("the launcher's library can be opened");
    let world = World::init(library, ThreadLevel::Funneled).unwrap_or_else(|error| panic!("{error}"));
    println!("library: {} at {}", library.version(), library.path().display());
    for (name, check) in checks(&program) {
        check(&world);
        println!("passed: {name}.");
    }
    assert_eq!(mpi::current_call(), None);
    assert!(
        World::init(library, ThreadLevel::Funneled)
            .is_err_and(|error| error.to_string().contains("only once"))
    );
    world.finalize().unwrap_or_else(|error| panic!("{error}"));
    println!("finalized");
}

/// Runs a program under every launcher; each rank has to pass all checks.
fn under_every_launcher(program: &str, ranks: usize) {
    for launcher in Launcher::all() {
        let printed = run(&launcher, ranks, program);
        for (name, _) in checks(program) {
            let passed = printed.matches(&format!("passed: {name}.")).count();
            assert_eq!(passed, ranks, "{name} under {launcher:?}:\n{printed}");
        }
        let version = format!("library: {}", launcher.version);
        assert_eq!(printed.matches(&version).count(), ranks, "{launcher:?}:\n{printed}");
        assert_eq!(printed.matches("finalized").count(), ranks, "{launcher:?}:\n{printed}");
    }
}

#[test]
fn messages_arrive_as_they_were_sent() {
    under_every_launcher("messages", 2);
}

#[test]
fn messages_of_one_rank_to_itself_arrive() {
    under_every_launcher("messages", 1);
}

#[test]
fn collectives_have_the_right_results() {
    under_every_launcher("collectives", 2);
    under_every_launcher("collectives", 3);
}

#[test]
fn collectives_of_one_rank_have_the_right_results() {
    under_every_launcher("collectives", 1);
}

#[test]
fn neighbours_of_a_grid_exchange_their_sides() {
    under_every_launcher("grid", 4);
}

#[test]
fn windows_are_written_and_read() {
    under_every_launcher("windows", 2);
}

#[test]
fn unfinished_requests_end_with_their_owner() {
    under_every_launcher("unfinished", 2);
}

/// A process without a launcher is rank 0 of 1.
#[test]
fn a_process_without_a_launcher_is_alone() {
    for launcher in Launcher::all() {
        let printed = launch::run_alone(&launcher, "messages");
        assert_eq!(printed.matches("passed: ").count(), messages::CHECKS.len(), "{launcher:?}:\n{printed}");
    }
}

#[test]
fn a_second_library_is_refused() {
    let launchers = Launcher::all();
    let Some(first) = launchers.first() else { return };
    let library = Library::open(&first.library).expect("it is installed");
    assert!(std::ptr::eq(library, Library::open(library.path()).expect("it is the same")));
    assert!(library.version().starts_with(first.version), "{}", library.version());
    assert_eq!(library.abi(), first.abi);
    for other in launchers.iter().skip(1) {
        let text = Library::open(&other.library).expect_err("it is another").to_string();
        assert!(text.contains("cannot open") && text.contains(&other.library), "{text}");
    }
    assert!(Library::open(OsStr::new("libc.so.6")).is_err());
}
