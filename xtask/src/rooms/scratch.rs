//! A copy of the checkout in which a patch is built.
//!
//! The copy has its own target directory: cargo identifies the files of a workspace by their paths
//! below its root, so it would confuse the two checkouts. The first copy includes the libraries
//! that are built in the checkout, with the times of all files, so that only the files that a patch
//! changes are built.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::patch::Step;
use crate::process;

/// Builds the program that patches change, with the whole workspace: its dependencies then have the
/// same features as for the tests.
const BUILD: [&str; 7] = ["build", "--quiet", "--workspace", "--bin", PROGRAM, "--offline", "--locked"];
const PROGRAM: &str = "rdmascope";
/// The extensions of cargo's files for libraries. Programs are linked again.
const KEPT: [&str; 5] = ["d", "rlib", "rmeta", "so", "a"];

pub(super) struct Scratch {
    checkout: PathBuf,
    target: PathBuf,
    out: PathBuf,
}

impl Scratch {
    /// Copies the files of a repository that git tracks or could add. The changes of an earlier
    /// patch are reverted.
    pub(super) fn new(repository: &Path, folder: &Path) -> Result<Self> {
        let scratch = Self {
            checkout: folder.join("checkout"),
            target: folder.join("target"),
            out: folder.join("out"),
        };
        let is_first = !scratch.checkout.exists();
        let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = Command::new("git").args(listed).current_dir(repository).output()?;
        ensure!(listed.status.success(), "git cannot list the files of {}", repository.display());
        let listed = String::from_utf8(listed.stdout)?;
        let files: Vec<&str> = listed.split('\0').filter(|path| repository.join(path).is_file()).collect();
        remove_others(&scratch.checkout, Path::new(""), &files)?;
        for path in files {
            copy(&repository.join(path), &scratch.checkout.join(path), is_first)?;
        }
        if is_first {
            take_over(&repository.join("target/debug"), &scratch.target.join("debug"))?;
        }
        Ok(scratch)
    }

    pub(super) fn apply(&self, patch: &Path) -> Result<()> {
        let mut git = Command::new("git");
        // The copy is inside a repository, where git would look for the files.
        git.env("GIT_CEILING_DIRECTORIES", self.checkout.parent().unwrap_or(&self.checkout));
        done(git.arg("apply").arg(patch).current_dir(&self.checkout), "git apply")
    }

    pub(super) fn build(&self) -> Result<()> {
        let mut cargo = Command::new("cargo");
        cargo.args(BUILD).env("CARGO_TARGET_DIR", &self.target).current_dir(&self.checkout);
        done(&mut cargo, "cargo build")
    }

    /// Runs a step and checks its output.
    pub(super) fn attempt(&self, step: &Step) -> Result<()> {
        let command = &step.command;
        let mut words = command.split_whitespace();
        ensure!(words.next() == Some(PROGRAM), "`{command}` does not begin with {PROGRAM}");
        fs::create_dir_all(&self.out)?;
        let out = self.out.to_string_lossy();
        let mut run = Command::new(self.target.join("debug").join(PROGRAM));
        run.args(words.map(|word| word.replace("{out}", &out))).current_dir(&self.checkout);
        let printed = process::printed(&mut run, command)?;
        for part in &step.expected {
            ensure!(printed.contains(part), "`{command}` does not print `{part}`; it prints:\n{printed}");
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.out);
    }
}

fn done(command: &mut Command, name: &str) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    Ok(())
}

/// Removes the files of the copy that are not listed: a patch may have created them.
fn remove_others(copy: &Path, below: &Path, files: &[&str]) -> Result<()> {
    for entry in fs::read_dir(copy.join(below)).into_iter().flatten() {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(copy, &path, files)?;
        } else if !files.iter().any(|file| Path::new(file) == path) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Copies a file if it differs. It keeps the time of the original only in the first copy: later, a
/// file that a patch changed must look new when it is restored.
fn copy(from: &Path, to: &Path, with_time: bool) -> Result<()> {
    let content = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    let file = File::options().append(true).open(to)?;
    let time = if with_time { fs::metadata(from)?.modified()? } else { std::time::SystemTime::now() };
    Ok(file.set_modified(time)?)
}

/// Copies the libraries that cargo has built, and its data about them.
fn take_over(from: &Path, to: &Path) -> Result<()> {
    for part in [".fingerprint", "build", "deps"] {
        for entry in fs::read_dir(from.join(part)).into_iter().flatten() {
            copy_built(&entry?.path(), &to.join(part), part == "deps")?;
        }
    }
    Ok(())
}

fn copy_built(from: &Path, folder: &Path, libraries_alone: bool) -> Result<()> {
    let to = folder.join(from.file_name().unwrap_or_default());
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            copy_built(&entry?.path(), &to, libraries_alone)?;
        }
        return Ok(());
    }
    let extension = from.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if libraries_alone && !KEPT.contains(&extension) {
        return Ok(());
    }
    copy(from, &to, true)
}
