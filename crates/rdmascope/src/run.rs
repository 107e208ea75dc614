//! `rdmascope run`: a plan, measured and reported.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use bench::plan::{Options, Plan, resolve};
use measure::figure::Unit;

use crate::cli::RunArguments;
use crate::execute::{Job, execute};
use crate::launch::launch;
use crate::stdout;

/// Measures the points of a plan, keeps the record and writes the report.
pub(crate) fn run(arguments: &RunArguments, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let plan = Plan::load(&arguments.plan)?;
    let resolved = resolve(&plan, &Options { quick: arguments.quick, set: arguments.set.clone() })?;
    if arguments.dry_run {
        stdout::print(&format!("{:#}\n", resolved.plan))?;
        return Ok(ExitCode::SUCCESS);
    }
    let out = arguments.out.clone().unwrap_or_else(|| directory(&resolved.name));
    let launch = launch(&arguments.placement, None, &resolved)?;
    execute(Job {
        resolved,
        quick: arguments.quick,
        command,
        launch,
        out: Some(out),
        bandwidth: Unit::GbPerS,
    })
}

/// `runs/NAME-TIME`: sorted by time in a listing, and never twice.
pub(crate) fn directory(name: &str) -> PathBuf {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
    let stem = format!("{name}-{time}");
    let numbered = (2..).map(|n| format!("{stem}-{n}"));
    let free = std::iter::once(stem.clone()).chain(numbered).map(|name| PathBuf::from("runs").join(name));
    free.into_iter().find(|path| !path.exists()).unwrap_or_default()
}
