//! `rdmascope model`: fits models to what a run measured, from its record alone, or to the
//! published numbers of a plan.

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
  rdmascope model gamess-2016          fits Tables 2 to 4 of the paper
  rdmascope model gamess-2016 --fit SDR,QDR
                                       fits two rates, to predict the others
  rdmascope model first-run            fits what a run measured
  rdmascope run models --out m && rdmascope model m
                                       measures a device for all models";

#[derive(Args, Debug)]
pub(crate) struct ModelArguments {
    /// Directory of a run, or a plan with published latencies: its file, or its name if it comes
    /// with the program.
    #[arg(value_name = "RUN|PLAN")]
    pub(crate) subject: PathBuf,
    /// Link rates to which the model of all rates is fitted [default: the slowest and the fastest].
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
    stdout::print_folded(&report::model::text(&figures, run, &arguments.fit)?)?;
    Ok(ExitCode::SUCCESS)
}
