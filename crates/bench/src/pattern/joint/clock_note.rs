//! The line below a table that says how well the clocks of ranks were compared.

use measure::record::Point;
use serde_json::Value;

/// Returns the line about the error of times between ranks, for a point whose pattern has recorded
/// it; `None` where the ranks share one clock.
pub(crate) fn clock_note(point: &Point, pattern: &str) -> Option<String> {
    let own = point.own.get(pattern)?;
    let bound_ns = own.get("clock_bound_ns").and_then(Value::as_f64)?;
    let mut note = format!(
        "\n last-last, first-last and skew have an error of up to {:.3} us, because the ranks have different clocks",
        bound_ns / 1e3
    );
    let reversed = own.get("reversed").and_then(Value::as_u64).unwrap_or(0);
    if reversed > 0 {
        note += &format!(
            "\n   in {reversed} calls the last rank seems to end before the last rank starts: they count as 0 in last-last"
        );
    }
    Some(note + "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_clocks_leave_open_is_said() {
        let said = |own: Value| {
            let point = json!({
                "id": 0, "experiment": "e", "pattern": "collective", "status": "measured", "repetition": 0,
                "wall_ns": 0, "axes": {}, "own": { "collective": own },
            });
            clock_note(&serde_json::from_value(point).unwrap(), "collective")
        };
        assert_eq!(said(json!({ "t_min_ns": 1.0 })), None);
        let one = said(json!({ "clock_bound_ns": 1234.0, "reversed": 0 })).unwrap();
        assert!(one.contains("skew have an error of up to 1.234 us") && !one.contains("calls"), "{one}");
        let two = said(json!({ "clock_bound_ns": 1234.0, "reversed": 3 })).unwrap();
        assert!(two.contains("in 3 calls the last rank seems to end before"), "{two}");
    }
}
