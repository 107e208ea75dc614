//! Flags of axes. The row of an axis (`bench::axis`) has their names, letters, values and help. A
//! flag accepts the values that a plan accepts, separated by commas.

use bench::axis::{self, Axis, AxisList, AxisRow, Fault, Flag, Key, Kind, Sets};
use bench::plan::Settings;
use bench::point::{Choice, Variant};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use measure::units;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Usage;

/// Returns the flags of an axis, with its default in the help.
pub(crate) fn flags(row: &'static AxisRow, default: &str) -> Vec<Arg> {
    let flag = |flag: &Flag| {
        let others = row.flags.iter().map(|other| other.long).filter(|long| *long != flag.long);
        let arg = Arg::new(flag.long).long(flag.long).short(flag.letter).aliases(flag.aliases);
        let arg = arg.conflicts_with_all(others);
        match flag.sets {
            Sets::Word(_, help) => arg.help(help).action(ArgAction::SetTrue),
            Sets::UpTo(name, help) => arg.help(help).value_name(name).value_parser(units::parse_size),
            Sets::Value(name) => with_values(arg.value_name(name).help(help(row, default)), row),
        }
    };
    row.flags.iter().map(flag).collect()
}

/// Returns the help of an axis, with values as the command line spells them.
fn help(row: &AxisRow, default: &str) -> String {
    let text = row.help().replace("`\"", "`").replace("\"`", "`");
    let examples = row.kind.examples();
    let text = if examples.is_empty() { text } else { format!("{text} (such as {examples})") };
    if default.is_empty() { text } else { format!("{text} [default: {default}]") }
}

/// Lets a flag accept the values that a plan accepts. clap parses words, so that help and
/// completions list them. [`given`] parses all other values, so that their errors are sentences.
fn with_values(arg: Arg, row: &'static AxisRow) -> Arg {
    match row.kind {
        Kind::Choice(variants) => {
            let arg = arg.ignore_case(true).value_delimiter(',').num_args(1);
            arg.value_parser(word(row.none, variants))
        }
        Kind::Flag => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => arg,
    }
}

/// Returns a parser for the words of a type, for flags that set no axis.
pub(crate) fn words<T: Choice + Clone + DeserializeOwned + Send + Sync>() -> impl TypedValueParser<Value = T>
{
    let word = word(None, T::VARIANTS);
    word.map(|word| serde_json::from_value(word.into()).expect("a type reads its own words"))
}

/// Returns a parser for the words of a choice, or the word for none, in upper or lower case. The
/// result is spelled as in plans.
fn word(none: Option<&'static str>, variants: &[Variant]) -> impl TypedValueParser<Value = String> + use<> {
    let none = none.map(PossibleValue::new);
    let known: Vec<_> = none.into_iter().chain(variants.iter().map(possible)).collect();
    PossibleValuesParser::new(known.clone()).map(move |text| {
        let meant = known.iter().find(|value| value.matches(&text, true));
        meant.expect("clap accepts only possible values").get_name().to_owned()
    })
}

/// Returns a word of a choice with its help: the first sentence of its documentation. Dashes may
/// stand for underscores.
fn possible(variant: &Variant) -> PossibleValue {
    let sentence = variant.help().split(". ").next().unwrap_or_default();
    let value = PossibleValue::new(variant.word).help(sentence);
    if !variant.word.contains('_') {
        return value;
    }
    // clap keeps aliases for the life of the program, and there are only some.
    value.alias(&*variant.word.replace('_', "-").leak())
}

/// Parses the values of a flag.
fn read(row: &AxisRow, flag: &Flag, text: &str) -> Result<Vec<Value>, Usage> {
    let is_count = row.kind == Kind::Count;
    let is_bounded = |value: &Value| !is_count || row.is_within_bounds(value);
    let why = match row.read_text(text) {
        Ok(values) if values.iter().all(is_bounded) => return Ok(values),
        Err(Fault::Unreadable(reason)) => reason,
        _ if is_count => {
            let (least, most) = row.bounds().into_inner();
            format!("give numbers from {least} to {most}, such as {}", row.kind.examples())
        }
        Err(Fault::Unknown { known, .. }) => format!("give one of {}", known.join(", ")),
        _ => format!("give {}", row.expected().replace('"', "")),
    };
    Err(Usage(format!("--{} {text}: {why}", flag.long)))
}

/// Returns the axes that the flags set, in the order of the flags.
pub(crate) fn given(matches: &ArgMatches, rows: &[&'static AxisRow]) -> Result<Vec<Axis>, Usage> {
    let mut found = Vec::new();
    for row in rows {
        for flag in row.flags.iter().filter(|flag| is_given(matches, flag.long)) {
            let text = match flag.sets {
                Sets::UpTo(..) => continue,
                Sets::Value(_) => {
                    let words = matches.get_many::<String>(flag.long).into_iter().flatten();
                    words.map(String::as_str).collect::<Vec<_>>().join(",")
                }
                Sets::Word(text, _) => text.to_owned(),
            };
            let axis = Axis::read(row, read(row, flag, &text)?);
            found.push((matches.index_of(flag.long), axis));
        }
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, axis)| axis).collect())
}

/// Returns the axis that a flag sets to true for small messages only, and their largest size.
pub(crate) fn up_to(matches: &ArgMatches, rows: &[&'static AxisRow]) -> Option<(&'static AxisRow, u64)> {
    rows.iter().copied().find_map(|row| {
        let is_limit = |flag: &&Flag| matches!(flag.sets, Sets::UpTo(..)) && is_given(matches, flag.long);
        let flag = row.flags.iter().find(is_limit)?;
        Some((row, *matches.get_one::<u64>(flag.long)?))
    })
}

/// Returns what the plan of the flags is refused with in the words of the command line: flags stand
/// for axes, and `command` for the experiment.
pub(crate) fn in_flags(refused: &str, rows: &[&'static AxisRow], command: &str) -> String {
    // An experiment has the command's name, perhaps with an axis in it.
    let mut parts = refused.split("experiment \"");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += command;
        text += part.split_once('"').map_or("", |(_, rest)| rest);
    }
    for row in rows {
        let flag = match row.flags {
            [flag] => Some(flag),
            flags => flags.iter().find(|flag| matches!(flag.sets, Sets::Value(_))),
        };
        let Some(Flag { long, .. }) = flag else { continue };
        text = text.replace(&format!("asks for {} over", row.name), &format!("asks for --{long} over"));
        // Other names of axes are usual words, too.
        if row.name.contains('_') {
            text = with_word(&text, row.name, &format!("--{long}"));
        }
    }
    IN_WORDS.iter().fold(text, |text, (of_plan, of_line)| text.replace(of_plan, of_line))
}

/// What refusals say in a plan, and on the command line.
const IN_WORDS: [(&str, &str); 7] = [
    ("the axis --", "--"),
    ("this axis", "the option"),
    ("iterations of rdmascope", "--iters of rdmascope"),
    ("a separate experiment", "a separate command"),
    ("end the sizes at ", "end --size at "),
    ("use send_imm or write_imm", "add --imm"),
    ("use write_imm", "add --imm"),
];

/// Replaces a whole word.
fn with_word(text: &str, word: &str, other: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let pieces = text.split_inclusive(|c| !is_of_word(c)).map(|piece| {
        let own = piece.trim_end_matches(|c| !is_of_word(c));
        if own == word { format!("{other}{}", &piece[own.len()..]) } else { piece.to_owned() }
    });
    pieces.collect()
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Adds an axis to the settings of a plan. A single queue depth becomes a setting of the
/// experiment.
pub(crate) fn settle(mut settings: Settings, axis: Axis) -> Settings {
    let depth = match axis.values() {
        [value] => value.as_u64().and_then(|depth| u32::try_from(depth).ok()),
        _ => None,
    };
    let is = |row: &AxisRow| axis.row.name == row.name;
    match depth {
        Some(depth) if is(axis::TX_DEPTH.row) => settings.tx_depth = Some(depth),
        Some(depth) if is(axis::RX_DEPTH.row) => settings.rx_depth = Some(depth),
        _ => settings.axes.put(axis),
    }
    settings
}

/// The conditions of all points of a command: one value of each axis.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances(AxisList);

impl Circumstances {
    const ROWS: [&'static AxisRow; 7] = [
        axis::MTU_BYTES.row,
        axis::TX_DEPTH.row,
        axis::RX_DEPTH.row,
        axis::LINK.row,
        axis::MEMORY.row,
        axis::ENVIRONMENT.row,
        axis::SETUP.row,
    ];

    /// Returns the value of an axis, if its flag is given.
    pub(crate) fn get<T: DeserializeOwned + Serialize>(&self, key: Key<T>) -> Option<T> {
        self.0.get(key).pop()
    }

    /// Adds these conditions to the settings of a plan.
    pub(crate) fn settle(&self, settings: Settings) -> Settings {
        self.0.iter().cloned().fold(settings, settle)
    }

    /// Returns these conditions as flags, each with a space before it.
    pub(crate) fn words(&self) -> String {
        let word = |axis: &Axis| {
            let value = axis.values().first().map(measure::text::value).unwrap_or_default();
            let flag = axis.row.flags.first()?;
            let name = flag.letter.map_or(format!("--{}", flag.long), |letter| format!("-{letter}"));
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let quote = if value.chars().all(is_plain) { "" } else { "'" };
            Some(match flag.sets {
                Sets::Word(..) => format!(" {name}"),
                _ => format!(" {name} {quote}{value}{quote}"),
            })
        };
        self.0.iter().filter_map(word).collect()
    }
}

impl Args for Circumstances {
    fn augment_args(command: Command) -> Command {
        Self::ROWS.into_iter().fold(command, |command, row| command.args(flags(row, "")))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Circumstances {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut axes = AxisList::default();
        let wrong = |text: String| clap::Error::raw(ErrorKind::ValueValidation, format!("{text}\n"));
        for axis in given(matches, &Self::ROWS).map_err(|Usage(text)| wrong(text))? {
            if axis.values().len() > 1 {
                let name = axis.row.name;
                return Err(wrong(format!("give one value of {name}: all configurations share it")));
            }
            axes.put(axis);
        }
        Ok(Self(axes))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
