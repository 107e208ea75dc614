//! The one script for checks, locally and in CI: `cargo xtask COMMAND`.

mod bench;
mod check;
mod ci;
mod dist;
mod fuzz;
mod imports;
mod packages;
mod parity;
mod pictures;
mod process;
mod programs;
mod races;
mod rooms;
mod shell;
mod stats;
mod suite;
mod tidy;
mod verdicts;
mod vm;
mod vm_tests;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check     run before each commit: format, lints, house rules, documentation, licences, and the unit tests of all crates
  tidy      checks only the house rules (CONTRIBUTING.md); --circles prints the files that need each other, with their imports
  test      runs all tests. A test whose requirement is missing prints SKIPPED. A test that fails is repeated once, alone; if
            it then passes, the run continues and prints `flaky: NAME`
  ci        installs what the tests need (packages only as root), then runs check, rooms --apply, test and verdicts --quick;
            no test may be skipped. --full adds the longer stages, and all that needs the optimised program
  bench     checks the performance claims: compares softdev with UCX, libfabric, Open MPI and the raw limits of two CPUs, as
            ratios within one run (--help)
  dist      builds the packages of a release: Debian package, tarball, OCI image, bills of materials; --check runs each in
            a clean root (--help)
  fuzz      runs the fuzz targets from the inputs in fuzz/corpus; needs Rust's nightly (--help)
  parity    compares rdmascope with perftest, qperf, sockperf, iperf3 and MPI benchmarks, as ratios (--help)
  pictures  measures the plan quick and makes docs/report.png of its report; needs chromium
  programs  runs unmodified verbs programs on softdev and compares each result with the expected one (--help)
  races     runs softdev's concurrent code under ThreadSanitizer and Miri; needs Rust's nightly (--help)
  rooms     counts the files that a new pattern, axis, column or endpoint needs: applies, builds and tries a patch of each
            (xtask/rooms/)
  verdicts  proves the rates of error of verdicts (fleets, comparisons, trends) by simulation, or with --fleets N by fleets
            that rdmascope measures (--help)
  vm        runs a command in a virtual machine with a kernel device, rxe0 (--help)
  vm-tests  runs the tests that need features of a kernel, in three boots of that machine: the behaviour of rxe0
            (--conformance), rdmascope on rxe0, netem and SCTP (--programs), and two machines (--two-machines)";

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
        "dist" => dist::with(std::env::args().skip(2)),
        "fuzz" => fuzz::run(std::env::args().skip(2)),
        "parity" => return parity::run(std::env::args().skip(2)),
        "pictures" => pictures::run(),
        "programs" => return programs::run(std::env::args().skip(2)),
        "races" => races::run(std::env::args().skip(2)),
        "rooms" => rooms::with(std::env::args().skip(2)),
        "test" => check::test(&[]),
        "tidy" => tidy::with(std::env::args().skip(2)),
        "verdicts" => verdicts::with(std::env::args().skip(2)),
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
