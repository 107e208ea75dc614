//! `cargo xtask ci`: all checks and tests, of which none may be skipped.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::packages::install;
use crate::{check, dist, parity, programs, rooms, shell, verdicts, vm, vm_tests};

/// Debian packages that tests need, each with one of its files: a browser with fonts, headers to
/// verify the ABI, nftables to drop packets between network namespaces, message libraries, Slurm
/// with its PMI, tools to compare with, applications, programs of librdmacm, a packet
/// dissector, and checkers of metrics and of units.
const PACKAGES: [(&str, &str); 21] = [
    ("chromium", "/usr/bin/chromium"),
    ("fonts-dejavu-core", "/usr/share/fonts/truetype/dejavu"),
    ("hpcc", "/usr/bin/hpcc"),
    ("iperf3", "/usr/bin/iperf3"),
    ("lammps", "/usr/bin/lmp"),
    ("libibverbs-dev", "/usr/include/infiniband/verbs.h"),
    ("libnanomsg5", "/usr/share/doc/libnanomsg5"),
    ("libnng1", "/usr/share/doc/libnng1"),
    ("libpmi2-0", "/usr/share/doc/libpmi2-0"),
    ("librdmacm-dev", "/usr/include/rdma/rdma_cma.h"),
    ("libzmq5", "/usr/share/doc/libzmq5"),
    ("munge", "/usr/sbin/munged"),
    ("netpipe-mpich2", "/usr/bin/NPmpich2"),
    ("nftables", "/usr/sbin/nft"),
    ("prometheus", "/usr/bin/promtool"),
    ("rdmacm-utils", "/usr/bin/rping"),
    ("slurm-wlm", "/usr/share/doc/slurm-wlm"),
    ("slurm-wlm-basic-plugins", "/usr/share/doc/slurm-wlm-basic-plugins"),
    ("sockperf", "/usr/bin/sockperf"),
    ("systemd", "/usr/bin/systemd-analyze"),
    ("tshark", "/usr/bin/tshark"),
];

/// Requirements whose tests must not be skipped; the tests explain each word.
const REQUIRED: &str =
    "applications,browser,dissector,header,librdmacm,libraries,mpi,numpy,pandas,promtool,systemd,vm";
/// The same for requirements that only root can meet.
const REQUIRED_OF_ROOT: &str = "namespaces,slurm,tbf";

const USAGE: &str = "\
usage: cargo xtask ci [--full] [--from STAGE]

  --full         adds the stages that take too long for every change: all that needs the optimised program (the README's
                 command that measures this machine, every part of parity, every verbs program), rooms, licences, the
                 book, the tests with all features, the tests of `cargo xtask vm`, the program and the conformance tests
                 on a kernel device, the tests between two virtual machines, the pages of three plans, a fleet, a
                 comparison and a trend with axe-core, MPI launches, connections, transfers and fleets whose processes
                 are killed at many moments, fleets of 8 hosts and of 1000 agents, transfers of large trees, the Debian
                 package in a clean root, the program for aarch64 in an emulation, and an installation by cargo
  --from STAGE   goes on with a stage, by the name that the list of times has, after a failure that has been fixed";

/// A stage of CI. Its time is printed at the end.
struct Stage {
    name: &'static str,
    run: fn() -> Result<()>,
}

const STAGES: [Stage; 6] = [
    Stage { name: "packages", run: packages },
    Stage { name: "check", run: check::lints },
    Stage { name: "rooms --apply", run: || rooms::run(false) },
    Stage { name: "test", run: test },
    Stage { name: "documentation", run: check::documentation },
    Stage { name: "verdicts --quick", run: verdicts::quick },
];

/// The stages that `--full` adds.
const FULL: [Stage; 24] = [
    Stage { name: "quick run", run: quick_run },
    Stage { name: "parity --quick", run: parity::quick },
    Stage { name: "rooms", run: || rooms::run(true) },
    Stage { name: "licences", run: licences },
    Stage { name: "book", run: book },
    Stage { name: "200 kills of launches", run: || kills("launch_kill", "200") },
    Stage { name: "1000 kills of connections", run: || kills("connection_kill", "1000") },
    Stage {
        name: "200 kills of transfers",
        run: || kills("an_end_that_is_killed_leaves_whole_files", "200"),
    },
    Stage { name: "50 kills of a fleet", run: || kills("a_fleet_that_is_killed", "50") },
    Stage {
        name: "a fleet of 1000 agents",
        run: || program_test("a_fleet_of_many_agents", ("RDMASCOPE_FLEET_AGENTS", "1000")),
    },
    Stage {
        name: "a slow host among 8",
        run: || program_test("with_a_slow_", ("RDMASCOPE_FLEET_HOSTS", "8")),
    },
    Stage { name: "a tree of 20,000 files", run: || tree("RDMASCOPE_TREE_FILES", 20_000) },
    Stage { name: "a tree of 2 GiB", run: || tree("RDMASCOPE_TREE_BYTES", 2 << 30) },
    Stage { name: "dist --deb --check", run: dist::deb_checked },
    Stage { name: "dist --aarch64", run: dist::aarch64 },
    Stage { name: "cargo install", run: installed },
    Stage { name: "reports for everybody", run: reports_for_everybody },
    Stage { name: "test with all features", run: test_features },
    Stage { name: "test of vm", run: machine },
    Stage { name: "vm-tests --programs", run: || vm_tests::run_one_boot(vm_tests::PROGRAMS) },
    Stage { name: "vm-tests --conformance", run: || vm_tests::run_one_boot(vm_tests::CONFORMANCE) },
    Stage { name: "vm-tests --two-machines", run: || vm_tests::run_one_boot(vm_tests::TWO_MACHINES) },
    Stage { name: "programs", run: programs::all_cases },
    Stage { name: "parity --quick in virtual machines", run: parity::quick_booted },
];

/// `cargo xtask ci`.
pub(crate) fn with(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut more = &[][..];
    let mut first = None;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--full" => more = &FULL[..],
            "--from" => first = Some(arguments.next().context(USAGE)?),
            _ => bail!(USAGE),
        }
    }
    // Only `--full` has that stage.
    if FULL.iter().any(|stage| first.as_ref().is_some_and(|first| first == stage.name)) {
        more = &FULL[..];
    }
    let stages = STAGES.iter().chain(more);
    let is_before = |stage: &&Stage| first.as_ref().is_some_and(|first| first != stage.name);
    let mut stages = stages.skip_while(is_before).peekable();
    ensure!(stages.peek().is_some(), "no stage is named {:?}\n\n{USAGE}", first.unwrap_or_default());
    build_once();
    let mut times = Vec::new();
    let result = stages.try_for_each(|stage| {
        let since = Instant::now();
        let result = (stage.run)();
        times.push(format!("{:>6} s  {}", since.elapsed().as_secs(), stage.name));
        result.with_context(|| stage.name)
    });
    eprintln!("xtask: time of each stage:\n{}", times.join("\n"));
    result
}

/// Installs the missing packages that the stages need. Meanwhile, builds for the lints and builds
/// the tests, which need none of them: an installation waits for the network and for the disk.
fn packages() -> Result<()> {
    let packages: Vec<_> = PACKAGES.into_iter().chain(vm::PACKAGES).chain(programs::PACKAGES).collect();
    let built = std::thread::spawn(|| build_ahead(&[check::LINTS, TESTS]));
    let result = install(&packages);
    // The stage that needs it says why something is not built.
    let _ = built.join();
    result
}

/// Runs cargo with each of these words while nothing else runs, until one fails.
fn build_ahead(all: &[&str]) -> bool {
    all.iter().all(|words| {
        let (name, value) = check::NO_WARNINGS;
        let mut command = shell::beside(words);
        command.env(name, value).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// Checks licences, bans and sources of the dependencies with cargo-deny, which takes a minute to
/// build.
fn licences() -> Result<()> {
    install_tool("cargo-deny", &["cargo", "deny", "--version"])?;
    check::deny()
}

/// Builds the book of `docs/`. mdBook warns of what it cannot find, and goes on.
fn book() -> Result<()> {
    install_tool("mdbook", &["mdbook", "--version"])?;
    let book = shell::root().join("target/book").to_string_lossy().into_owned();
    let built = shell::command(&["mdbook", "build", "docs", "--dest-dir", &book]).output()?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success() && !said.contains("WARN"), "mdbook build docs: {said}");
    Ok(())
}

/// Builds the tests, in words of cargo.
const TESTS: &str = "test --workspace --no-run --quiet";

/// What later stages build, by the words of cargo.
const BUILT_AHEAD: [&str; 2] = ["build --release --quiet -p verdict --bin verdicts", check::DOCUMENTATION];

/// Runs all tests, of which none may be skipped. Meanwhile, at the lowest priority, builds what
/// later stages need, and simulates: the tests wait for most of their time, and make no claims
/// about times.
fn test() -> Result<()> {
    let python = python()?;
    // What is not built yet.
    shell::run(&[&["cargo"], &TESTS.split(' ').collect::<Vec<_>>()[..]].concat())?;
    // A stage that builds in vain says why.
    let built = std::thread::spawn(|| {
        if build_ahead(&BUILT_AHEAD) {
            verdicts::ahead();
        }
    });
    let result = check::test(&[("RDMASCOPE_REQUIRE", &required()), ("RDMASCOPE_PYTHON", &python)]);
    // The thread has usually ended before the tests.
    let _ = built.join();
    result
}

/// Runs the tests of the crates that have features, with all features. None may be skipped.
fn test_features() -> Result<()> {
    check::test_features(&[("RDMASCOPE_REQUIRE", &required()), ("RDMASCOPE_PYTHON", &python()?)])
}

/// The requirements whose tests must not be skipped here.
fn required() -> String {
    let of_root = if shell::is_root() { REQUIRED_OF_ROOT } else { "" };
    format!("{REQUIRED},{of_root}")
}

/// Runs a test that kills processes, with more kills than in `cargo xtask test`.
fn kills(test: &str, number: &str) -> Result<()> {
    program_test(test, ("RDMASCOPE_KILLS", number))
}

/// Runs the test that transfers a tree of files, with a larger tree than in `cargo xtask test`.
fn tree(variable: &str, number: u64) -> Result<()> {
    program_test("a_tree_arrives_over_both", (variable, &number.to_string()))
}

/// Runs the tests of `cargo xtask vm`, which boot the machine several times.
fn machine() -> Result<()> {
    let words = ["cargo", "test", "--quiet", "-p", "xtask", "--test", "vm", "--", "--ignored"];
    shell::run_with(&words, &[("RDMASCOPE_REQUIRE", &required())])
}

/// Installs the program as a user of cargo does, and lets it run another program.
fn installed() -> Result<()> {
    let place = shell::root().join("target/installed").to_string_lossy().into_owned();
    let install = ["cargo", "install", "--quiet", "--locked", "--path", "crates/rdmascope", "--root", &place];
    shell::run(&install)?;
    let program = format!("{place}/bin/rdmascope");
    let devices = shell::output(&[&program, "exec", "ibv_devinfo"])?;
    ensure!(devices.contains("softdev0"), "exec ibv_devinfo of the installed program prints {devices:?}");
    Ok(())
}

fn program_test(test: &str, variable: (&str, &str)) -> Result<()> {
    let words = ["cargo", "test", "--quiet", "-p", "rdmascope", "--test", "program", test];
    shell::run_with(&words, &[variable, ("RDMASCOPE_REQUIRE", &required())])
}

/// Makes a fresh checkout build in less time: without incremental compilation, which would take a
/// quarter of it, and without the line numbers of backtraces.
fn build_once() {
    let kept = std::fs::read_dir(shell::root().join("target/debug/incremental"));
    let is_own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("xtask-");
    if kept.is_ok_and(|kept| kept.flatten().all(|kept| is_own(&kept.file_name()))) {
        for (name, value) in [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0")] {
            // SAFETY: no other thread has been started that could read the environment.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

/// Builds a tool in `target/tools` if it is not installed, without optimisation, because it runs
/// only once. `works` is a command that works if it is.
fn install_tool(package: &str, works: &[&str]) -> Result<()> {
    let root = shell::root().join("target/tools");
    let own = root.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).filter(|other| *other != own);
    let path = std::env::join_paths(std::iter::once(own.clone()).chain(others))?;
    // SAFETY: no other thread has been started that could read the environment.
    unsafe { std::env::set_var("PATH", path) };
    if shell::works(works) {
        return Ok(());
    }
    let root = root.to_string_lossy().into_owned();
    let install = ["cargo", "install", "--locked", "--quiet", "--debug", "--root", &root, package];
    shell::run_with(&install, &[("CARGO_PROFILE_DEV_DEBUG", "false")])
}

/// The Python packages that tests compare with, read exports with or start rdmascope with: as pip
/// and as Python name them.
const PYTHON_PACKAGES: [(&str, &str); 7] = [
    ("duckdb", "duckdb"),
    ("junitparser", "junitparser"),
    ("lxml", "lxml"),
    ("numpy", "numpy"),
    ("pandas", "pandas"),
    ("pyyaml", "yaml"),
    ("reframe-hpc", "reframe"),
];

/// Returns a Python with the packages of tests: the system's, or else one in a virtual environment
/// in `target`.
fn python() -> Result<String> {
    let import = format!("import {}", PYTHON_PACKAGES.map(|(_, name)| name).join(", "));
    if shell::works(&["python3", "-c", &import]) {
        return Ok("python3".to_owned());
    }
    let environment = shell::root().join("target/python");
    let python = environment.join("bin/python3").to_string_lossy().into_owned();
    if !shell::works(&[&python, "-c", &import]) {
        let place = environment.to_string_lossy().into_owned();
        let made = shell::works(&["python3", "-m", "venv", &place]);
        if !made {
            // Debian has the module `venv` in a separate package.
            shell::run(&["apt-get", "install", "-y", "-qq", "python3-venv"])?;
            shell::run(&["python3", "-m", "venv", &place])?;
        }
        let packages = PYTHON_PACKAGES.map(|(name, _)| name);
        shell::run(&[&[&python, "-m", "pip", "install", "--quiet"][..], &packages].concat())?;
    }
    Ok(python)
}

/// Runs the README's command that measures this machine.
fn quick_run() -> Result<()> {
    run_plan("quick", &[], &[0]).map(drop)
}

/// Measures a plan, which may end with these statuses; returns its report.
fn run_plan(name: &str, more: &[&str], statuses: &[i32]) -> Result<PathBuf> {
    let plan = format!("plans/{name}.toml");
    let out = emptied(name)?;
    program(&[&["run", &plan, "--out", &out.to_string_lossy()], more].concat(), statuses)?;
    Ok(out.join("report.html"))
}

/// A directory for results, which does not exist yet.
fn emptied(name: &str) -> Result<PathBuf> {
    let out = shell::root().join("target/ci-run").join(name);
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    Ok(out)
}

/// Runs the program, which may end with these statuses.
fn program(arguments: &[&str], statuses: &[i32]) -> Result<()> {
    let words = [&["cargo", "run", "--release", "--quiet", "--"], arguments].concat();
    let status = shell::command(&words).status().context("cannot start cargo")?;
    let is_expected = status.code().is_some_and(|code| statuses.contains(&code));
    ensure!(is_expected, "`rdmascope {}` failed ({status})", arguments.join(" "));
    Ok(())
}

/// The exit status of a run in which some points failed, as streams may that lose messages.
const PARTIAL: i32 = 4;

/// Examines pages in a browser, with axe-core: the reports of three plans (of round trips and
/// throughputs, of one-way messages and of many ranks), and what a fleet, a comparison and a trend
/// write.
fn reports_for_everybody() -> Result<()> {
    let plans = ["gamess-2016", "potter-2018-hca", "hoefler-2006"];
    let mut pages: Vec<PathBuf> =
        plans.iter().map(|plan| run_plan(plan, &["--quick"], &[0, PARTIAL])).collect::<Result<_>>()?;
    pages.push(fleet_page()?);
    pages.extend(comparison_pages()?);
    let pages = std::env::join_paths(pages)?;
    let words = ["cargo", "test", "--quiet", "-p", "report", "--test", "browser", "usable_by_everybody"];
    shell::run_with(
        &words,
        &[("RDMASCOPE_REPORTS", &pages.to_string_lossy()), ("RDMASCOPE_REQUIRE", &required())],
    )
}

/// The exit statuses of verdicts: whatever this machine's noise makes of them.
const VERDICTS: [i32; 3] = [0, 1, 3];

/// Measures a fleet; returns its report.
fn fleet_page() -> Result<PathBuf> {
    let out = emptied("fleet")?;
    let words = ["fleet", "send", "--local", "6", "--passes", "1", "-n", "100", "-D", "10ms", "--out"];
    program(&[&words[..], &[&out.to_string_lossy()]].concat(), &VERDICTS)?;
    Ok(out.join("report.html"))
}

/// Compares a command with itself by turns; returns the pages of the comparison, and of the trend
/// of its runs.
fn comparison_pages() -> Result<[PathBuf; 2]> {
    let out = emptied("compare")?;
    let [comparison, trend] = ["comparison.html", "trend.html"].map(|name| out.join(name));
    let [base, new] = ["base", "new"].map(|side| out.join(side).display().to_string());
    let command = "lat send --local --cpus none -n 1000";
    let words = ["compare", "--interleave", "6", command, command, "--out"];
    let told = [&out.to_string_lossy()[..], "--html", &comparison.to_string_lossy()];
    program(&[&words[..], &told].concat(), &VERDICTS)?;
    program(&["trend", &base, &new, "--html", &trend.to_string_lossy()], &VERDICTS)?;
    Ok([comparison, trend])
}
