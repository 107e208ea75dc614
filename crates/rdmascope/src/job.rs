//! What a command measures, how, and where its record goes.

use std::path::PathBuf;

use bench::plan::Resolved;
use bench::process::coordinator::Launch;
use measure::figure::Unit;

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

impl Job {
    /// Returns why a run that was stopped leaves no record.
    pub(crate) fn nothing_kept(&self) -> &'static str {
        match self.out {
            Some(_) => "no point had ended, so there is no record",
            None => "without --out no point is kept",
        }
    }
}
