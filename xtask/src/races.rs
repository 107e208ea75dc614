//! `cargo xtask races`: runs the concurrent code of the software device under ThreadSanitizer and
//! Miri.
//!
//! A third tool, loom, needs no command: its models are tests of `softdev` (`sys/sync/model.rs`)
//! and run with all other tests.
//!
//! ThreadSanitizer watches the accesses of all threads of a process, but not of other processes,
//! and it does not know fences: only the models check what a fence orders. Miri runs the parts
//! without system calls, and checks pointers and memory orders by the rules of the language.

use anyhow::{Result, bail};

use crate::shell;

const USAGE: &str = "\
usage: cargo xtask races [--install] [tsan|miri]

  tsan       runs softdev's tests and the conformance cases under ThreadSanitizer; any data race is a failure
  miri       runs the parts of softdev without system calls under Miri
  --install  installs what is missing by rustup: the nightly toolchain, rust-src for tsan, miri for miri (about 300 MB)

Without a name both run. A tool that is not installed is SKIPPED. The loom models are tests: cargo test -p softdev model";

/// The toolchain that has these tools.
const TOOLCHAIN: &str = "nightly";

/// A target that ThreadSanitizer supports, for which the standard library is built, too.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// rustix calls the kernel through libc, so that ThreadSanitizer sees mappings and the order of
/// accesses to pipes.
const TSAN_FLAGS: &str = "-Zsanitizer=thread --cfg sanitized --cfg rustix_use_libc";

/// The test programs that run under ThreadSanitizer, without the loom models.
const TSAN_TESTS: [&[&str]; 4] = [
    // loom switches the threads of its models itself.
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

/// `cargo xtask races`.
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
            _ => bail!("races: unknown tool or option `{word}`\n{USAGE}"),
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

/// Whether the toolchain has a component. If `install` is set, a missing component is installed.
fn is_there(component: &str, install: bool) -> Result<bool> {
    let list = ["rustup", "component", "list", "--installed", "--toolchain", TOOLCHAIN];
    let has = || -> Result<bool> {
        // rustup might install a missing toolchain when it is asked about it.
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
        // A race ends the program at once, also a program that a case starts as its peer.
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
