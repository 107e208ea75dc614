//! The checks before a commit, and all tests.

use anyhow::Result;

use crate::{shell, suite, tidy};

/// Runs the checks before a commit: all but the tests of whole programs.
pub(crate) fn run() -> Result<()> {
    without_tests()?;
    deny()?;
    run_tests(&["--workspace", "--lib", "--bins"], &[])
}

/// Checks the format, lints, house rules and documentation.
pub(crate) fn without_tests() -> Result<()> {
    lints()?;
    documentation()
}

/// Checks the format, lints and house rules.
pub(crate) fn lints() -> Result<()> {
    shell::run(&["cargo", "fmt", "--all", "--check"])?;
    let words: Vec<&str> = ["cargo"].into_iter().chain(LINTS.split(' ')).collect();
    shell::run(&words)?;
    tidy::run()
}

/// The words of cargo that check lints.
pub(crate) const LINTS: &str = "clippy --workspace --all-targets --all-features -- --deny warnings";

/// The words of cargo that check the documentation: with all features, as the lints are, so that
/// dependencies are checked once for both.
pub(crate) const DOCUMENTATION: &str =
    "doc --workspace --all-features --no-deps --document-private-items --quiet";
/// What they need in the environment.
pub(crate) const NO_WARNINGS: (&str, &str) = ("RUSTDOCFLAGS", "--deny warnings");

/// Checks the documentation.
pub(crate) fn documentation() -> Result<()> {
    let words: Vec<&str> = ["cargo"].into_iter().chain(DOCUMENTATION.split(' ')).collect();
    shell::run_with(&words, &[NO_WARNINGS])
}

/// Checks the licences, bans and sources of the dependencies (deny.toml).
pub(crate) fn deny() -> Result<()> {
    if shell::works(&["cargo", "deny", "--version"]) {
        return shell::run(&[
            "cargo",
            "deny",
            "--log-level",
            "error",
            "check",
            "licenses",
            "bans",
            "sources",
        ]);
    }
    eprintln!("xtask: SKIPPED: cargo-deny is not installed (cargo install --locked cargo-deny)");
    Ok(())
}

/// The number of concurrent tests per CPU. Most tests wait, and tests that measure share the
/// machine.
const TESTS_PER_CPU: usize = 8;

/// Packages whose tests measure nothing, but compute and draw: they run beside all others.
const BESIDE: [&str; 2] = ["report", "verdict"];

/// Runs all tests with environment variables.
pub(crate) fn test(variables: &[(&str, &str)]) -> Result<()> {
    let threads = threads();
    suite::run_beside(&BESIDE, &[variables, &[("RUST_TEST_THREADS", threads.as_str())]].concat())
}

/// Runs the tests of the crates that have features, with all features and environment variables.
pub(crate) fn test_features(variables: &[(&str, &str)]) -> Result<()> {
    run_tests(&["-p", "bench", "-p", "rdmascope", "--all-features"], variables)
}

fn run_tests(words: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    suite::run(words, &[variables, &[("RUST_TEST_THREADS", threads().as_str())]].concat())
}

/// The number of concurrent tests, in print.
fn threads() -> String {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (TESTS_PER_CPU * cpus).to_string()
}
