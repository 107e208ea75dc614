//! What a run is expected to show: bounds on its numbers, which a plan or `--expect` states.
//!
//! Expectations are stored with the run's record, and the report judges them from the points alone.
//! They are the user's own bounds; the claims of papers are findings ([`crate::finding`]). The
//! model are the thresholds of k6.

mod bound;
#[cfg(test)]
mod tests;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Axes;
use crate::selection::{self, Selection};

pub use bound::{Bound, EXAMPLES, Limit, Relation};

/// A bound on a number of the points of a run.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The measured quantity as a path into a point, e.g. `latency.p99_ns`, or a short name of one:
    /// `p50`, `p90`, `p99`, `p999`, `min`, `max`, `mean`, `throughput`, `message_rate`, `missed`,
    /// `lost`. `no_loss` needs no bound.
    pub quantity: String,
    /// The bound that the number keeps, such as `<= 5 us`, `>= 90 % of link` or `<= 0.1 %`.
    pub bound: Bound,
    /// Names of the experiments whose points are judged. Without them, all experiments that have
    /// the quantity are judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<String>,
    /// Only points whose axes have these values.
    #[serde(default, rename = "where", skip_serializing_if = "Selection::is_empty")]
    pub only: Selection,
    /// Why the bound matters. Reports print it beside the judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Expectation {
    /// An expectation on all points.
    pub fn new(quantity: &str, bound: Bound) -> Self {
        let quantity = path_of(quantity).to_owned();
        Self { quantity, bound, experiments: Vec::new(), only: Selection::new(), reason: None }
    }

    /// Reads an expectation as people type it: `p99 <= 5us`, `throughput >= 90% of link`,
    /// `no_loss`.
    ///
    /// # Errors
    ///
    /// A sentence on what is wrong with the text, and what it could be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == NO_LOSS {
            return Ok(Self::new(text, Bound::nothing()));
        }
        let at = text.find(['<', '>']).filter(|at| *at > 0);
        let at = at.ok_or_else(|| format!("{text:?} is no quantity with a bound: {EXPRESSIONS}"))?;
        Ok(Self::new(text[..at].trim(), Bound::parse(&text[at..])?))
    }

    /// Whether it bounds the same number of the same points in the same way, whatever the reason.
    pub fn repeats(&self, other: &Self) -> bool {
        let Self { quantity, bound, experiments, only, reason: _ } = other;
        (quantity, bound, experiments, only) == (&self.quantity, &self.bound, &self.experiments, &self.only)
    }

    /// Whether a point of this experiment with these axes is judged.
    pub fn picks(&self, experiment: &str, axes: &Axes) -> bool {
        let own = [experiment.to_owned()];
        let experiments = if self.experiments.is_empty() { &own } else { &self.experiments[..] };
        selection::picks(experiments, &self.only, experiment, axes)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.quantity, self.bound)
    }
}

/// The path of a quantity by its short name; any other text stays.
pub fn path_of(name: &str) -> &str {
    SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, path)| path)
}

/// The expectation that needs no bound: every message arrives.
pub const NO_LOSS: &str = "no_loss";

/// Short names of quantities, and their paths.
pub const SHORT: [(&str, &str); 12] = [
    ("lost", "messages_lost"),
    ("max", "latency.max_ns"),
    ("mean", "latency.mean_ns"),
    ("message_rate", "throughput.messages_per_s"),
    ("min", "latency.min_ns"),
    ("missed", "pipeline.missed_share"),
    (NO_LOSS, "messages_lost"),
    ("p50", "latency.p50_ns"),
    ("p90", "latency.p90_ns"),
    ("p99", "latency.p99_ns"),
    ("p999", "latency.p999_ns"),
    ("throughput", "throughput.bytes_per_s"),
];

const EXPRESSIONS: &str =
    "write one such as \"p99 <= 5us\", \"throughput >= 90% of link\", \"missed <= 0.1%\" or \"no_loss\"";
