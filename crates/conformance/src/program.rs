//! Commands that start this program again.

use std::process::Command;

/// A command that starts this program.
pub fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("the path of this program is known"))
}

/// A command that starts this program with its arguments, to replace it with another environment: a
/// device reads the environment only once.
pub fn again() -> Command {
    let mut again = this_program();
    again.args(std::env::args_os().skip(1));
    again
}
