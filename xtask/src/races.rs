//! The concurrent code of the software device under tools that know more than a test:
//! ThreadSanitizer and Miri.
//!
//! A third, loom, needs nothing of its own: its models are tests of `softdev` (`sys/sync/model.rs`)
//! and run with all others.
//!
//! ThreadSanitizer watches all that the threads of a process really do, but knows neither other
//! processes nor fences: what a fence alone orders is the models' matter. What it sees of two
//! processes is each for itself. Miri runs the parts that make no system calls, with pointers and
//! orders as the language has them.

use anyhow::{Result, bail};

use crate::shell;

const USAGE: &str = "\
usage: cargo xtask races [--install] [tsan|miri]

  tsan       softdev's tests and the conformance cases under ThreadSanitizer: any data race fails
  miri       the parts of softdev without system calls under Miri
  --install  adds what is missing by rustup: the nightly toolchain, rust-src for tsan, miri for miri (some 300 MB)

Without a name both run. What is not installed is SKIPPED. The models under loom are tests: cargo test -p softdev model";

/// The toolchain whose tools these are.
const TOOLCHAIN: &str = "nightly";

/// Where ThreadSanitizer is, and the standard library can be built for it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// rustix calls the kernel through libc, where ThreadSanitizer sees what maps memory and what a
/// pipe orders.
const TSAN_FLAGS: &str = "-Zsanitizer=thread --cfg sanitized --cfg rustix_use_libc";

/// Test programs, which run whole but for the models.
const TSAN_TESTS: [&[&str]; 4] = [
    // The models are threads that loom switches by hand.
    &["--package", "softdev", "--lib", "--", "--skip", "model"],
    &["--package", "softdev", "--test", "stricter"],
    &["--package", "softdev", "--test", "processes"],
    &["--package", "conformance", "--test", "conformance"],
];

/// Parts of softdev that Miri can run.
const MIRI_TESTS: [&str; 8] = [
    "arena::tests::a_heap",
    "copy::",
    "reach::",
    "layout::",
    "slots::",
    "spin::tests::one",
    "target::tests::a_key",
    "wqe::",
];

/// Runs what the words say.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let mut install = false;
    let mut chosen = Vec::new();
    for word in words {
        match word.as_str() {
            "--help" => {
                eprintln!("{USAGE}");
                return Ok(());
            }
            "--install" => install = true,
            "tsan" | "miri" => chosen.push(word),
            _ => bail!("races: `{word}` is unknown\n{USAGE}"),
        }
    }
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    if is_chosen("tsan") && is_there("rust-src", install)? {
        tsan()?;
    }
    if is_chosen("miri") && is_there("miri", install)? {
        miri()?;
    }
    Ok(())
}

/// Whether the toolchain has a component; installs it if asked to.
fn is_there(component: &str, install: bool) -> Result<bool> {
    let list = ["rustup", "component", "list", "--installed", "--toolchain", TOOLCHAIN];
    let has = || -> Result<bool> {
        // A toolchain that is not there has no components, and rustup might fetch it for the
        // question.
        let toolchains = shell::works(&["rustup", "--version"])
            && shell::output(&["rustup", "toolchain", "list"])?
                .lines()
                .any(|line| line.starts_with(TOOLCHAIN));
        Ok(toolchains && shell::output(&list)?.lines().any(|line| line.starts_with(component)))
    };
    if has()? {
        return Ok(true);
    }
    if install {
        shell::run(&[
            "rustup",
            "toolchain",
            "install",
            TOOLCHAIN,
            "--profile",
            "minimal",
            "--component",
            component,
        ])?;
        return Ok(true);
    }
    eprintln!(
        "xtask: SKIPPED: {component} of Rust's {TOOLCHAIN} is not installed (cargo xtask races --install)"
    );
    Ok(false)
}

fn tsan() -> Result<()> {
    let directory = shell::root().join("target/tsan").to_string_lossy().into_owned();
    let variables = [
        ("RUSTUP_TOOLCHAIN", TOOLCHAIN),
        ("CARGO_TARGET_DIR", &directory),
        ("RUSTFLAGS", TSAN_FLAGS),
        // A race ends the program at once, also one that a case starts as its far end.
        ("TSAN_OPTIONS", "halt_on_error=1 history_size=4"),
    ];
    for test in TSAN_TESTS {
        let words: Vec<_> = ["cargo", "test", "-Zbuild-std", "--target", TARGET]
            .into_iter()
            .chain(test.iter().copied())
            .collect();
        shell::run_with(&words, &variables)?;
    }
    Ok(())
}

fn miri() -> Result<()> {
    let directory = shell::root().join("target/miri").to_string_lossy().into_owned();
    let variables = [("RUSTUP_TOOLCHAIN", TOOLCHAIN), ("CARGO_TARGET_DIR", &directory)];
    let words: Vec<_> = ["cargo", "miri", "test", "--package", "softdev", "--lib", "--"]
        .into_iter()
        .chain(MIRI_TESTS)
        .collect();
    shell::run_with(&words, &variables)
}
