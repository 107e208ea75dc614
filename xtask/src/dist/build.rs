//! Builds the program as it is shipped: the release profile, with no path of this machine inside.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::files;
use crate::shell;

/// What a build is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Target {
    /// Systems like this one, or newer.
    Native,
    /// Systems with glibc 2.28 or later: RHEL 8, Debian 10, Ubuntu 20.04.
    OldGlibc,
}

/// The program has fewer bytes than this, so that it is quickly copied to a host.
const BYTES_MAX: u64 = 15_000_000;

/// The oldest glibc that [`Target::OldGlibc`] runs on.
pub(super) const OLD_GLIBC: &str = "2.28";

/// A program that has been built.
pub(super) struct Build {
    pub(super) target: Target,
    /// The checkout that it was made of.
    pub(super) checkout: PathBuf,
    /// The directory with `rdmascope` and `deps/librdmascope_preload.so`.
    pub(super) output: PathBuf,
    /// A directory for the intermediate files of packages.
    pub(super) scratch: PathBuf,
    /// That of the workspace.
    pub(super) version: &'static str,
    /// Seconds since 1970 of the last commit: the time of every file in the packages.
    pub(super) epoch: String,
}

impl Build {
    /// Builds a checkout below `dist`.
    pub(super) fn make(target: Target, checkout: &Path, dist: &Path) -> Result<Self> {
        let name = match target {
            Target::Native => "native",
            Target::OldGlibc => "old-glibc",
        };
        let directory = dist.join(name);
        let triple = format!("{}-unknown-linux-gnu", env::consts::ARCH);
        let with_glibc = format!("{triple}.{OLD_GLIBC}");
        let mut words = vec!["cargo"];
        let mut output = directory.clone();
        match target {
            Target::Native => words.push("build"),
            Target::OldGlibc => {
                install_zigbuild()?;
                words.extend(["zigbuild", "--target", &with_glibc]);
                output.push(&triple);
            }
        }
        output.push("release");
        words.extend(["--release", "--locked", "--package", "rdmascope"]);
        cargo(&words, checkout, &directory, &flags(checkout)?)?;
        let program = output.join("rdmascope");
        let bytes = fs::metadata(&program)?.len();
        eprintln!("xtask: dist: {} ({bytes} B)", program.display());
        ensure!(bytes < BYTES_MAX, "the program has {bytes} B: ship less than {BYTES_MAX} B");
        Ok(Self {
            target,
            checkout: checkout.to_owned(),
            output,
            scratch: directory.join("packages"),
            version: env!("CARGO_PKG_VERSION"),
            epoch: shell::output(&["git", "log", "-1", "--format=%ct"])?.trim().to_owned(),
        })
    }

    /// The program.
    pub(super) fn program(&self) -> PathBuf {
        self.output.join("rdmascope")
    }

    /// The library that is inside the program, as a file.
    pub(super) fn library(&self) -> PathBuf {
        self.output.join("deps/librdmascope_preload.so")
    }

    /// An empty directory for the intermediate files of one package.
    pub(super) fn scratch(&self, name: &str) -> Result<PathBuf> {
        let scratch = self.scratch.join(name);
        files::empty(&scratch)?;
        Ok(scratch)
    }
}

/// Runs cargo, or a tool of this project that cargo runs, in a checkout.
pub(super) fn cargo(words: &[&str], checkout: &Path, directory: &Path, flags: &str) -> Result<()> {
    eprintln!("xtask: dist: {}", words.join(" "));
    let mut command = shell::command(words);
    command.current_dir(checkout).env("CARGO_TARGET_DIR", directory);
    command.env("RUSTFLAGS", flags).env("PATH", with_tools()?);
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "the build failed ({status})");
    Ok(())
}

/// Flags that put stable names for the directories of this machine into the program, and leave out
/// the tables for unwinding, a thirtieth of it: a panic aborts, and no backtrace has names.
fn flags(checkout: &Path) -> Result<String> {
    let home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => {
            PathBuf::from(env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?).join(".cargo")
        }
    };
    let registry = home.join("registry/src");
    Ok(format!(
        "--remap-path-prefix={}=/cargo --remap-path-prefix={}=/rdmascope -Cforce-unwind-tables=no",
        registry.display(),
        checkout.display()
    ))
}

/// Clones the checkout with what is not committed, which a second build is made of.
pub(super) fn copy_checkout(copy: &Path) -> Result<()> {
    files::empty(copy)?;
    for path in shell::output(&["git", "ls-files"])?.lines() {
        let to = copy.join(path);
        let Ok(bytes) = fs::read(shell::root().join(path)) else { continue };
        fs::create_dir_all(to.parent().context("a file has a directory")?)?;
        fs::write(to, bytes)?;
    }
    Ok(())
}

/// `PATH` with the tools that are installed for this project alone in front.
pub(super) fn with_tools() -> Result<std::ffi::OsString> {
    let own = [shell::root().join("target/tools/bin"), shell::root().join("target/python/bin")];
    let path = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(own.into_iter().chain(env::split_paths(&path)))?)
}

/// Installs what links for an older glibc, for this project alone: cargo-zigbuild, and zig from the
/// Python package `ziglang`.
pub(super) fn install_zigbuild() -> Result<()> {
    let tools = shell::root().join("target/tools").to_string_lossy().into_owned();
    let zigbuild = format!("{tools}/bin/cargo-zigbuild");
    if !shell::works(&[&zigbuild, "--version"]) {
        let install =
            ["cargo", "install", "--locked", "--quiet", "--debug", "--root", &tools, "cargo-zigbuild"];
        shell::run_with(&install, &[("CARGO_PROFILE_DEV_DEBUG", "false")])?;
    }
    let python = shell::root().join("target/python").to_string_lossy().into_owned();
    let interpreter = format!("{python}/bin/python3");
    let pip = [interpreter.as_str(), "-m", "pip"];
    if !shell::works(&[&pip[..], &["--version"]].concat()) {
        shell::run(&["python3", "-m", "venv", "--system-site-packages", &python])?;
    }
    if !shell::works(&[&pip[..], &["show", "--quiet", "ziglang"]].concat()) {
        shell::run(&[&pip[..], &["install", "--quiet", "ziglang"]].concat())?;
    }
    Ok(())
}
