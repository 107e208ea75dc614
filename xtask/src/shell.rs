//! Runs other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// A command that runs in the root of the repository.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root());
    command
}

/// Cargo with these words, which runs while nothing else does (SCHED_IDLE, sched(7)): beside tests
/// that spin, a mere low priority costs them a fifth of their time.
pub(crate) fn beside(words: &str) -> Command {
    let idle = ["chrt", "--idle", "0", "cargo"];
    let words: Vec<&str> = idle.into_iter().chain(words.split(' ')).collect();
    command(&words)
}

/// Runs a command with its output shown, and fails if it fails.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    run_with(words, &[])
}

/// As [`run`], with environment variables.
pub(crate) fn run_with(words: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let shown = words.join(" ");
    eprintln!("xtask: {shown}");
    let status = command(words).envs(variables.iter().copied()).status();
    let status = status.with_context(|| format!("cannot start `{shown}`: is it installed?"))?;
    ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// Runs a command, shows only its errors, and fails with it.
pub(crate) fn run_quietly(words: &[&str]) -> Result<()> {
    output(words).map(drop)
}

/// Runs a command and returns what it prints, if it succeeds.
pub(crate) fn output(words: &[&str]) -> Result<String> {
    let shown = words.join(" ");
    let output = command(words).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start `{shown}`: is it installed?"))?;
    ensure!(output.status.success(), "`{shown}` failed ({})", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a command can be run and succeeds.
pub(crate) fn works(words: &[&str]) -> bool {
    let quiet = command(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Whether this process is root, which may install packages.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The path of this program. `main` asks first, at the start: if cargo replaces the program while
/// it runs, the kernel's path of it is `... (deleted)`.
pub(crate) fn program() -> Result<&'static Path> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if let Some(program) = PROGRAM.get() {
        return Ok(program);
    }
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(PROGRAM.get_or_init(|| program))
}

/// Whether a program is installed.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
