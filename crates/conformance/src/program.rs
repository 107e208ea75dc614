//! This program, to be started once more.

use std::process::Command;

/// This program, to be started once more.
pub fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("a program knows itself"))
}

/// This program with its arguments, to take its place: with another environment, which a device
/// reads once.
pub fn again() -> Command {
    let mut again = this_program();
    again.args(std::env::args_os().skip(1));
    again
}
