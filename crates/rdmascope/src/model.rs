//! `rdmascope model`: models of what a run measured, from its record alone, or of the numbers that a plan brings.

use std::process::ExitCode;

use bench::plan::{Options, Plan, resolve};
use measure::store::RunReader;

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
    stdout::print(&report::model::text(&figures, &points, &devices, &arguments.fit)?)?;
    Ok(ExitCode::SUCCESS)
}
