//! Points that cannot be measured, gathered to one line for each run of equal reasons.

use measure::record::Point;
use serde_json::Value;

use super::row::ROW_AXES;
use super::{IN_ROWS, Key, plain};
use crate::value;

/// A run of points that were not measured for the same reason.
#[derive(Debug)]
pub(super) struct Gathered {
    reason: String,
    points: u64,
    keys: Vec<Key>,
    axes: Vec<(String, Vec<Value>)>,
}

impl Gathered {
    pub(super) fn new(reason: String) -> Self {
        Self { reason, points: 0, keys: Vec::new(), axes: Vec::new() }
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
        self.points += 1;
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
        for (name, value) in &point.axes {
            let index = self.axes.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                self.axes.push((name.clone(), Vec::new()));
                self.axes.len() - 1
            });
            let values = &mut self.axes[index].1;
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
    }

    /// The table that all of the points belong to, if there is just one.
    pub(super) fn only_key(&self) -> Option<&Key> {
        if let [key] = &self.keys[..] { Some(key) } else { None }
    }

    /// The line inside the table that the points belong to, with the axes that tell them apart.
    pub(super) fn inside(&self) -> String {
        self.line("", &|name, values| values.len() > 1 || IN_ROWS.contains(&name))
    }

    /// The line on its own: it names the experiment, and the axes that also tell the points from their neighbours.
    pub(super) fn apart<'a>(&self, neighbours: impl Iterator<Item = &'a Key>) -> String {
        let experiment = self.keys.first().map(|key| plain(&key.experiment)).unwrap_or_default();
        let others: Vec<&Key> = neighbours.filter(|key| key.experiment == experiment).collect();
        let differs = |name: &str, values: &[Value]| {
            let value = values.first();
            others.iter().any(|key| !ROW_AXES.contains(&name) && key.axes.get(name) != value)
        };
        let line = self.line(&format!(" of {experiment}"), &|name, values| {
            values.len() > 1 || IN_ROWS.contains(&name) || differs(name, values)
        });
        format!("\n{line}")
    }

    fn line(&self, whose: &str, shown: &dyn Fn(&str, &[Value]) -> bool) -> String {
        let points = if self.points == 1 { "point" } else { "points" };
        let axes: Vec<String> = self
            .axes
            .iter()
            .filter(|(name, values)| shown(name, values))
            .map(|(name, values)| plain(&format!("{name} {}", range(values))))
            .collect();
        let axes = if axes.is_empty() { String::new() } else { format!(": {}", axes.join("; ")) };
        format!(" not measured: {} ({} {points}{whose}{axes})\n", self.reason, self.points)
    }
}

/// Values of an axis in few words: `4..64` for more than two numbers, else all of them.
fn range(values: &[Value]) -> String {
    let mut values: Vec<&Value> = values.iter().collect();
    let numbers = values.iter().all(|v| v.is_number());
    if numbers {
        values.sort_by(|a, b| value::order(a, b));
    }
    match &values[..] {
        [first, .., last] if numbers && values.len() > 2 => {
            format!("{}..{}", value::text(first), value::text(last))
        }
        _ => values.iter().map(|v| value::text(v)).collect::<Vec<_>>().join(", "),
    }
}
