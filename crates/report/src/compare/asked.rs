//! What is compared: the runs of both sides, and what is looked at.

use measure::presentation::Patterns;
use measure::record::{Point, Run};
use serde::Serialize;

use crate::SampleSource;

/// The record of one run.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// Its name in print: its directory.
    pub name: &'a str,
    /// The run.
    pub run: &'a Run,
    /// Its points.
    pub points: &'a [Point],
    /// Its raw samples.
    pub samples: &'a dyn SampleSource,
}

/// When and where a run was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    /// When it started (RFC 3339, UTC).
    pub started: String,
    /// The host of its first rank.
    pub host: String,
}

impl Measured {
    pub(super) fn of(session: &Session<'_>) -> Self {
        Self { started: session.run.started.clone(), host: session.run.host().to_owned() }
    }
}

impl Session<'_> {
    /// When it started, such that texts are in the order of time: a whole second comes before its
    /// fractions.
    pub(super) fn start(&self) -> &str {
        self.run.started.trim_end_matches('Z')
    }
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How the runs of the sides were measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By turns, in pairs of random order: the n-th run of each side is a pair.
    Turns,
    /// Independently of each other, in a mixed order.
    Mixed,
    /// One side after the other.
    Sessions,
}

/// What is compared, and how.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The runs of the base and of the new side.
    pub sides: [&'a [Session<'a>]; 2],
    /// The names of the sides in print.
    pub names: [&'a str; 2],
    /// Earlier sessions of the base's experiments on this machine.
    pub history: &'a [Session<'a>],
    /// Whether the runs were measured by turns.
    pub by_turns: bool,
    /// Paths of the numbers; the main number of each point if empty.
    pub quantities: &'a [String],
    /// Whether the points of an experiment are one question.
    pub by_experiment: bool,
    /// The ratio, as a share, up to which sides count as the same.
    pub margin: f64,
    /// Whether sides are compared that differ in what matters.
    pub anyway: bool,
    /// The patterns that the program knows.
    pub patterns: Patterns,
}
