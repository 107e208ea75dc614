//! `rdmascope trend`: where a series of runs changes.

use std::process::ExitCode;

use ::report::compare::trend::{Asked, trend as changes};
use bench::PATTERNS;
use clap::Args;

use super::output::OutputArguments;
use super::records::{Records, distinct, runs};
use super::{LookedAt, status};
use crate::failure::reported;

/// Below the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope trend nightly              the runs in a directory, by their start
  rdmascope trend nightly --quantity latency.p99_ns --html trend.html

Exit status: 3 if the last change of any point is for the worse, 4 if a point
failed in the last run, 0 if its last change is for the better, or if there is
none or that is undecided, 1 if there are too few runs.";

#[derive(Args, Debug)]
pub(crate) struct TrendArguments {
    /// Directories of runs, or directories with runs in them; at least 10 runs.
    #[arg(required = true, value_name = "RUN|DIR")]
    pub(crate) runs: Vec<String>,
    /// Use runs of other hosts than those of the last run, too.
    #[arg(long)]
    pub(crate) anyway: bool,
    #[command(flatten)]
    pub(crate) looked_at: LookedAt,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Prints the changes of a series of runs.
pub(crate) fn trend(arguments: &TrendArguments) -> anyhow::Result<ExitCode> {
    let mut all = Vec::new();
    for text in &arguments.runs {
        all.extend(runs(text)?);
    }
    let records = Records::new(distinct(all));
    let found = changes(&Asked {
        runs: &records.sessions(),
        quantities: &arguments.looked_at.quantity,
        margin: arguments.looked_at.margin,
        anyway: arguments.anyway,
        patterns: PATTERNS,
    })?;
    Ok(reported(status(found.verdict), arguments.output.write(&found.sheet(), &found)))
}
