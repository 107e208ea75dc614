//! `cargo xtask fuzz`: the fuzz targets under libFuzzer and AddressSanitizer.
//!
//! The tests run the same bodies on the stable toolchain with the inputs in `fuzz/corpus`; this
//! command finds and keeps more inputs.

mod build;
mod choose;
mod libfuzzer;

use anyhow::{Context, Result, bail, ensure};

use crate::fuzz::libfuzzer::Limits;
use crate::shell;

const USAGE: &str = "\
usage: cargo xtask fuzz [TARGET...] [--runs N] [--seconds N] [--keep] [--no-sanitizer]

  TARGET     a target of fuzz/fuzz_targets; without a name all targets run, one after the other
  --runs     inputs for each target (default 1000000)
  --seconds  the longest time of each target
  --keep     selects a new corpus in fuzz/corpus: at most 150 inputs and 300 KiB for each target, which take the most
             different paths through its code
  --no-sanitizer
             without AddressSanitizer: two to four times as many inputs per second, but invalid accesses to memory by
             unsafe code are not found

Needs Rust's nightly and a C++ compiler, runs at low priority, and writes to target/fuzz/TARGET. Inputs that make a target
panic are in its `artifacts`; when the fault is fixed, move them to fuzz/regressions/TARGET";

/// The default number of inputs of a run.
const RUNS: u64 = 1_000_000;

/// The lowest priority of a process: other processes run first.
const NICENESS: i32 = 19;

/// The options of the command line.
#[derive(Debug, PartialEq)]
struct Asked {
    targets: Vec<String>,
    limits: Limits,
    /// Whether AddressSanitizer is on.
    sanitized: bool,
    keep: bool,
}

/// `cargo xtask fuzz`.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let all = targets()?;
    let Some(asked) = parse(words, &all)? else {
        eprintln!("{USAGE}");
        return Ok(());
    };
    if let Some(missing) = build::missing()? {
        eprintln!("xtask: SKIPPED: {missing}");
        return Ok(());
    }
    rustix::process::nice(NICENESS).context("cannot lower the priority")?;
    build::build(&asked.targets, asked.sanitized)?;
    println!("{}", libfuzzer::HEADING);
    let mut crashed = Vec::new();
    for target in &asked.targets {
        let done = libfuzzer::run(target, asked.sanitized, &asked.limits)?;
        println!("{}", done.row(target));
        if done.crashes > 0 {
            crashed.push(target.as_str());
        } else if asked.keep {
            println!("{}", choose::keep(target, asked.sanitized)?);
        }
    }
    ensure!(crashed.is_empty(), "some inputs made these targets fail: {}", crashed.join(", "));
    Ok(())
}

/// Reads the options; `None` for help.
fn parse(mut words: impl Iterator<Item = String>, all: &[String]) -> Result<Option<Asked>> {
    let mut asked = Asked {
        targets: Vec::new(),
        limits: Limits { runs: RUNS, seconds: None },
        sanitized: true,
        keep: false,
    };
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let number = words.next().and_then(|word| word.parse().ok()).filter(|number| *number > 0);
            number.with_context(|| format!("fuzz: {word} needs a number\n{USAGE}"))
        };
        match word.as_str() {
            "--help" => return Ok(None),
            "--runs" => asked.limits.runs = number()?,
            "--seconds" => asked.limits.seconds = Some(number()?),
            "--no-sanitizer" => asked.sanitized = false,
            "--keep" => asked.keep = true,
            _ if all.contains(&word) => asked.targets.push(word),
            _ => {
                bail!("fuzz: unknown target or option `{word}`; the targets are {}\n{USAGE}", all.join(", "))
            }
        }
    }
    if asked.targets.is_empty() {
        asked.targets = all.to_vec();
    }
    Ok(Some(asked))
}

/// The names of all targets.
fn targets() -> Result<Vec<String>> {
    let folder = shell::root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        if let Some(name) = entry?.file_name().to_string_lossy().strip_suffix(".rs") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<Option<Asked>> {
        parse(text.split_whitespace().map(str::to_owned), &["cm".to_owned(), "plan".to_owned()])
    }

    #[test]
    fn words_are_understood_or_refused() {
        let all = asked("").unwrap().unwrap();
        assert_eq!((all.targets.len(), all.limits.runs, all.keep), (2, RUNS, false));
        let one = asked("plan --runs 7 --seconds 3 --keep --no-sanitizer").unwrap().unwrap();
        assert_eq!(one.targets, ["plan"]);
        assert_eq!(one.limits, Limits { runs: 7, seconds: Some(3) });
        assert!(one.keep && !one.sanitized);
        assert_eq!(asked("--help").unwrap(), None);
        for wrong in ["--runs", "--runs 0", "--runs x", "other"] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_targets_of_this_repository_are_found() {
        let targets = targets().unwrap();
        assert!(targets.iter().any(|name| name == "manager") && targets.is_sorted());
    }
}
