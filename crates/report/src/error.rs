//! The errors of writing a report.

use measure::figure::Unit;

/// Why a report or a table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The output could not be written.
    #[error("cannot write the report: {0}")]
    Write(#[from] std::io::Error),
    /// The record could not be turned into the page's data.
    #[error("cannot encode the data of the report: {0}")]
    Encode(#[from] serde_json::Error),
    /// Samples that a record names could not be read.
    #[error("cannot read {path} of the run {run}: {why}")]
    Samples {
        /// Name of the run.
        run: String,
        /// Path in the run's directory.
        path: String,
        /// Why not.
        why: String,
    },
    /// A figure asks for a quantity in a unit that does not fit it.
    #[error("cannot print {path} in {unit}: it is a {quantity}; use {hint}")]
    UnitMismatch {
        /// Path into the point.
        path: String,
        /// The unit that was asked for.
        unit: Unit,
        /// The kind of quantity of the path.
        quantity: &'static str,
        /// Units that fit.
        hint: &'static str,
    },
    /// A figure lacks a setting that its kind needs.
    #[error("cannot draw the figure '{title}': a figure of this kind needs '{key}'")]
    FigureLacks {
        /// Heading of the figure.
        title: String,
        /// The key that is missing.
        key: &'static str,
    },
    /// There is neither a latency over message size, measured or published, nor anything else that
    /// a model is fitted to.
    #[error(
        "there is nothing to model: no experiment has latencies of three message sizes, of bursts or of fan-out"
    )]
    NothingToModel,
    /// A column that a model was to be fitted to.
    #[error("no table has a column '{name}' to fit to; the columns are {known}")]
    NoSuchColumn {
        /// The name that was asked for.
        name: String,
        /// The known columns.
        known: String,
    },
    /// The sides of a comparison differ in what must be the same.
    #[error(
        "the sides differ in what matters, so their numbers would not show the change alone: {}; --anyway compares them",
        list.join("; ")
    )]
    SidesDiffer {
        /// What differs, and how.
        list: Vec<String>,
    },
    /// No point of one side has a partner on the other.
    #[error("there is nothing to compare: no measured point of {} has the same experiment and axes as one of {}",
        names[0], names[1])]
    NothingToCompare {
        /// The names of the sides.
        names: [String; 2],
    },
    /// Points match, but of no number do both sides have one above 0.
    #[error(
        "there is nothing to compare: {}{}; --quantity names another number, such as {known}",
        list.iter().take(3).cloned().collect::<Vec<_>>().join("; "),
        if list.len() > 3 { "; ..." } else { "" }
    )]
    NoNumbers {
        /// Which points lack which number, in words.
        list: Vec<String>,
        /// Paths of numbers that a point of the base has.
        known: String,
    },
    /// A quantity that no point can have.
    #[error("no point has a number '{path}'; numbers are {known}")]
    NoSuchQuantity {
        /// The path that was asked for.
        path: String,
        /// Known paths.
        known: String,
    },
    /// A quantity of which neither more nor less is better.
    #[error("cannot compare {path}: neither more nor less of a {quantity} is better; use a time or a rate")]
    NoBetter {
        /// The path that was asked for.
        path: String,
        /// The kind of quantity.
        quantity: &'static str,
    },
    /// No combination of axes was measured in enough runs.
    #[error(
        "there is no trend to look for: it needs {least} runs of one placement that measured the same point, and these \
         {runs} have at most {most}{left_out}"
    )]
    TooFewRuns {
        /// The number of runs.
        runs: usize,
        /// The most runs of one placement in which a point was measured.
        most: usize,
        /// The least number of runs.
        least: usize,
        /// What is said of runs that were left out; empty without such.
        left_out: String,
    },
}

impl Error {
    /// Whether the request caused the error.
    pub fn is_usage(&self) -> bool {
        use Error::{NoBetter, NoSuchColumn, NoSuchQuantity, NothingToModel};
        matches!(self, NothingToModel | NoSuchColumn { .. } | NoSuchQuantity { .. } | NoBetter { .. })
    }
}
