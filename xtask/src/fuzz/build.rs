//! Builds the programs of the fuzz targets.

use std::path::PathBuf;

use anyhow::Result;

use crate::shell;

/// The toolchain that has libFuzzer's counters and AddressSanitizer.
const TOOLCHAIN: &str = "nightly";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Flags for every crate.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1";
/// The flag for every crate unless `--no-sanitizer` is set.
const SANITIZER: &str = "-Zsanitizer=address";
/// Flags for all crates but [`UNCOUNTED`], as cargo-fuzz sets them: counters of edges and
/// comparisons for libFuzzer, and panics on arithmetic overflow.
const COUNTED: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Cdebug-assertions",
];
/// Crates whose control flow does not depend on the input: counters in their loops cost more than
/// all other counters and reveal nothing.
const UNCOUNTED: &[&str] = &[
    "adler2",
    "base64",
    "blake2",
    "chacha20",
    "chacha20poly1305",
    "cipher",
    "crc32fast",
    "curve25519-dalek",
    "flate2",
    "miniz_oxide",
    "poly1305",
    "sha2",
    "simd-adler32",
    "subtle",
    "universal-hash",
    "zlib-rs",
];

/// The directory of all files that fuzzing writes.
pub(super) fn directory() -> PathBuf {
    shell::root().join("target/fuzz")
}

/// The build directory, with AddressSanitizer or without.
fn place(sanitized: bool) -> PathBuf {
    directory().join(if sanitized { "build" } else { "build-unsanitized" })
}

/// The path of a target's program.
pub(super) fn program(target: &str, sanitized: bool) -> PathBuf {
    place(sanitized).join(TARGET).join("release").join(target)
}

/// Says what is not installed, and how to install it.
pub(super) fn missing() -> Result<Option<String>> {
    const INSTALL: &str = "rustup toolchain install nightly --profile minimal";
    // rustup might install a missing toolchain when it is asked about it.
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
pub(super) fn build(targets: &[String], sanitized: bool) -> Result<()> {
    let mut words = vec!["cargo", "build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml"];
    words.extend(["--target", TARGET, "-Zprofile-rustflags"]);
    let known = packages()?;
    let uncounted = UNCOUNTED.iter().filter(|name| known.iter().any(|known| known == *name));
    let uncounted = uncounted.map(|name| format!("profile.release.package.{name}.rustflags=[]"));
    let all = [
        format!("profile.release.rustflags={COUNTED:?}"),
        // Build scripts and procedural macros are not linked to libFuzzer.
        "profile.release.build-override.rustflags=[]".to_owned(),
    ];
    let profiles: Vec<String> = all.into_iter().chain(uncounted).collect();
    profiles.iter().for_each(|profile| words.extend(["--config", profile.as_str()]));
    targets.iter().for_each(|target| words.extend(["--bin", target.as_str()]));
    let directory = place(sanitized).to_string_lossy().into_owned();
    let flags = if sanitized { format!("{SANITIZER} {FLAGS}") } else { FLAGS.to_owned() };
    let variables = [
        ("RUSTUP_TOOLCHAIN", TOOLCHAIN),
        ("CARGO_TARGET_DIR", directory.as_str()),
        ("RUSTFLAGS", flags.as_str()),
    ];
    shell::run_with(&words, &variables)
}

/// The names of all crates that the targets depend on.
fn packages() -> Result<Vec<String>> {
    let lock = std::fs::read_to_string(shell::root().join("fuzz/Cargo.lock"))?;
    let name = |line: &str| Some(line.strip_prefix("name = \"")?.strip_suffix('"')?.to_owned());
    Ok(lock.lines().filter_map(name).collect())
}
