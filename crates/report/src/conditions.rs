//! What became of what environments ask of the machine, the same lines of many points merged.

use std::collections::BTreeSet;

use measure::conditions::{Condition, Outcome};
use measure::record::Point;

use crate::value;

/// One technique of one environment, as it ended on some ranks.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The environment's name.
    pub(crate) environment: String,
    /// What the technique said; its rank is that of the first.
    pub(crate) condition: Condition,
    /// The ranks on which it ended so.
    pub(crate) ranks: BTreeSet<u32>,
}

/// The rows of points, in the order in which they were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    rows: Vec<Row>,
}

impl Conditions {
    /// Takes a point in.
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
            // Beside what the same technique said elsewhere.
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

    /// The outcome with what belongs to it: what was there before, why.
    pub(crate) fn in_words(&self) -> String {
        let Condition { outcome, before, reason, .. } = &self.condition;
        let before = before.as_ref().filter(|_| *outcome == Outcome::Applied);
        let before = before.map_or(String::new(), |before| format!(", {before} before"));
        let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        format!("{outcome}{before}{reason}")
    }
}
