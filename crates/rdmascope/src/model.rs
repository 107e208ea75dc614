//! `rdmascope model`: models of what a run measured, from its record alone, or of the numbers that a plan brings.

use std::process::ExitCode;

use bench::PATTERNS;
use bench::plan::{Options, Plan, resolve};
use measure::store::RunReader;
use report::Points;

use crate::cli::ModelArguments;
use crate::stdout;

/// Prints the models, with their errors.
pub(crate) fn model(arguments: &ModelArguments) -> anyhow::Result<ExitCode> {
    let (figures, points, devices) = if arguments.subject.is_dir() {
        let (run, points) = RunReader::open(&arguments.subject)?.into_parts();
        (run.figures, points, run.devices)
    } else {
        let plan = Plan::load(&arguments.subject.to_string_lossy())?;
        (resolve(&plan, &Options::default())?.figures, Vec::new(), Vec::new())
    };
    let run = Points { points: &points, devices: &devices, patterns: PATTERNS };
    stdout::print(&report::model::text(&figures, run, &arguments.fit)?)?;
    Ok(ExitCode::SUCCESS)
}
