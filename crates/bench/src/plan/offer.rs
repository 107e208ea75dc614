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
        let operation = subject.and_then(|subject| subject.operation);
        let settings = start(pattern, subject, operation);
        let carrier = carrier(subject);
        let idle = idle(carrier, &settings);
        let made = pattern.entry().defaults(&settings.axes, carrier).made;
        let plan = Plan::new("flags", "").experiment("flags", pattern, settings);
        let filled = &Filled::each(&plan.experiments[0])[0];
        let without = (pattern.command().without)(carrier, operation);
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
                && !has(without, row)
                && !has(&idle, row),
            default: default(filled, row),
        };
        let mut axes: Vec<_> = ROWS.iter().copied().filter(|row| is_offered(row)).map(offered).collect();
        axes.sort_by_key(|offered| (!offered.is_own, offered.row.name != axis::SIZE_BYTES.row.name));
        Self { axes, length: filled.length }
    }
}

/// Axes that have a single value in a command, whatever its pattern.
fn idle(carrier: Carrier, settings: &Settings) -> Vec<&'static AxisRow> {
    let operation = settings.axes.get(axis::OPERATION).pop();
    let is_fetch = operation.is_some_and(Operation::is_fetch);
    let is_mpi = carrier.is_mpi();
    let is_one_sided =
        settings.axes.get(axis::MPI_OPERATION).iter().any(|operation| operation.is_one_sided());
    let collectives = settings.axes.get(axis::COLLECTIVE);
    let is_uneven = collectives.iter().any(|of| of.has_blocks_of_their_own());
    let rules = [
        (is_fetch, axis::INLINE.row),
        (is_fetch || operation == Some(Operation::Multicast), axis::SERVICE.row),
        (operation.is_some_and(Operation::is_atomic), axis::SIZE_BYTES.row),
        (is_mpi, axis::POLL.row),
        (is_mpi && is_one_sided, axis::MPI_CALL.row),
        (is_mpi && !is_one_sided, axis::MPI_SYNC.row),
        (is_uneven, axis::COLLECTIVE_CALL.row),
        (!is_uneven && !collectives.is_empty(), axis::BLOCKS.row),
    ];
    rules.into_iter().filter(|(is_idle, _)| *is_idle).map(|(_, row)| row).collect()
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
        Some(values) => match row.kind {
            Kind::Choice(variants) => all_but(variants.iter().map(|variant| variant.word), values),
            _ => "all".to_owned(),
        },
        None => row.none.unwrap_or_default().to_owned(),
    }
}

/// Names the words that are missing in a list of most words.
fn all_but<'a>(words: impl Iterator<Item = &'a str>, values: &[Value]) -> String {
    let missing: Vec<&str> = words.filter(|word| values.iter().all(|value| value != word)).collect();
    if missing.is_empty() { "all".to_owned() } else { format!("all but {}", missing.join(",")) }
}

/// The most values that help shows.
const SHOWN_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, resolve};
    use crate::point::Traffic;

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

    /// The offers of a pattern, with its subjects.
    fn offers(pattern: Pattern) -> impl Iterator<Item = (Option<&'static Subject>, Offer)> {
        let subjects: Vec<_> = pattern.command().subjects().map(Some).collect();
        let subjects = if subjects.is_empty() { vec![None] } else { subjects };
        subjects.into_iter().map(move |subject| (subject, Offer::of(pattern, subject)))
    }

    /// Values that a flag may have, for all kinds of axes.
    fn candidates(row: &AxisRow) -> Vec<Value> {
        let of_all = [
            "0",
            "1",
            "2",
            "3",
            "4",
            "7",
            "8",
            "16",
            "64",
            "512",
            "1024",
            "4096",
            "true",
            "false",
            "4X FDR",
            "5us",
            "2x2",
            "1x2",
            "10Gb/s",
            "rank=1,before=5us",
            "half",
            "all",
            "lo",
            "0,1",
            "2.5%",
        ];
        let words: Vec<&str> = match row.kind {
            Kind::Choice(variants) => variants.iter().map(|variant| variant.word).collect(),
            _ => of_all.to_vec(),
        };
        words.into_iter().chain(row.none).filter_map(|text| row.read_text(text).ok()).flatten().collect()
    }

    /// Flags that need another one: a named environment, MPI over verbs, a burst, several ways.
    const NEEDY: [&AxisRow; 4] =
        [axis::ENVIRONMENT.row, axis::LINK.row, axis::SIGNAL_INTERVAL.row, axis::WAYS.row];

    #[test]
    fn every_flag_that_help_lists_has_a_value_beside_its_default() {
        let mut idle = Vec::new();
        for pattern in Pattern::offered() {
            for (subject, offer) in offers(pattern) {
                let start = start(pattern, subject, subject.and_then(|subject| subject.operation));
                let is_possible = |settings: Settings| {
                    let plan = Plan::new("flags", "").experiment("flags", pattern, settings);
                    resolve(&plan, &Options::default()).is_ok()
                };
                let command =
                    format!("{} {}", pattern.command().name, subject.map_or("", |subject| subject.name));
                let is_needy = |row: &AxisRow| NEEDY.iter().any(|needy| needy.name == row.name);
                for offered in offer.axes.iter().filter(|of| of.is_shown && !is_needy(of.row)) {
                    let mut values = candidates(offered.row).into_iter();
                    let has_effect = values.any(|value| {
                        let text = measure::text::value(&value);
                        text != offered.default
                            && is_possible(start.clone().axis(axis::Axis::read(offered.row, vec![value])))
                    });
                    if !has_effect {
                        idle.push(format!("{command}: {}", offered.row.name));
                    }
                }
                let lasts = Settings { duration_s: Some(0.1), iterations: None, ..start.clone() };
                // Pairs last for a time only if they stream.
                let streams = lasts.clone().axis(axis::TRAFFIC.value(Traffic::Stream));
                let is_lasting =
                    is_possible(lasts) || (pattern.has_axis(axis::TRAFFIC.row) && is_possible(streams));
                let has_streams =
                    offer.axes.iter().any(|of| of.row.name == axis::TRAFFIC.row.name && of.is_shown);
                let is_right = is_lasting == pattern.command().takes_duration
                    || (pattern == Pattern::PAIRS && !has_streams);
                if !is_right {
                    idle.push(format!("{command}: --duration"));
                }
            }
        }
        assert!(idle.is_empty(), "help lists flags without an effect:\n{}", idle.join("\n"));
    }

    #[test]
    fn every_axis_with_a_flag_is_offered_by_some_command() {
        let offered: Vec<_> = Pattern::offered().flat_map(offers).flat_map(|(_, offer)| offer.axes).collect();
        let offered: Vec<_> = offered.into_iter().filter(|offered| offered.is_shown).collect();
        for row in ROWS.iter().filter(|row| !row.flags.is_empty()) {
            assert!(offered.iter().any(|offered| offered.row.name == row.name), "{}", row.name);
        }
    }
}
