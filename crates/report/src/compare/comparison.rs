//! The result of a comparison.

use serde::Serialize;

use super::asked::{Measured, Order};
use super::differences::Difference;

/// The verdict on a point, or on all.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The difference is within the margin.
    Same,
    /// The new side is better.
    Better,
    /// The new side is worse.
    Worse,
    /// The new side failed where the base was measured.
    Failed,
    /// The sides differ, but so can two sessions of the same.
    Differs,
    /// The numbers do not decide.
    Undecided,
}

impl Word {
    /// The word in print.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Failed => "failed",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
        }
    }
}

/// The comparison of two sides.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The names of the sides: base, new.
    pub names: [String; 2],
    /// The number of runs of each side.
    pub runs: [usize; 2],
    /// When and where the last run of the new side was measured.
    pub last: Measured,
    /// How they were measured.
    pub order: Order,
    /// Sessions of the history, of as many runs each as a side.
    pub history: usize,
    /// Runs of the history that were left out, and why, in words.
    pub left_out: Vec<String>,
    /// The ratio, as a share, up to which sides count as the same.
    pub margin: f64,
    /// A line for each question.
    pub rows: Vec<Row>,
    /// What differs between the sides.
    pub differences: Vec<Difference>,
    /// Points and numbers that one side does not have, in words.
    pub unmatched: Vec<String>,
    /// The verdict on all questions.
    pub verdict: Word,
    /// The same in a sentence.
    pub sentence: String,
}

/// The answer to one question.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The experiment.
    pub experiment: String,
    /// The axes that tell the point from others of the experiment; empty without such.
    pub point: String,
    /// The path of the number.
    pub quantity: String,
    /// The number in words.
    pub help: String,
    /// The medians of the units of each side, in the base of the number's unit (ns, B/s); absent
    /// for an experiment as one question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medians: Option<[f64; 2]>,
    /// The same in print.
    #[serde(skip)]
    pub printed: Option<[String; 2]>,
    /// How many units of each side were compared.
    pub units: [usize; 2],
    /// The number of units of each side that have a value. Units of the base without a value count,
    /// too, and have the worst value of both sides.
    pub units_measured: [usize; 2],
    /// The ratio new / base of the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Its interval; all intervals of a comparison hold together with 95 % confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The detectable difference, as a share: half the width of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// The verdict.
    pub verdict: Word,
    /// Why nothing was decided, or why the new side failed; empty elsewhere.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: String,
}
