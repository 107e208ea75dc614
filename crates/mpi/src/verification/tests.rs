//! Wrong constants in real libraries. The test starts this binary again as a process without a
//! launcher, because a process can initialise MPI only once.

use std::process::Command;

use crate::abi::Constants;
use crate::library::Library;
use crate::world::{ThreadLevel, World};

/// The variable with the constant to change.
const WRONG: &str = "RDMASCOPE_TEST_MPI_WRONG";
const LIBRARY: &str = "RDMASCOPE_TEST_MPI_LIBRARY";

/// A constant, the change to it, and a part of the expected error.
type Case = (&'static str, fn(&mut Constants), &'static str);

const CASES: [Case; 6] = [
    (
        "datatype",
        |wrong| std::mem::swap(&mut wrong.handles.double, &mut wrong.handles.float),
        "MPI_Type_size of Double is 4",
    ),
    (
        "source",
        |wrong| wrong.numbers.status_source = wrong.numbers.status_tag,
        "MPI_SOURCE of the status is 4711",
    ),
    ("tag", |wrong| wrong.numbers.status_tag = wrong.numbers.status_source, "MPI_TAG of the status is 0"),
    ("size", |wrong| wrong.numbers.status_bytes = 8, "MPI_Status is longer"),
    ("any source", |wrong| wrong.numbers.any_source = -77, "MPI_Sendrecv (rank 0) failed"),
    ("nothing", |_| (), "a communicator, slots, a collective or a window is in use"),
];

/// Not a test by itself: the process that opens the library and must fail.
#[test]
fn process_with_a_wrong_constant() {
    let Ok(name) = std::env::var(WRONG) else { return };
    let library = Library::open(std::env::var(LIBRARY).expect("it is set")).expect("it can be opened");
    let (_, change, _) = CASES.iter().find(|(case, ..)| *case == name).expect("there is such a case");
    let library = library.with_constants(change);
    match World::init(library, ThreadLevel::Funneled) {
        Err(error) => println!("said: {error}"),
        Ok(world) => {
            let _used = world.communicator();
            println!("said: {}", world.finalize().expect_err("a communicator is in use"));
        }
    }
    // MPI is not finalised: its handlers at exit may complain.
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) };
}

#[test]
fn a_wrong_constant_is_a_sentence() {
    for library in ["libmpi.so.40", "libmpich.so.12"] {
        // Opened by another process, since this one may open only one.
        for (case, _, expected) in CASES {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["verification::tests::process_with_a_wrong_constant", "--exact", "--nocapture"])
                .envs([(WRONG, case), (LIBRARY, library)])
                .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
                .output()
                .expect("it starts");
            let printed = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            if errors.contains("cannot open shared object file") || errors.contains("NotFound") {
                let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
                assert!(!required.split(',').any(|word| word == "mpi"), "{library} is required here");
                println!("SKIPPED: {library} is not installed");
                break;
            }
            assert!(
                printed.contains("said: ") && printed.contains(expected),
                "{library}, {case}: {printed}{errors}"
            );
        }
    }
}
