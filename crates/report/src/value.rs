//! Values of axes.

use std::cmp::Ordering;
use std::time::Duration;

use measure::selection::EXPERIMENT;
use measure::units::format_duration;
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

/// Prints axes with their values, or that there is none.
pub(crate) fn labels<'a>(values: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    let words = values.into_iter().map(|(axis, at)| match at {
        Value::Null => format!("no {axis}"),
        at => word(axis, at),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Prints the value of an axis where no header names the axis: words as they are, other values with
/// the name of the axis, sizes and durations with their unit.
pub(crate) fn word(axis: &str, at: &Value) -> String {
    match (at, at.as_u64(), axis.strip_suffix("_ns")) {
        (Value::String(word), ..) => word.clone(),
        (_, Some(bytes), _) if axis.ends_with("_bytes") => unit::size(bytes),
        (_, Some(ns), Some(name)) => format!("{name} {}", format_duration(Duration::from_nanos(ns))),
        _ if axis == EXPERIMENT => text(at),
        _ => format!("{axis} {at}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_without_a_header_say_what_they_are() {
        let word = |axis: &str, at: Value| word(axis, &at);
        assert_eq!(word("service", json!("RC")), "RC");
        assert_eq!(word("size_bytes", json!(4096)), "4 KiB");
        assert_eq!(word("pause_ns", json!(20_000)), "pause 20us");
        assert_eq!(word("burst", json!(16)), "burst 16");
        assert_eq!(word("inline", json!(false)), "inline false");
    }
}
