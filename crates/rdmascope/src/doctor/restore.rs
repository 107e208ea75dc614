//! `rdmascope doctor --restore`: reverts the changes of runs that were killed together with their
//! guards.

use std::process::ExitCode;

use conditions::{Host, Restored};

use crate::failure::DID_NOT_FINISH;
use crate::stdout;

/// Reverts the changes, and prints the result for each value.
pub(super) fn restore(host: &Host) -> anyhow::Result<ExitCode> {
    let Restored { restored, left_alone, failed } = conditions::restore(host);
    let mut text = String::new();
    for (word, lines) in [("restored", &restored), ("left", &left_alone), ("FAILED", &failed)] {
        text.extend(lines.iter().map(|line| format!("{word:<9}{line}\n")));
    }
    if text.is_empty() {
        text = "There is nothing to restore.\n".to_owned();
    }
    stdout::print(&text)?;
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DID_NOT_FINISH) })
}
