//! `cargo xtask programs`: runs unmodified programs on softdev and compares their results with the
//! expected ones.

mod plan;
mod python;
mod run;
mod verdict;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::packages::install;
use crate::shell;
use python::Tests;
use run::Places;

const USAGE: &str = "\
usage: cargo xtask programs [--quick] [--write] [--program PATH] [WORDS]

Runs unmodified programs on softdev under `rdmascope exec`, each with a time limit: perftest and qperf with and without RDMA CM,
the programs and the Python tests of rdma-core, libfabric, UCX, and MPICH and Open MPI over libfabric and UCX. Prints a line for
each program and compares it with xtask/src/programs/expected.txt. Every difference, better or worse, is a failure.

  --quick         a few programs of each kind, in about two minutes
  --write         writes the results into that file
  --program PATH  uses this rdmascope instead of the one that `cargo build --release` makes
  WORDS           only cases whose name contains these words";

/// Debian packages with the programs, each with one of its files.
pub(crate) const PACKAGES: [(&str, &str); 13] = [
    ("ibverbs-utils", "/usr/bin/ibv_devinfo"),
    ("libfabric-bin", "/usr/bin/fi_pingpong"),
    ("libmpich-dev", "/usr/share/doc/libmpich-dev"),
    ("libopenmpi-dev", "/usr/share/doc/libopenmpi-dev"),
    ("libucx-dev", "/usr/share/doc/libucx-dev/examples"),
    ("mpich", "/usr/bin/mpirun.mpich"),
    ("openmpi-bin", "/usr/bin/mpirun.openmpi"),
    ("perftest", "/usr/bin/ib_send_lat"),
    ("python3-pyverbs", "/usr/lib/python3/dist-packages/pyverbs"),
    ("qperf", "/usr/bin/qperf"),
    ("rdma-core", "/usr/share/doc/rdma-core/tests"),
    ("rdmacm-utils", "/usr/bin/rping"),
    ("ucx-utils", "/usr/bin/ucx_info"),
];

const EXPECTED: &str = "xtask/src/programs/expected.txt";

const HEAD: &str = "\
# The results of unmodified programs on softdev. `cargo xtask programs` compares with them; `--write` updates this file.
# refused: the program or the device reported that it lacks a feature, as on an adapter without it; skipped: a Python test did.
# Two verdicts: either may occur. (If several queue pairs share a receive queue, perftest takes the number of a receive for the
# number of a queue pair, gives the credits of UC and UD to the wrong queue pair and may wait for ever, also on Soft-RoCE.)
";

/// The options of the command line.
#[derive(Debug, Default, Eq, PartialEq)]
struct Options {
    is_quick: bool,
    writes: bool,
    program: Option<PathBuf>,
    only: String,
}

impl Options {
    /// Reads the options; `None` for help.
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self::default();
        let mut only = Vec::new();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--quick" => options.is_quick = true,
                "--write" => options.writes = true,
                "--program" => options.program = Some(words.next().context("--program needs a path")?.into()),
                // Names of cases may begin with arguments of `exec`.
                "--devices" | "--link" | "--link-layer" | "--namespace" => only.push(word),
                _ if word.starts_with("--") && only.is_empty() => {
                    bail!("programs: unknown option `{word}` (--help lists the options)")
                }
                _ => only.push(word),
            }
        }
        options.only = only.join(" ");
        Ok(Some(options))
    }
}

/// `cargo xtask programs`.
pub(crate) fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let result = Options::parse(words).and_then(|options| match options {
        Some(options) => compare(&options),
        None => {
            println!("{USAGE}");
            Ok(())
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every program, for `cargo xtask ci --full`.
pub(crate) fn all_cases() -> Result<()> {
    compare(&Options::default())
}

/// Verdicts by case, as they are printed.
type Table = BTreeMap<String, String>;

fn compare(options: &Options) -> Result<()> {
    install(&PACKAGES)?;
    let target = shell::root().join("target");
    let program = match &options.program {
        Some(program) => std::path::absolute(program)?,
        None => {
            shell::run(&["cargo", "build", "--release", "--quiet"])?;
            target.join("release/rdmascope")
        }
    };
    let scratch = target.join("programs");
    fs::create_dir_all(&scratch)?;
    let expected = verdict::parse(&fs::read_to_string(shell::root().join(EXPECTED))?)?;
    let since = Instant::now();
    let seen = all(&Places { program, scratch }, options, &expected)?;
    summary(&seen, since.elapsed().as_secs());
    if options.writes {
        return write(expected, seen);
    }
    let differ = differences(&seen, &expected);
    if !differ.is_empty() {
        bail!(
            "{} of {} cases differ from the expected result (xtask/src/programs/expected.txt):\n{}",
            differ.len(),
            seen.len(),
            differ.join("\n")
        );
    }
    Ok(())
}

/// Runs every selected case and prints its line.
fn all(places: &Places, options: &Options, expected: &Table) -> Result<Table> {
    let mut seen = Table::new();
    let mut take = |name: String, verdict: String| {
        let is_so = expected.get(&name).is_some_and(|expected| is_expected(&verdict, expected));
        let mark = if is_so { "" } else { "   <-- not as expected" };
        println!("{}{mark}", verdict::line(&name, &verdict));
        seen.insert(name, verdict);
    };
    for case in plan::cases() {
        if (case.is_quick || !options.is_quick) && case.name.contains(&options.only) {
            let verdict = places.run(&case)?;
            take(case.name, verdict.to_string());
        }
    }
    let tests = Tests::unpack(&places.scratch)?;
    for module in &tests.modules {
        let is_quick = python::QUICK.contains(&module.as_str());
        let named = options.only.is_empty()
            || options.only.contains(module.as_str())
            || module.contains(&options.only);
        if named && (is_quick || !options.is_quick) {
            for (name, verdict) in tests.run(places, module)? {
                if name.contains(&options.only) {
                    take(name, verdict.to_string());
                }
            }
        }
    }
    Ok(seen)
}

fn summary(seen: &Table, seconds: u64) {
    let count = |how: &str| seen.values().filter(|verdict| verdict.starts_with(how)).count();
    eprintln!(
        "xtask: programs: {} cases in {seconds} s: {} pass, {} refused, {} skipped, {} fail",
        seen.len(),
        count("passes"),
        count("refused"),
        count("skipped"),
        count("fails"),
    );
}

/// Whether a verdict is expected. If a fault of the program may or may not occur, several verdicts
/// are.
fn is_expected(verdict: &str, expected: &str) -> bool {
    expected.split(" | ").any(|expected| expected == verdict)
}

/// The cases with another result than expected, one line each.
fn differences(seen: &Table, expected: &Table) -> Vec<String> {
    let differs = |(name, verdict): (&String, &String)| {
        let before = expected.get(name).map_or("nothing", String::as_str);
        (!is_expected(verdict, before)).then(|| format!("{name}: {verdict}, expected {before}"))
    };
    seen.iter().filter_map(differs).collect()
}

/// Updates the file with the results.
fn write(mut expected: Table, seen: Table) -> Result<()> {
    let is_new = |(name, verdict): &(String, String)| {
        expected.get(name).is_none_or(|expected| !is_expected(verdict, expected))
    };
    let new: Vec<_> = seen.into_iter().filter(is_new).collect();
    expected.extend(new);
    let lines: Vec<_> = expected.iter().map(|(name, verdict)| verdict::line(name, verdict)).collect();
    fs::write(shell::root().join(EXPECTED), format!("{HEAD}\n{}\n", lines.join("\n")))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_from_names() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(str::to_owned));
        let options = parse("--quick ib_send_lat -c UD -n 1000 --use-srq").unwrap().unwrap();
        assert!(options.is_quick && !options.writes);
        assert_eq!(options.only, "ib_send_lat -c UD -n 1000 --use-srq");
        assert_eq!(parse("--help").unwrap(), None);
        assert!(parse("--quik").unwrap_err().to_string().contains("`--quik`"));
    }

    #[test]
    fn every_case_is_expected_to_end_somehow_and_no_other() {
        let expected = verdict::parse(include_str!("expected.txt")).unwrap();
        let programs = expected.keys().filter(|name| !name.starts_with("test_")).cloned();
        let mut cases: Vec<_> = plan::cases().into_iter().map(|case| case.name).collect();
        cases.sort();
        assert_eq!(programs.collect::<Vec<_>>(), cases);
    }

    #[test]
    fn better_and_worse_both_differ() {
        let table = |pairs: &[(&str, &str)]| -> Table {
            pairs.iter().map(|(name, verdict)| ((*name).to_owned(), (*verdict).to_owned())).collect()
        };
        let expected =
            table(&[("a", "passes"), ("b", "fails: x"), ("c", "fails: x | passes"), ("d", "passes")]);
        let seen = table(&[("a", "fails: it hangs"), ("b", "passes"), ("c", "passes"), ("e", "passes")]);
        let differ = differences(&seen, &expected);
        assert_eq!(
            differ,
            [
                "a: fails: it hangs, expected passes",
                "b: passes, expected fails: x",
                "e: passes, expected nothing"
            ]
        );
    }
}
