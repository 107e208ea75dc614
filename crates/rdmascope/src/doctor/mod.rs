//! `rdmascope doctor`: what on this host keeps a measurement from working or spoils its numbers,
//! and what mends it.
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
  rdmascope doctor                     this host, and the device that `run` takes
  rdmascope doctor -d mlx5_0           this host and that device
  rdmascope doctor --json              for programs
  rdmascope doctor --restore           after a run was killed with its guard

The object of --json:
  host, device  what was looked at
  worst         the worst severity
  findings      check (its name), severity (problem, warning, note, good),
                looked_at, found, why, remedy (commands, each on a line, or null)

Exit status:
  0  nothing found that keeps the device from being measured
  1  a problem does, or something could not be restored
  2  wrong usage, or no device of that name";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArguments {
    /// Device that is to be measured [default: the one that `run` takes].
    #[arg(short = 'd', long, value_name = "NAME")]
    device: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Take back what runs changed on this host and could not take back themselves, and do nothing
    /// else.
    #[arg(long, conflicts_with_all = ["device", "json"])]
    restore: bool,
    #[command(flatten)]
    host: HostArguments,
}

/// Looks at this host and says what it found.
pub(crate) fn examine(arguments: DoctorArguments) -> anyhow::Result<ExitCode> {
    let host = arguments.host.host();
    if arguments.restore {
        return restore::restore(&host);
    }
    if let Some(name) = &arguments.device {
        // The error names those that exist.
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

/// Something keeps the device from being measured.
const PROBLEM: u8 = 1;
