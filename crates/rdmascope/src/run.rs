//! `rdmascope run`: measures a plan and writes its report.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use bench::plan::{Options, Plan, resolve};
use clap::Args;
use measure::figure::Unit;

use crate::cli::{PlanPlacement, Results};
use crate::execute::execute;
use crate::job::{Destination, Job, Shows};
use crate::launch::launch;
use crate::stdout;

/// Below the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope run plans/quick.toml
  rdmascope run quick --out /tmp/first-run
  rdmascope run gamess-2016 --quick --set repetitions=3
  rdmascope run quick --set size_bytes=64 --set experiment.latency.service=RC
  rdmascope run quick --expect 'p99 <= 20us' --expect no_loss
  rdmascope run quick --cpus 2,3       rank 0 on CPU 2, rank 1 on CPU 3
  rdmascope run quick --hosts red,blue --via 'ip netns exec {host}'
  rdmascope run --resume runs/quick-2026-11-27T120000Z";

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// File of a plan, or name of a plan that comes with the program (see `rdmascope plans`).
    #[arg(required_unless_present = "resume")]
    pub(crate) plan: Option<String>,
    /// Measure the plan's short form: the same figures from fewer messages and sizes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Directory for the record and the report; it must not contain a run [default:
    /// runs/PLAN-TIME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the run in this directory, which was stopped or killed: measure the points that
    /// its record does not have, with the same command line, on the same host.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "quick", "out", "set", "dry_run", "expect"])]
    pub(crate) resume: Option<PathBuf>,
    /// Change a setting or an axis: KEY=VALUE for all experiments or experiment.NAME.KEY=VALUE.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print a row for each point when it ends, and all cases of findings. Without this, print
    /// medians over repetitions at the end.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print the resolved plan as JSON and measure nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) results: Results,
    #[command(flatten)]
    pub(crate) placement: PlanPlacement,
}

impl RunArguments {
    /// Returns what standard output shows.
    pub(crate) fn shows(&self) -> Shows {
        match self {
            Self { results: Results { json: true, .. }, .. } => Shows::Json,
            Self { verbose: true, .. } => Shows::Points,
            _ => Shows::Medians,
        }
    }
}

/// Measures the points of a plan, keeps the record and writes the report.
pub(crate) fn run(arguments: &RunArguments, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let plan = Plan::load(arguments.plan.as_deref().unwrap_or_default())?;
    let plan = arguments.results.expected(plan)?;
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
        out: Destination::New(out),
        bandwidth: Unit::GbPerS,
        shows: arguments.shows(),
        json_file: None,
    })
}

/// Returns a new path `runs/NAME-TIME`: listings sort such names by time.
pub(crate) fn directory(name: &str) -> PathBuf {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
    let stem = format!("{name}-{time}");
    let numbered = (2..).map(|n| format!("{stem}-{n}"));
    let free = std::iter::once(stem.clone()).chain(numbered).map(|name| PathBuf::from("runs").join(name));
    free.into_iter().find(|path| !path.exists()).unwrap_or_default()
}
