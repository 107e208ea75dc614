//! Values of axes.

use std::cmp::Ordering;

use measure::selection::EXPERIMENT;
use serde_json::Value;

use crate::unit;

pub(crate) use measure::text::value as text;

/// Orders values of an axis: numbers by size, everything else as it came.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    }
}

/// Prints axes with their values: words as they are, other values with the name of their axis.
pub(crate) fn labels<'a>(values: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    let words = values.into_iter().map(|(axis, at)| match (at, at.as_u64()) {
        (Value::Null, _) => format!("no {axis}"),
        (Value::String(word), _) => word.clone(),
        (_, Some(bytes)) if axis.ends_with("_bytes") => unit::size(bytes),
        _ if axis == EXPERIMENT => text(at),
        _ => format!("{axis} {at}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
