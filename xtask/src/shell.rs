//! Running other programs.

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

/// Runs a command, shows what it prints, and fails with it.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    run_with(words, &[])
}

/// The same with environment variables.
pub(crate) fn run_with(words: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let shown = words.join(" ");
    eprintln!("xtask: {shown}");
    let status = command(words).envs(variables.iter().copied()).status();
    let status = status.with_context(|| format!("cannot start `{shown}`: is it installed?"))?;
    ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// What a command prints, if it succeeds.
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

/// Whether this is root, who alone may install packages.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where this program is. Asked for the first time when it starts: cargo may put another in its
/// place while it runs, and then the kernel knows the old one as `... (deleted)`.
pub(crate) fn program() -> Result<&'static Path> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if let Some(program) = PROGRAM.get() {
        return Ok(program);
    }
    let program = std::env::current_exe().context("the path of this program is not known")?;
    Ok(PROGRAM.get_or_init(|| program))
}

/// Whether a program is installed.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
