//! The outcomes of the techniques of environments; equal outcomes of many points are merged.

use std::collections::BTreeSet;

use measure::conditions::{Condition, Outcome};
use measure::record::Point;

use crate::value;

/// One technique of one environment, with its outcome on some ranks.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The environment's name.
    pub(crate) environment: String,
    /// The outcome; its rank is the first.
    pub(crate) condition: Condition,
    /// The ranks with this outcome.
    pub(crate) ranks: BTreeSet<u32>,
}

/// The rows of points, in the order in which they were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    rows: Vec<Row>,
}

impl Conditions {
    /// Adds a point.
    pub(crate) fn see(&mut self, point: &Point) {
        let environment = point.axes.get("environment").map(value::text).unwrap_or_default();
        for condition in &point.conditions {
            let is_same = |row: &&mut Row| {
                row.environment == environment
                    && Condition { rank: condition.rank, ..row.condition.clone() } == *condition
            };
            if let Some(row) = self.rows.iter_mut().find(is_same) {
                row.ranks.insert(condition.rank);
                continue;
            }
            let row = Row {
                environment: environment.clone(),
                condition: condition.clone(),
                ranks: BTreeSet::from([condition.rank]),
            };
            // Next to other outcomes of the same technique.
            let is_kin = |other: &Row| {
                other.environment == environment && other.condition.technique == condition.technique
            };
            let at = self.rows.iter().rposition(is_kin).map_or(self.rows.len(), |at| at + 1);
            self.rows.insert(at, row);
        }
    }

    /// All rows.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl Row {
    /// `rank 0`, `ranks 0, 1`.
    pub(crate) fn on_ranks(&self) -> String {
        let ranks: Vec<String> = self.ranks.iter().map(u32::to_string).collect();
        let plural = if ranks.len() > 1 { "s" } else { "" };
        format!("rank{plural} {}", ranks.join(", "))
    }

    /// The outcome with the setting before and the reason.
    pub(crate) fn in_words(&self) -> String {
        let Condition { outcome, before, reason, .. } = &self.condition;
        let before = before.as_ref().filter(|_| *outcome == Outcome::Applied);
        let before = before.map_or(String::new(), |before| format!(", {before} before"));
        let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        format!("{outcome}{before}{reason}")
    }
}
