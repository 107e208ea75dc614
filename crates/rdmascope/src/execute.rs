//! The middle of `run`, `lat` and `bw`: points in, record, tables and report out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench::plan::Resolved;
use bench::process::coordinator::{self, Launch};
use bench::process::interrupt::Interrupt;
use measure::figure::Unit;

use crate::failure::DID_NOT_FINISH;
use crate::report;
use crate::sink::Output;

/// What is to be measured, how, and where the record goes.
pub(crate) struct Job {
    pub(crate) resolved: Resolved,
    pub(crate) quick: bool,
    /// The command line.
    pub(crate) command: Vec<String>,
    pub(crate) launch: Launch,
    /// Directory of the record; none is kept without one.
    pub(crate) out: Option<PathBuf>,
    /// Unit of bandwidth in the tables.
    pub(crate) bandwidth: Unit,
}

/// Measures and reports.
pub(crate) fn execute(job: Job) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let mut output = Output::new(&job)?;
    let ended = coordinator::run(&job.resolved.points, &job.launch, Some(&interrupt), &mut output);
    let kept = output.end()?;
    if let Some(directory) = &kept {
        write_report(directory)?;
    }
    let summary = ended?;
    Ok(if summary.failed > 0 { ExitCode::from(DID_NOT_FINISH) } else { ExitCode::SUCCESS })
}

/// Writes the report beside the record; its path is the last line of standard output.
fn write_report(directory: &Path) -> anyhow::Result<()> {
    let path = directory.join("report.html");
    report::write_html(directory, &path)?;
    println!("{}", path.display());
    Ok(())
}
