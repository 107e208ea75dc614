//! The program for aarch64, run under user-mode emulation.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::build;
use crate::packages::install;
use crate::shell;

/// Debian packages of the emulator and of the C library of its programs.
const PACKAGES: [(&str, &str); 2] =
    [("qemu-user", "/usr/bin/qemu-aarch64"), ("libc6-arm64-cross", "/usr/aarch64-linux-gnu/lib/libc.so.6")];
const TRIPLE: &str = "aarch64-unknown-linux-gnu";
/// What starts a program in the emulation.
const EMULATED: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// What is run, and what each prints.
const RUNS: [(&str, &str); 4] = [
    ("--version", concat!("rdmascope ", env!("CARGO_PKG_VERSION"))),
    ("lat send --hosts a,b -n 100 --out OUT/send", "OUT/send"),
    ("bw write --hosts a,b -n 100 --out OUT/write", "OUT/write"),
    ("lat tcp --hosts a,b -n 100 --out OUT/tcp", "OUT/tcp"),
];

/// Builds the program for aarch64, where the compiler compares its structures with those of the
/// system's headers, and measures between two of its agents.
pub(super) fn run(dist: &Path) -> Result<()> {
    install(&PACKAGES)?;
    shell::run(&["rustup", "--quiet", "target", "add", TRIPLE])
        .context("the standard library for aarch64 comes with rustup")?;
    build::install_zigbuild()?;
    let directory = dist.join("aarch64");
    let target = format!("{TRIPLE}.{}", build::OLD_GLIBC);
    let words = ["cargo", "zigbuild", "--target", &target, "--locked", "--quiet", "--package", "rdmascope"];
    build::cargo(&words, &shell::root(), &directory, "")?;
    let program = directory.join(TRIPLE).join("debug/rdmascope");
    let out = tempfile::tempdir()?;
    for (words, expected) in RUNS {
        emulate(&program, words, expected, out.path())?;
    }
    eprintln!("xtask: dist: the program for aarch64 measures under user-mode emulation");
    Ok(())
}

/// Runs the program in the emulation, which its agents need as well.
fn emulate(program: &Path, words: &str, expected: &str, out: &Path) -> Result<()> {
    let [words, expected] = [words, expected].map(|text| text.replace("OUT", &out.to_string_lossy()));
    let program = program.to_string_lossy();
    let emulated: Vec<&str> = EMULATED.split(' ').chain([&*program]).chain(words.split(' ')).collect();
    let mut command = shell::command(&emulated);
    if words.contains("--hosts") {
        command.args(["--via", &format!("env HOST={{host}} {EMULATED}")]);
    }
    let output = command.output().context("cannot start the emulator")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_expected = output.status.success() && printed.contains(&expected);
    ensure!(is_expected, "`rdmascope {words}` for aarch64 failed ({}): {printed}{errors}", output.status);
    Ok(())
}
