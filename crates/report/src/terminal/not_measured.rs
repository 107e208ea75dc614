//! Points that cannot be measured, gathered to one line for each run of equal reasons.

use measure::record::Point;
use serde_json::Value;

use super::{Key, plain};
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

    /// The line, with the axes that tell the points apart.
    pub(super) fn lines(&self) -> String {
        let points = if self.points == 1 { "point" } else { "points" };
        let apart: Vec<String> = self
            .axes
            .iter()
            .filter(|(name, values)| values.len() > 1 || name == "size_bytes")
            .map(|(name, values)| plain(&format!("{name} {}", range(values))))
            .collect();
        let apart = if apart.is_empty() { String::new() } else { format!(": {}", apart.join("; ")) };
        let (gap, whose) = match self.only_key() {
            Some(_) => ("", String::new()),
            None => {
                let name = self.keys.first().map(|k| plain(&k.experiment)).unwrap_or_default();
                ("\n", format!(" of {name}"))
            }
        };
        format!("{gap} not measured: {} ({} {points}{whose}{apart})\n", self.reason, self.points)
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
