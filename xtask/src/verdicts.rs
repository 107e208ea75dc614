//! `cargo xtask verdicts`: proves the rates of error of verdicts, by simulation. The simulation is
//! a program of the crate `verdict`, so that it runs the procedures that rdmascope runs.

use std::time::Instant;

use anyhow::Result;

use crate::shell;

/// `cargo xtask verdicts`, with the options of that program.
pub(crate) fn with(words: impl Iterator<Item = String>) -> Result<()> {
    shell::run_quietly(&["cargo", "build", "--release", "--quiet", "-p", "verdict", "--bin", "verdicts"])?;
    let program = shell::root().join("target/release/verdicts");
    let program = program.to_string_lossy().into_owned();
    let words: Vec<String> = std::iter::once(program).chain(words).collect();
    let start = Instant::now();
    let result = shell::run(&words.iter().map(String::as_str).collect::<Vec<&str>>());
    eprintln!("xtask: verdicts: {:.0} s", start.elapsed().as_secs_f64());
    result
}

/// The quick form, as in CI.
pub(crate) fn quick() -> Result<()> {
    with(std::iter::once("--quick".to_owned()))
}
