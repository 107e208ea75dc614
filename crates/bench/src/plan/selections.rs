//! The values by which figures, findings and expectations pick points. They are read as the values
//! of axes are: a size may be `"64KiB"`, and several sizes `"4..64KiB"`.

use measure::figure::Figure;
use measure::finding::Finding;
use measure::selection::Selection;
use serde_json::Value;

use crate::axis::{self, AxisRow, Fault};

/// Reads the values of a figure.
///
/// # Errors
///
/// The value that its axis does not have.
pub(super) fn of_figure(figure: &mut Figure) -> Result<(), String> {
    let rows = figure.rows.iter_mut().map(|row| &mut row.only);
    [&mut figure.only, &mut figure.relative_to].into_iter().chain(rows).try_for_each(read)
}

/// Reads the values of a finding, as [`of_figure`].
pub(super) fn of_finding(finding: &mut Finding) -> Result<(), String> {
    let all = [&mut finding.only, &mut finding.of, &mut finding.against];
    all.into_iter().chain(&mut finding.order).try_for_each(read)
}

/// Reads the values of axes. Checks refuse the other names.
///
/// # Errors
///
/// The value that its axis does not have.
pub(super) fn read(selection: &mut Selection) -> Result<(), String> {
    for (name, value) in selection {
        let Some(row) = axis::find(name) else { continue };
        let items = match &value {
            Value::Array(items) => items.clone(),
            one => vec![(*one).clone()],
        };
        let mut read = row.read(&items).map_err(|fault| in_words(row, fault))?;
        *value = if read.len() == 1 { read.remove(0) } else { Value::from(read) };
    }
    Ok(())
}

fn in_words(row: &AxisRow, fault: Fault) -> String {
    let name = row.name;
    match fault {
        Fault::Unreadable(reason) => format!("{name}: {reason}"),
        Fault::Unknown { value, known } => format!("{name} is {value:?}: give one of {}", known.join(", ")),
        Fault::WrongType(item) => format!("{name} is {item}: give {}", row.expected()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(only: Value) -> Result<Value, String> {
        let finding = json!({
            "kind": "value", "claim": "C", "experiments": ["e"], "where": only, "holds": "> 1",
        });
        let mut finding: Finding = serde_json::from_value(finding).unwrap();
        of_finding(&mut finding).map(|()| json!(finding.only))
    }

    #[test]
    fn values_are_read_as_those_of_their_axes() {
        let read = of(json!({ "size_bytes": "64KiB", "service": ["RC", "UC"], "experiment": "e" }));
        assert_eq!(read, Ok(json!({ "size_bytes": 65536, "service": ["RC", "UC"], "experiment": "e" })));
        assert_eq!(of(json!({ "size_bytes": "4..16" })), Ok(json!({ "size_bytes": [4, 8, 16] })));
        assert_eq!(of(json!({ "size_bytes": ["4"] })), Ok(json!({ "size_bytes": 4 })));
    }

    #[test]
    fn what_is_no_value_of_its_axis_is_refused() {
        let refusal = |only: Value| of(only).unwrap_err();
        assert_eq!(
            refusal(json!({ "size_bytes": true })),
            "size_bytes is true: give a size such as 64, \"64KiB\" or \"4..8MiB\""
        );
        let unknown = refusal(json!({ "service": "RCC" }));
        assert!(unknown.starts_with("service is \"RCC\": give one of RC, UC"), "{unknown}");
        let unreadable = refusal(json!({ "size_bytes": ["4", "12 parsecs"] }));
        assert!(unreadable.starts_with("size_bytes: "), "{unreadable}");
    }
}
