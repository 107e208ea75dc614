//! Points that have something in common, in few words: their number, and the values of their axes.

use measure::record::Axes;
use measure::text::{self, plain};
use serde_json::Value;

use crate::value;

/// Points by the values of their axes.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// How many there are.
    pub(super) points: usize,
    axes: Vec<(String, Vec<Value>)>,
}

impl Spread {
    /// Adds a point.
    pub(super) fn see(&mut self, axes: &Axes) {
        self.points += 1;
        for (name, value) in axes {
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

    /// The number of points in print: `1 point`.
    pub(super) fn count(&self) -> String {
        text::points(self.points as u64)
    }

    /// The axes for which `shown` holds, with their values: `service RC, UC; size_bytes 4..64`.
    pub(super) fn axes(&self, shown: impl Fn(&str, &[Value]) -> bool) -> String {
        let axes = self.axes.iter().filter(|(name, values)| shown(name, values));
        let axes: Vec<String> =
            axes.map(|(name, values)| plain(&format!("{name} {}", range(values)))).collect();
        axes.join("; ")
    }
}

/// Prints the values of an axis: `4..64` for more than two numbers, otherwise all values.
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
