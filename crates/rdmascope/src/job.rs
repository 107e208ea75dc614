//! What a command measures, how, and where its record goes.

use std::path::PathBuf;

use bench::plan::Resolved;
use bench::point::PointSpec;
use bench::process::coordinator::Launch;
use measure::figure::Unit;
use measure::store::EndedRun;

/// What is to be measured, how, and where the record goes.
pub(crate) struct Job {
    pub(crate) resolved: Resolved,
    pub(crate) quick: bool,
    /// The command line.
    pub(crate) command: Vec<String>,
    pub(crate) launch: Launch,
    /// Where the record goes.
    pub(crate) out: Destination,
    /// Unit of bandwidth in the tables.
    pub(crate) bandwidth: Unit,
    /// What standard output shows.
    pub(crate) shows: Shows,
    /// A file for all points as JSON, besides the record.
    pub(crate) json_file: Option<PathBuf>,
}

/// Where a record goes.
pub(crate) enum Destination {
    /// No record is kept.
    None,
    /// A new directory.
    New(PathBuf),
    /// A run that ended early: the points that remain are added to it.
    Resumed(Box<EndedRun>),
}

impl From<Option<PathBuf>> for Destination {
    fn from(out: Option<PathBuf>) -> Self {
        out.map_or(Self::None, Self::New)
    }
}

/// What standard output shows of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shows {
    /// A line of JSON for each point, as soon as it ends; all other text goes to standard error.
    Json,
    /// Tables with a row for each point, as soon as it ends.
    Points,
    /// Tables with a row for each combination of axes, at the end: medians over its repetitions.
    Medians,
}

impl Job {
    /// Returns the points that the record does not have.
    pub(crate) fn left(&self) -> Vec<PointSpec> {
        let Destination::Resumed(ended) = &self.out else { return self.resolved.points.clone() };
        let is_done = |spec: &PointSpec| ended.points.iter().any(|point| point.id == spec.id);
        self.resolved.points.iter().filter(|spec| !is_done(spec)).cloned().collect()
    }

    /// Returns why a run that was stopped leaves no record.
    pub(crate) fn nothing_kept(&self) -> &'static str {
        match self.out {
            Destination::None => "without --out no record is kept; points that had ended are in the table",
            Destination::New(_) | Destination::Resumed(_) => "no point had ended, so there is no record",
        }
    }
}
