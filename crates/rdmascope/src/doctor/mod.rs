//! `rdmascope doctor`: finds what prevents measurements on this host or spoils their numbers, and
//! says how to fix it.
//!
//! ```text
//! /proc, /sys, /dev, devices ─► Facts ─► checks, each a function of the facts alone ─► findings ─► text or JSON
//!                             facts.rs   checks/                                     finding.rs  print.rs
//! ```

mod checks;
mod facts;
mod finding;
mod print;
mod restore;
#[cfg(test)]
mod tests;
mod trial;

use std::path::Path;
use std::process::ExitCode;

use bench::worker::{self, PortOptions};
use clap::Args;

use crate::agent::HostArguments;
use crate::backends::{missing, providers};
use crate::devices::survey;
use crate::stdout;
use facts::Facts;
use finding::Severity;

const HELP: &str = "\
Examples:
  rdmascope doctor                     this host, and the device that `run` uses
  rdmascope doctor -d mlx5_0           this host, and the device mlx5_0
  rdmascope doctor --json              the findings for programs
  rdmascope doctor --restore           after a run was killed with its guard

The object of --json:
  host, device  what was examined
  worst         the worst severity
  findings      check (its name), severity (problem, warning, note, good),
                looked_at, found, why, remedy (commands, one a line, or null)

Exit status:
  0  no problem: the device can be measured
  1  a problem, or a change could not be reverted
  2  wrong usage, or no device of that name";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArguments {
    /// Device to check [default: the device that `run` uses].
    #[arg(short = 'd', long, value_name = "NAME")]
    device: Option<String>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// Only revert the changes of runs on this host that the runs could not revert themselves.
    #[arg(long, conflicts_with_all = ["device", "json"])]
    restore: bool,
    #[command(flatten)]
    host: HostArguments,
}

/// Checks this host and prints the findings.
pub(crate) fn examine(arguments: DoctorArguments) -> anyhow::Result<ExitCode> {
    let host = arguments.host.host();
    if arguments.restore {
        return restore::restore(&host);
    }
    if let Some(name) = &arguments.device {
        // The error names the devices that exist.
        worker::find(providers(), Some(name), PortOptions::default())?;
    }
    let mut facts = Facts::here(survey(providers(), missing(), Path::new("/")), arguments.device, &host);
    let target = facts.target().filter(|device| device.error.is_none()).map(|device| device.name.clone());
    if let Some(name) = target {
        let (device, _) = worker::find(providers(), Some(&name), PortOptions::default())?;
        facts.refusal = trial::trial(&device);
    }
    let findings = checks::findings(&facts);
    let text = if arguments.json {
        format!("{:#}\n", print::json(&facts, &findings))
    } else {
        print::text(&facts, &findings)
    };
    stdout::print(&text)?;
    let has_problem = findings.iter().any(|finding| finding.severity == Severity::Problem);
    Ok(if has_problem { ExitCode::from(PROBLEM) } else { ExitCode::SUCCESS })
}

/// Exit status if a problem prevents measurements.
const PROBLEM: u8 = 1;
