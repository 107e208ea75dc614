//! The flags of a pattern's commands, and the experiment without flags.

use measure::units;
use serde_json::Value;

use super::{Plan, Settings};
use crate::axis::{self, AxisRow, Kind, ROWS};
use crate::command::Subject;
use crate::pattern::experiment::Filled;
use crate::point::{Carrier, Length, Operation, Pattern};

/// The flags of a pattern's command over one endpoint.
pub struct Offer {
    /// Axes that have flags: first the size, then the axes of the pattern.
    pub axes: Vec<Offered>,
    /// How long to measure a point without flags.
    pub length: Length,
}

/// An axis that has flags.
pub struct Offered {
    /// The axis.
    pub row: &'static AxisRow,
    /// Whether it belongs to some patterns only, or is the size, which readers look for first.
    pub is_own: bool,
    /// Whether it applies here. If not, its flags are accepted only so that the error can say why.
    pub is_shown: bool,
    /// The value without flags; empty if the pattern or the system decides.
    pub default: String,
}

impl Offer {
    /// The flags of a pattern and a subject.
    pub fn of(pattern: Pattern, subject: Option<&Subject>) -> Self {
        let settings = start(pattern, subject, subject.and_then(|subject| subject.operation));
        let carrier = carrier(subject);
        let made = pattern.entry().defaults(&settings.axes, carrier).made;
        let plan = Plan::new("flags", "").experiment("flags", pattern, settings);
        let filled = &Filled::each(&plan.experiments[0])[0];
        let has = |rows: &[&AxisRow], row: &AxisRow| rows.iter().any(|known| known.name == row.name);
        let is_offered = |row: &AxisRow| {
            let is_fixed = row.name == axis::OPERATION.row.name
                && subject.is_some_and(|subject| subject.operation.is_some());
            !row.flags.is_empty() && pattern.has_axis(row) && !is_fixed && !has(made, row)
        };
        let offered = |row: &'static AxisRow| Offered {
            row,
            is_own: has(pattern.row().axes, row) || row.name == axis::SIZE_BYTES.row.name,
            is_shown: (row.is_for)(carrier)
                && (pattern.row().floods || !row.is_of_floods)
                && !has(pattern.command().without, row),
            default: default(filled, row),
        };
        let mut axes: Vec<_> = ROWS.iter().copied().filter(|row| is_offered(row)).map(offered).collect();
        axes.sort_by_key(|offered| (!offered.is_own, offered.row.name != axis::SIZE_BYTES.row.name));
        Self { axes, length: filled.length }
    }
}

/// The settings that a command starts with: those of its subject and of its pattern.
pub fn start(pattern: Pattern, subject: Option<&Subject>, operation: Option<Operation>) -> Settings {
    let settings = Settings::default().axis(axis::ENDPOINT.value(carrier(subject)));
    let settings = operation
        .into_iter()
        .fold(settings, |settings, operation| settings.axis(axis::OPERATION.value(operation)));
    let given = |settings: Settings, (key, value): &(&str, &str)| {
        settings.set(key, value).expect("a test checks the settings of every command")
    };
    let own = subject.map_or(&[][..], |subject| subject.given);
    pattern.command().given.iter().chain(own).fold(settings, given)
}

/// The endpoint of a subject; verbs for a command without subjects.
pub fn carrier(subject: Option<&Subject>) -> Carrier {
    subject.map_or(Carrier::Verbs, |subject| subject.endpoint)
}

/// The values of an axis without flags, as a flag would set them.
fn default(filled: &Filled, row: &AxisRow) -> String {
    let given = filled.pattern.command().given.iter().find(|(key, _)| *key == row.name);
    if let Some((_, value)) = given {
        return (*value).to_owned();
    }
    if let Some(depth) = [axis::TX_DEPTH, axis::RX_DEPTH].into_iter().find(|depth| depth.row.name == row.name)
    {
        return filled.least_depth(depth).to_string();
    }
    let word = |value: &Value| match (row.kind, value) {
        (Kind::Bytes | Kind::Size, Value::Number(bytes)) => {
            units::format_size(bytes.as_u64().unwrap_or_default())
        }
        (_, Value::String(text)) => text.clone(),
        (_, value) => value.to_string(),
    };
    match filled.axes.find(row.name).map(|axis| axis.values()) {
        Some(values) if values.len() <= SHOWN_MAX => values.iter().map(word).collect::<Vec<_>>().join(","),
        Some(_) => "all".to_owned(),
        None => row.none.unwrap_or_default().to_owned(),
    }
}

/// The most values that help shows.
const SHOWN_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_give_is_read_as_a_plan_is() {
        for pattern in Pattern::offered() {
            let command = pattern.command();
            for (key, value) in command.given {
                assert!(Settings::default().set(key, value).is_ok(), "{}: {key}={value}", command.name);
            }
            for setting in command.settings {
                assert!(Settings::KEYS.contains(&setting.key), "{}: {}", command.name, setting.key);
            }
            assert_eq!(Pattern::offered().filter(|other| other.command().name == command.name).count(), 1);
        }
    }

    #[test]
    fn every_axis_with_a_flag_is_offered_by_some_command() {
        let offers = |pattern: Pattern| {
            let subjects: Vec<_> = pattern.command().subjects().map(Some).collect();
            let subjects = if subjects.is_empty() { vec![None] } else { subjects };
            subjects.into_iter().map(move |subject| Offer::of(pattern, subject))
        };
        let offered: Vec<_> = Pattern::offered().flat_map(offers).flat_map(|offer| offer.axes).collect();
        let offered: Vec<_> = offered.into_iter().filter(|offered| offered.is_shown).collect();
        for row in ROWS.iter().filter(|row| !row.flags.is_empty()) {
            assert!(offered.iter().any(|offered| offered.row.name == row.name), "{}", row.name);
        }
    }
}
