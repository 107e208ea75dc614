//! The middle of `run`, `lat` and `bw`: points in, record, tables and report out.

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::bail;
use bench::Error;
use bench::process::coordinator::{self, Summary};
use bench::process::interrupt::Interrupt;

use crate::failure::DID_NOT_FINISH;
use crate::job::Job;
use crate::sink::{Ended, Output};
use crate::{report, stdout};

/// Measures and reports.
pub(crate) fn execute(job: Job) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let mut output = Output::new(&job)?;
    let ended = coordinator::run(&job.resolved.points, &job.launch, Some(&interrupt), &mut output);
    let closed = output.end();
    let is_kept = closed.as_ref().is_ok_and(|ended| ended.directory.is_some());
    let closed = closed.and_then(close);
    // What ended the run comes first: what followed from it would only hide it.
    let Summary { measured, not_measured, failed } = match ended {
        Err(Error::Interrupted { signal }) if !is_kept => {
            bail!("stopped by {signal}: {}", job.nothing_kept())
        }
        ended => ended?,
    };
    closed?;
    let all = measured + not_measured + failed;
    match (measured, failed) {
        // Whoever goes on with the numbers has none.
        (0, 0) => eprintln!("rdmascope: nothing was measured: the tables and the record say why"),
        (_, 0) => return Ok(ExitCode::SUCCESS),
        _ => eprintln!("rdmascope: {failed} of {all} points failed: the tables and the record say why"),
    }
    Ok(ExitCode::from(DID_NOT_FINISH))
}

/// Writes the report beside the record; its path is the last line of standard output.
pub(crate) fn close(ended: Ended) -> anyhow::Result<()> {
    let mut unprinted = ended.unprinted;
    if let Some(directory) = ended.directory {
        let written = report::write_html(&directory, None)?;
        let path = written.file.unwrap_or_default();
        unprinted = unprinted.or(stdout::print(&format!("{}\n", path.display())).err());
    }
    match unprinted {
        // The record and the report are there, and a reader who has seen enough is no failure.
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
