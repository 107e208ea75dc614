//! Runs tests, and repeats each failed test once, without other tests. A test that then passes is
//! reported as flaky and does not fail the run.
//!
//! # Invariants
//!
//! * A test that asserts times locks the whole machine; other tests that measure share it
//!   (`support/machine.rs`). So more tests are started at a time than there are CPUs. Tests that
//!   only compute run beside all of them, at a low priority.

mod beside;
mod output;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use self::output::{Failed, Output};
use crate::shell;

/// If more tests fail, the cause is a change and not the machine: no test is repeated.
const REPEATED_MAX: usize = 10;
/// The capacity of a pipe.
const CHUNK_BYTES: usize = 65536;

/// Runs `cargo test` with words and environment variables in the repository, and prints `flaky:
/// NAME` for each flaky test.
pub(crate) fn run(words: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut suite = Suite { folder: &shell::root(), variables, shown: &mut std::io::stdout() };
    suite.run(words).map(|_| ())
}

/// Runs all tests of the workspace with environment variables, as [`run`]: those of some packages
/// beside the others.
pub(crate) fn run_beside(packages: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut suite = Suite { folder: &shell::root(), variables, shown: &mut std::io::stdout() };
    suite.run_beside(&["--workspace"], packages).map(|_| ())
}

struct Suite<'a> {
    folder: &'a Path,
    variables: &'a [(&'a str, &'a str)],
    /// Where the output of cargo and of the tests goes.
    shown: &'a mut dyn Write,
}

impl Suite<'_> {
    /// Runs the tests and returns the flaky ones.
    fn run(&mut self, words: &[&str]) -> Result<Vec<String>> {
        let (status, output) = self.cargo(&[&["test", "--no-fail-fast"], words].concat())?;
        ensure_named(words, status.success(), &output.failed)?;
        self.repeated(words, &output.failed)
    }

    /// Runs the tests that words select, those of some packages beside the others; returns the
    /// flaky ones.
    fn run_beside(&mut self, words: &[&str], packages: &[&str]) -> Result<Vec<String>> {
        let built = beside::built(self.folder, self.variables, words, packages)?;
        let others = packages.iter().flat_map(|package| ["--exclude", package]);
        let others: Vec<&str> = others.chain(["--lib", "--bins", "--tests"]).collect();
        let variables = self.variables;
        let (beside, others) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| beside::run(&built, variables));
            let others = self.cargo(&[&["test", "--no-fail-fast"], words, &others[..]].concat());
            (beside.join(), others)
        });
        let (others, output) = others?;
        let Ok(beside) = beside else { bail!("the tests beside the others could not be run") };
        let (have_passed, said) = beside?;
        self.shown.write_all(&said)?;
        let mut output_beside = Output::default();
        output_beside.read(&said);
        let (documented, documentation) =
            self.cargo(&[&["test", "--no-fail-fast", "--doc"], words].concat())?;
        let parts =
            [(others.success(), output), (have_passed, output_beside), (documented.success(), documentation)];
        let mut failed = Vec::new();
        for (has_passed, output) in parts {
            ensure_named(words, has_passed, &output.failed)?;
            failed.extend(output.failed);
        }
        self.repeated(words, &failed)
    }

    /// Repeats the failed tests; returns the flaky ones.
    fn repeated(&mut self, words: &[&str], failed: &[Failed]) -> Result<Vec<String>> {
        let tests: usize = failed.iter().map(|failed| failed.tests.len().max(1)).sum();
        ensure!(tests <= REPEATED_MAX, "{tests} tests failed, too many to repeat:\n{}", listed(failed));
        let mut flaky = Vec::new();
        let mut broken = Vec::new();
        for test in failed.iter().flat_map(Failed::each) {
            if self.passes_alone(&test, words)? {
                eprintln!("flaky: {test}");
                flaky.push(test.to_string());
            } else {
                broken.push(test.to_string());
            }
        }
        ensure!(broken.is_empty(), "these tests failed, and failed again alone:\n{}", broken.join("\n"));
        Ok(flaky)
    }

    /// Repeats one test, or the whole target if it ended before it named the test, or if it is a
    /// doctest, whose name rustdoc would split at spaces.
    fn passes_alone(&mut self, test: &output::One<'_>, asked: &[&str]) -> Result<bool> {
        let mut words = vec!["test"];
        let target: Vec<&str> = test.target.split_whitespace().collect();
        match target[..] {
            // A package alone has other features of its dependencies, which would be built again.
            ["-p", _, "--test", name] if asked.contains(&"--workspace") => {
                words.extend(["--workspace", "--test", name]);
            }
            _ => words.extend(target),
        }
        let name = test.name.filter(|_| !words.contains(&"--doc"));
        if let Some(name) = name {
            words.extend(["--", "--exact", name]);
        }
        let (status, output) = self.cargo(&words)?;
        // A name that no test has would pass without having run.
        let has_run = if name.is_some() { output.passed == 1 } else { output.passed > 0 };
        Ok(status.success() && has_run)
    }

    /// Runs cargo, and shows and reads its output. Both output streams use one pipe, which keeps
    /// their order.
    fn cargo(&mut self, words: &[&str]) -> Result<(ExitStatus, Output)> {
        eprintln!("xtask: cargo {}", words.join(" "));
        let (mut reader, writer) = std::io::pipe()?;
        let mut command = Command::new("cargo");
        command.args(words).envs(self.variables.iter().copied()).current_dir(self.folder);
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().context("cannot start cargo: is it installed?")?;
        drop(command);
        let cargo = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let mut output = Output::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let mut events = [PollFd::new(&reader, PollFlags::IN), PollFd::new(&cargo, PollFlags::IN)];
            retry_on_intr(|| poll(&mut events, None))?;
            // The pipe may never end: a process that a test has left behind may hold it.
            if events[0].revents().is_empty() {
                break;
            }
            let length = reader.read(&mut chunk)?;
            if length == 0 {
                break;
            }
            self.shown.write_all(&chunk[..length])?;
            output.read(&chunk[..length]);
        }
        Ok((child.wait()?, output))
    }
}

/// Refuses a failure that no test explains.
fn ensure_named(words: &[&str], have_passed: bool, failed: &[Failed]) -> Result<()> {
    let is_named = have_passed || !failed.is_empty();
    ensure!(is_named, "`cargo test {}` failed before a test did", words.join(" "));
    Ok(())
}

fn listed(failed: &[Failed]) -> String {
    let names: Vec<_> = failed.iter().flat_map(Failed::each).map(|test| test.to_string()).collect();
    names.join("\n")
}
