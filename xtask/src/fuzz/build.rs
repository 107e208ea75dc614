//! The programs of the fuzz targets.

use std::path::PathBuf;

use anyhow::Result;

use crate::shell;

/// The toolchain that has libFuzzer's counters and AddressSanitizer.
const TOOLCHAIN: &str = "nightly";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// As cargo-fuzz has them: counters of edges and comparisons for libFuzzer, the sanitizer, and
/// arithmetic that panics where it overflows.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    -Zsanitizer=address -Cdebug-assertions --cfg fuzzing -Ccodegen-units=1";

/// Where all of it is.
pub(super) fn directory() -> PathBuf {
    shell::root().join("target/fuzz")
}

/// The program of a target.
pub(super) fn program(target: &str) -> PathBuf {
    directory().join("build").join(TARGET).join("release").join(target)
}

/// What is not installed, and how it is.
pub(super) fn missing() -> Result<Option<String>> {
    const INSTALL: &str = "rustup toolchain install nightly --profile minimal";
    // A toolchain that is not there has nothing, and rustup might fetch it for the question.
    let is_there = shell::works(&["rustup", "--version"])
        && shell::output(&["rustup", "toolchain", "list"])?.lines().any(|line| line.starts_with(TOOLCHAIN));
    if !is_there {
        return Ok(Some(format!("Rust's {TOOLCHAIN} is not installed ({INSTALL})")));
    }
    let libraries = ["rustc", "+nightly", "--print", "target-libdir", "--target", TARGET];
    let libraries = PathBuf::from(shell::output(&libraries)?.trim());
    if !libraries.join("librustc-nightly_rt.asan.a").exists() {
        return Ok(Some(format!("Rust's {TOOLCHAIN} has no AddressSanitizer for {TARGET} ({INSTALL})")));
    }
    if !shell::is_there("c++") {
        return Ok(Some("libFuzzer needs a C++ compiler, `c++` (apt-get install g++)".to_owned()));
    }
    Ok(None)
}

/// Builds the programs of targets.
pub(super) fn build(targets: &[String]) -> Result<()> {
    let mut words = vec!["cargo", "build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml"];
    words.extend(["--target", TARGET]);
    targets.iter().for_each(|target| words.extend(["--bin", target.as_str()]));
    let directory = directory().join("build").to_string_lossy().into_owned();
    let variables =
        [("RUSTUP_TOOLCHAIN", TOOLCHAIN), ("CARGO_TARGET_DIR", directory.as_str()), ("RUSTFLAGS", FLAGS)];
    shell::run_with(&words, &variables)
}
