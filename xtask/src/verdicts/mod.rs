//! `cargo xtask verdicts`: proves the rates of error of verdicts, by simulation or by fleets that
//! rdmascope measures. Both are in a program of the crate `verdict`, so that the simulation runs
//! the procedures that rdmascope runs.

mod record;

use std::io::Write;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::shell;

/// `cargo xtask verdicts`, with the options of that program, or with `--record N`.
pub(crate) fn with(words: impl Iterator<Item = String>) -> Result<()> {
    let words: Vec<String> = words.collect();
    if let [option, cycles] = words.as_slice()
        && option == "--record"
    {
        return record::record(cycles.parse().context("--record needs a number of cycles")?);
    }
    shell::run_quietly(&["cargo", "build", "--release", "--quiet", "-p", "verdict", "--bin", "verdicts"])?;
    let has = |option: &str| words.iter().any(|word| word == option);
    if has("--fleets") && !has("--program") {
        shell::run_quietly(&["cargo", "build", "--release", "--quiet", "-p", "rdmascope"])?;
    }
    let program = shell::root().join("target/release/verdicts");
    let program = program.to_string_lossy().into_owned();
    let words: Vec<String> = std::iter::once(program).chain(words).collect();
    let start = Instant::now();
    let result = shell::run(&words.iter().map(String::as_str).collect::<Vec<&str>>());
    eprintln!("xtask: verdicts: {:.0} s", start.elapsed().as_secs_f64());
    result
}

/// The quick form, which compares with the rates of the documentation.
const QUICK: [&str; 3] = ["--quick", "--rates", "docs/error-rates.csv"];

/// The output of the quick form, if it has passed beside other work.
static PASSED: OnceLock<Vec<u8>> = OnceLock::new();

/// Runs the quick form, which is built, beside other work. Its stage prints the result.
pub(crate) fn ahead() {
    let words = format!("run --release --quiet -p verdict --bin verdicts -- {}", QUICK.join(" "));
    let mut command = shell::beside(&words);
    let output = command.stderr(Stdio::null()).output();
    // If it fails, its stage repeats it, and says why.
    if let Some(output) = output.ok().filter(|output| output.status.success()) {
        let _ = PASSED.set(output.stdout);
    }
}

/// The quick form, as in CI.
pub(crate) fn quick() -> Result<()> {
    match PASSED.get() {
        Some(said) => Ok(std::io::stdout().write_all(said)?),
        None => with(QUICK.map(str::to_owned).into_iter()),
    }
}
