//! Python with packages, by which tests read what the program writes.

use std::process::Command;

use super::{Ended, Scratch, finish, skip};

/// The interpreter with some packages: that which the variable RDMASCOPE_PYTHON names, else
/// python3. Skips the test if it lacks one.
pub(crate) fn with(packages: &[&str]) -> Option<String> {
    let python = std::env::var("RDMASCOPE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = format!("import {}", packages.join(", "));
    let output = Command::new(&python).args(["-c", &import]).output();
    if output.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let all = packages.join(" ");
    skip("pandas", &format!("{python} cannot import {} (pip install {all})", packages.join(", ")));
    None
}

/// Runs a script in the directory of a test.
pub(crate) fn run(scratch: &Scratch, python: &str, script: &str) -> Ended {
    let mut command = scratch.command(python);
    command.args(["-c", script]);
    finish(command)
}
