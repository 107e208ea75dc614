//! Tests that run beside all others, at a low priority: those of packages that measure nothing, but
//! compute and draw. The other tests wait for most of their time.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A low priority, at which browsers still start within their time limits.
const NICE: &str = "10";

/// The tests that run at a time.
const THREADS: &str = "2";

/// The tests of a target, as cargo has built them.
#[derive(Debug, PartialEq)]
pub(super) struct Built {
    program: PathBuf,
    /// The directory of the package, in which cargo runs them.
    directory: PathBuf,
    /// Arguments of cargo that select the target, such as `-p report --lib`.
    target: String,
}

/// Builds the tests that words of cargo select; returns those of some packages.
pub(super) fn built(
    folder: &Path,
    variables: &[(&str, &str)],
    words: &[&str],
    packages: &[&str],
) -> Result<Vec<Built>> {
    let mut command = Command::new("cargo");
    command.args(["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"]).args(words);
    command.envs(variables.iter().copied()).current_dir(folder).stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo: is it installed?")?;
    ensure!(output.status.success(), "`cargo test --no-run` failed ({})", output.status);
    let messages =
        output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let built: Vec<Built> = messages.filter_map(|message: Value| of_message(&message, packages)).collect();
    // None may be left out of both.
    for package in packages {
        let selected = format!("-p {package} ");
        let is_there = built.iter().any(|built| built.target.starts_with(&selected));
        ensure!(is_there, "cargo names no tests of the package {package}");
    }
    Ok(built)
}

/// The tests of which a message of cargo tells, if they are of one of some packages.
fn of_message(message: &Value, packages: &[&str]) -> Option<Built> {
    let program = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = message["package_id"].as_str()?;
    // `path+file:///path/report#0.2.0`, or `...#name@0.2.0` where the directory has another name.
    let (place, version) = package.split_once('#')?;
    let name = version.split_once('@').map_or_else(|| place.rsplit('/').next(), |(name, _)| Some(name))?;
    let kind = message["target"]["kind"][0].as_str()?;
    let target = message["target"]["name"].as_str()?;
    let selected = match kind {
        "test" | "bin" => format!("-p {name} --{kind} {target}"),
        _ => format!("-p {name} --lib"),
    };
    packages.contains(&name).then(|| Built {
        program: program.into(),
        directory: directory.into(),
        target: selected,
    })
}

/// Runs tests, one target after the other. Returns whether all passed, and what cargo would have
/// printed.
pub(super) fn run(all: &[Built], variables: &[(&str, &str)]) -> Result<(bool, Vec<u8>)> {
    let mut have_passed = true;
    let mut shown = Vec::new();
    for Built { program, directory, target } in all {
        shown.extend(format!("     Running {target} ({})\n", program.display()).into_bytes());
        // A file: a process that a test leaves behind would keep a pipe open.
        let mut said = tempfile::tempfile()?;
        let mut command = Command::new("nice");
        command.args(["-n", NICE]).arg(program).current_dir(directory).stdin(Stdio::null());
        command.envs(variables.iter().copied()).env("CARGO_MANIFEST_DIR", directory);
        // More would take CPUs in spite of their priority.
        command.env("RUST_TEST_THREADS", THREADS);
        let status = command.stdout(said.try_clone()?).stderr(said.try_clone()?).status();
        let status = status.with_context(|| format!("cannot run {}", program.display()))?;
        std::io::Seek::rewind(&mut said)?;
        said.read_to_end(&mut shown)?;
        if !status.success() {
            have_passed = false;
            shown.extend(format!("error: test failed, to rerun pass `{target}`\n").into_bytes());
        }
    }
    Ok((have_passed, shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_those_of_the_packages() {
        let message = |id: &str, kind: &str, name: &str, is_test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": id, "manifest_path": "/p/crates/report/Cargo.toml",
                "target": { "kind": [kind], "name": name }, "profile": { "test": is_test }, "executable": "/p/t-1",
            })
        };
        let found = |id, kind, name, is_test| {
            of_message(&message(id, kind, name, is_test), &["report"]).map(|built| built.target)
        };
        let id = "path+file:///p/crates/report#0.2.0";
        assert_eq!(found(id, "lib", "report", true).as_deref(), Some("-p report --lib"));
        assert_eq!(found(id, "test", "browser", true).as_deref(), Some("-p report --test browser"));
        assert_eq!(found(id, "bin", "tool", true).as_deref(), Some("-p report --bin tool"));
        assert_eq!(found(id, "bin", "tool", false), None);
        assert_eq!(found("path+file:///p/crates/bench#0.2.0", "lib", "bench", true), None);
        let other = "path+file:///p/crates/other#report@0.2.0";
        assert_eq!(found(other, "lib", "report", true).as_deref(), Some("-p report --lib"));
        assert_eq!(of_message(&serde_json::json!({ "reason": "build-finished" }), &["report"]), None);
    }
}
