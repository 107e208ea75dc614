//! Values of axes.

use std::cmp::Ordering;

use serde_json::Value;

pub(crate) use measure::text::value as text;

/// Orders values of an axis: numbers by size, everything else as it came.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    }
}
