//! The house rules that a program can check (ARCHITECTURE.md).

mod code;
mod crates;
mod text;

use std::fs;

use anyhow::{Result, bail};

use crate::shell;

/// Checks all files that git knows; fails with the list of what is wrong.
pub(crate) fn run() -> Result<()> {
    let mut wrong = Vec::new();
    let mut sizes = Vec::new();
    for path in shell::output(&["git", "ls-files"])?.lines() {
        if path.contains("/assets/") || path.ends_with(".png") {
            continue;
        }
        let Ok(text) = fs::read_to_string(shell::root().join(path)) else { continue };
        text::lines(path, &text, &mut wrong);
        if path.ends_with(".rs") {
            code::check(path, &text, &mut wrong, &mut sizes);
        }
    }
    crates::arrows(&mut wrong)?;
    sizes.sort_unstable();
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    eprintln!("xtask: tidy: {} source files, median {median} lines without tests", sizes.len());
    if !wrong.is_empty() {
        bail!("the house rules are broken in {} places:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}
