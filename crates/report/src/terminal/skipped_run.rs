//! Points that cannot be measured, gathered to one line for consecutive points with the same
//! reason.

use measure::presentation::Presentation;
use measure::record::Point;
use measure::text::plain;
use serde_json::Value;

use super::banner::Key;
use super::spread::Spread;

/// Consecutive points that were not measured for the same reason.
#[derive(Debug)]
pub(super) struct SkippedRun {
    shown: &'static Presentation,
    reason: String,
    keys: Vec<Key>,
    points: Spread,
}

impl SkippedRun {
    pub(super) fn new(reason: String, shown: &'static Presentation) -> Self {
        Self { shown, reason, keys: Vec::new(), points: Spread::default() }
    }

    /// Whether a point belongs to this run.
    pub(super) fn takes(&self, point: &Point, reason: &str) -> bool {
        self.reason == reason
            && self
                .keys
                .last()
                .is_some_and(|k| k.experiment == point.experiment && k.pattern == point.pattern)
    }

    pub(super) fn push(&mut self, point: &Point, key: Key) {
        self.points.see(&point.axes);
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    /// The table of all the points, if they belong to one.
    pub(super) fn only_key(&self) -> Option<&Key> {
        if let [key] = &self.keys[..] { Some(key) } else { None }
    }

    /// The line inside the table of the points, with the axes in which they differ.
    pub(super) fn inside(&self) -> String {
        self.line("", &|_, _| false)
    }

    /// The line on its own, with the experiment, the axes in which the points differ, and those in
    /// which they differ from their neighbours.
    pub(super) fn apart<'a>(&self, neighbours: impl Iterator<Item = &'a Key>) -> String {
        let experiment = self.keys.first().map(|key| plain(&key.experiment)).unwrap_or_default();
        let others: Vec<&Key> = neighbours.filter(|key| key.experiment == experiment).collect();
        let differs = |name: &str, values: &[Value]| {
            let value = values.first();
            others.iter().any(|key| !self.shown.has_column(name) && key.axes.get(name) != value)
        };
        format!("\n{}", self.line(&format!(" of {experiment}"), &differs))
    }

    /// The line with the axes in which its points differ, the axes of rows, and those for which
    /// `is_told` holds.
    fn line(&self, whose: &str, is_told: &dyn Fn(&str, &[Value]) -> bool) -> String {
        let rows = self.shown.row_axes;
        let axes = self
            .points
            .axes(|name, values| values.len() > 1 || rows.contains(&name) || is_told(name, values));
        let axes = if axes.is_empty() { axes } else { format!(": {axes}") };
        format!(" not measured: {} ({}{whose}{axes})\n", self.reason, self.points.count())
    }
}
