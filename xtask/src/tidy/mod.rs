//! `cargo xtask tidy`: the house rules that a program can check (CONTRIBUTING.md).

mod circles;
mod code;
mod crates;
mod layers;
mod patterns;
mod sentences;
mod text;
mod words;

use std::fs;

use anyhow::{Result, bail, ensure};

use self::sentences::Sentences;
use crate::shell;

/// `cargo xtask tidy [--circles]`.
pub(crate) fn with(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let Some(argument) = arguments.next() else { return run() };
    ensure!(argument == "--circles", "usage: cargo xtask tidy [--circles]");
    circles::print()
}

/// A sentence about the number of circles of files.
pub(crate) fn circles() -> Result<String> {
    circles::summary()
}

/// Directories with inputs of tests and fuzz targets, which other programs have written.
const INPUTS: [&str; 3] = ["crates/rdmascope/tests/records/", "fuzz/corpus/", "fuzz/regressions/"];

/// Checks all files that git tracks. Fails with a list of all violations.
pub(crate) fn run() -> Result<()> {
    let mut wrong = Vec::new();
    let mut sizes = Vec::new();
    let sentences = Sentences::read()?;
    for path in shell::output(&["git", "ls-files"])?.lines() {
        let is_input = INPUTS.iter().any(|directory| path.starts_with(directory));
        if is_input || path.ends_with(".LICENSE") {
            continue;
        }
        text::name(path, &mut wrong);
        let Ok(text) = fs::read_to_string(shell::root().join(path)) else { continue };
        // Scripts and styles of reports have longer lines.
        if !path.contains("/assets/") {
            text::lines(path, &text, &mut wrong);
        }
        sentences.check(path, &text, &mut wrong);
        if path.ends_with(".rs") {
            code::check(path, &text, &mut wrong, &mut sizes);
            words::check(path, &text, &mut wrong);
            patterns::check(path, &text, &mut wrong);
        }
    }
    crates::arrows(&mut wrong)?;
    let graphs = circles::graphs()?;
    circles::check(&graphs, &mut wrong);
    layers::check(&graphs, &mut wrong);
    sizes.sort_unstable();
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    eprintln!("xtask: tidy: {} source files, median {median} lines without tests", sizes.len());
    if !wrong.is_empty() {
        bail!("the house rules are broken in {} places:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}
