//! `rdmascope model`: models of what a run measured, from its record alone, or of the numbers that
//! a plan brings.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::PATTERNS;
use bench::plan::{Options, Plan, resolve};
use clap::Args;
use measure::store::RunReader;
use report::Points;

use crate::stdout;

/// Below the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope model gamess-2016          what Tables 2 to 4 of the paper are made of
  rdmascope model gamess-2016 --fit SDR,QDR
                                       how well these two rates tell the others
  rdmascope model first-run            the same of what a run measured
  rdmascope run models --out m && rdmascope model m
                                       all models of a device, from what they need";

#[derive(Args, Debug)]
pub(crate) struct ModelArguments {
    /// Directory of a run, or a plan with published latencies: the name of one that comes with the
    /// program, or a file.
    #[arg(value_name = "RUN|PLAN")]
    pub(crate) subject: PathBuf,
    /// Rates that the model of all rates is fitted to [default: the slowest and the fastest].
    #[arg(long, value_name = "RATE,RATE", value_delimiter = ',', num_args = 1)]
    pub(crate) fit: Vec<String>,
}

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
