//! The one script for checks, locally and in CI: `cargo xtask COMMAND`.

mod bench;
mod check;
mod ci;
mod fuzz;
mod imports;
mod packages;
mod parity;
mod process;
mod programs;
mod races;
mod rooms;
mod shell;
mod stats;
mod suite;
mod tidy;
mod vm;
mod vm_tests;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check     format, lints, house rules, documentation, licences, and the unit tests of all crates: before each commit
  tidy      the house rules alone (ARCHITECTURE.md); --circles prints the files that need each other, and for what
  test      all tests; what needs a thing that is not installed is skipped and says so. A test that fails is repeated once,
            alone: `flaky: NAME` is one that then passes
  ci        installs what the tests need (packages only as root), then what check does, test, rooms --apply,
            vm-tests --programs, parity --quick, programs --quick and a quick run; no test is skipped. --full adds
            what takes longer
  bench     the project's performance claims: softdev beside UCX, libfabric, Open MPI and the raw limits, as ratios measured
            side by side in one run (--help tells more)
  fuzz      the fuzz targets, where Rust's nightly is installed, from the inputs that are kept (--help tells more)
  parity    rdmascope beside perftest and qperf, as ratios: on rxe0, in two boots, and on softdev (--help tells more)
  programs  unmodified verbs programs on softdev, each compared with how it is expected to end (--help tells more)
  races     softdev's concurrent code under ThreadSanitizer and Miri, where Rust's nightly is installed (--help tells more)
  rooms     how many files a new pattern, axis, column and endpoint touch: applies, builds and tries a patch of each
            (xtask/rooms/), and counts names of patterns outside their own code
  vm        runs a command in a virtual machine with a real kernel device, rxe0 (--help tells more)
  vm-tests  the tests that need what a kernel has, in three boots of that machine: how rxe0 behaves (--conformance), our
            program on rxe0, netem and SCTP (--programs), and what goes between two machines (--two-machines)";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    if let Err(error) = shell::program() {
        eprintln!("xtask: {error:#}");
        return ExitCode::FAILURE;
    }
    let result = match command.as_str() {
        "bench" => return bench::run(std::env::args().skip(2)),
        "check" => check::run(),
        "ci" => ci::with(std::env::args().skip(2)),
        "fuzz" => fuzz::run(std::env::args().skip(2)),
        "parity" => return parity::run(std::env::args().skip(2)),
        "programs" => return programs::run(std::env::args().skip(2)),
        "races" => races::run(std::env::args().skip(2)),
        "rooms" => rooms::with(std::env::args().skip(2)),
        "test" => check::test(&[]),
        "tidy" => tidy::with(std::env::args().skip(2)),
        "vm-tests" => vm_tests::run(std::env::args().skip(2)),
        "vm" => return vm::run(std::env::args_os().skip(2)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
