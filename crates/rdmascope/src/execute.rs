//! Measures the points of `run`, `lat` and `bw`, and makes the record, the tables and the report.

use std::io::ErrorKind;
use std::process::ExitCode;

use bench::Error;
use bench::process::coordinator::{self, Summary};
use bench::process::interrupt::Interrupt;
use bench::process::sink::Sink;

use crate::failure::{DID_NOT_FINISH, Interrupted, NOT_MET, PARTIAL, reported};
use crate::job::Job;
use crate::sink::{Ended, Output};
use crate::{report, stdout};

/// Measures the points of a job and reports them.
pub(crate) fn execute(mut job: Job) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let nothing_kept = job.nothing_kept();
    let mut points = job.left();
    let mut output = Output::new(&mut job)?;
    if points.is_empty() {
        // Only repetitions are missing, as many as a plan with `within` still wants.
        points = output.more().map_err(anyhow::Error::from_boxed)?;
    }
    let ended = coordinator::run(&points, &job.launch, Some(&interrupt), &mut output);
    let closed = output.end();
    let is_kept = closed.as_ref().is_ok_and(|ended| ended.directory.is_some());
    let is_not_met = closed.as_ref().is_ok_and(|ended| ended.is_not_met);
    let statuses = closed.as_ref().map(|ended| ended.statuses).ok();
    let why = if is_kept { "the tables and the record say why" } else { "the tables say why" };
    let closed = closed.and_then(close);
    // The error that ended the run comes first: errors that followed from it would only hide it.
    let of_process = match ended {
        Err(Error::Interrupted { signal }) if !is_kept => {
            let why = nothing_kept.to_owned();
            return Err(Interrupted { signal, why }.into());
        }
        ended => ended?,
    };
    Ok(reported(status(statuses.unwrap_or(of_process), is_not_met, why), closed))
}

/// Returns the exit status of a run from the statuses of its points, and prints why it is not 0.
pub(crate) fn status(statuses: Summary, is_not_met: bool, why: &str) -> u8 {
    let Summary { measured, not_measured, failed } = statuses;
    let all = measured + not_measured + failed;
    match (measured, failed) {
        _ if is_not_met => {
            eprintln!("rdmascope: an expectation is not met: {why}");
            NOT_MET
        }
        // A script that goes on with the numbers would have none.
        (0, 0) => {
            eprintln!("rdmascope: nothing was measured: {why}");
            DID_NOT_FINISH
        }
        (_, 0) => 0,
        (_, failed) => {
            eprintln!("rdmascope: {failed} of {all} points failed: {why}");
            if measured > 0 { PARTIAL } else { DID_NOT_FINISH }
        }
    }
}

/// Writes the report beside the record; its path is the last line of standard output.
pub(crate) fn close(ended: Ended) -> anyhow::Result<()> {
    let mut unprinted = ended.unprinted;
    if let Some(directory) = ended.directory {
        let written = report::write_html(&directory, None)?;
        let path = written.file.unwrap_or_default();
        if ended.is_json {
            eprintln!("{}", path.display());
        } else {
            unprinted = unprinted.or(stdout::print(&format!("{}\n", path.display())).err());
        }
    }
    match unprinted {
        // The record and the report are complete, and a reader that has seen enough is no failure.
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
