//! The values of axes: one function reads them from plans and flags, and keeps them as records show
//! them.

use measure::units;
use serde_json::Value;
use verbs::{GENERATIONS, LinkModel, LinkRate};

use super::kind::{Fault, Kind};
use super::row::AxisRow;
use crate::point::{Grid, Injection};

impl AxisRow {
    /// What a value must be, for errors and help.
    pub fn expected(&self) -> String {
        let expected = match (self.kind, self.none) {
            (Kind::Choice(_) | Kind::Delay | Kind::Grid | Kind::Link | Kind::SignalRate | Kind::Text, _) => {
                "text"
            }
            (Kind::BitRate, _) => "a rate such as \"16Gb/s\" or \"4X DDR\"",
            (Kind::Bytes, None) => "a size such as 128 or \"64KiB\"",
            (Kind::Bytes, Some(none)) => return format!("a size such as 128 or \"64KiB\", or {none:?}"),
            (Kind::Count, _) => "a whole number or a range such as \"1..16\"",
            (Kind::Flag, _) => "true or false",
            (Kind::Micros, _) => {
                let none = self.none.map(|none| format!(", or {none:?}")).unwrap_or_default();
                return format!("a whole number of microseconds or a duration such as \"50us\"{none}");
            }
            (Kind::Pause, _) => "a whole number of nanoseconds or a duration such as \"5.5us\"",
            (Kind::Rate, _) => "a whole number of messages per second, or a text such as \"10k\"",
            (Kind::Size, _) => "a size such as 64, \"64KiB\" or \"4..8MiB\"",
            (Kind::Whole, None) => "a whole number",
            (Kind::Whole, Some(none)) => return format!("a whole number or {none:?}"),
        };
        expected.to_owned()
    }

    /// Reads the values that a plan sets, and returns them as a record shows them.
    ///
    /// # Errors
    ///
    /// If one of them is not a value of this axis.
    pub fn read(&self, items: &[Value]) -> Result<Vec<Value>, Fault> {
        Ok(items.iter().map(|item| self.one(item)).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Reads the values that a flag sets, such as `64,4KiB`. A number alone has the unit that texts
    /// have: a duration is in seconds, also where a number of a plan is in nanoseconds.
    ///
    /// # Errors
    ///
    /// As [`AxisRow::read`].
    pub fn read_text(&self, text: &str) -> Result<Vec<Value>, Fault> {
        // A delay or a link model contains commas.
        let is_whole = matches!(self.kind, Kind::Delay | Kind::Link);
        let texts = if is_whole { vec![text] } else { text.split(',').collect() };
        let item = |text: &str| match text.parse::<bool>() {
            Ok(flag) if self.kind == Kind::Flag => flag.into(),
            _ => Value::from(text),
        };
        self.read(&texts.into_iter().map(|text| item(text.trim())).collect::<Vec<Value>>())
    }

    /// Reads one item of a plan, which may stand for several values, as `4..64` does.
    fn one(&self, item: &Value) -> Result<Vec<Value>, Fault> {
        if self.none.is_some_and(|none| item == none) {
            return Ok(vec![item.clone()]);
        }
        let wrong = || Fault::WrongType(item.clone());
        let text = || item.as_str().ok_or_else(wrong);
        let numbers = |read: fn(&str) -> Result<Vec<u64>, measure::Error>| match item {
            Value::String(text) => read(text).map_err(|error| Fault::Unreadable(error.to_string())),
            _ => item.as_u64().map(|number| vec![number]).ok_or_else(wrong),
        };
        let below_2_32 = |numbers: Vec<u64>, why: &str| {
            let is_short = numbers.iter().all(|number| u32::try_from(*number).is_ok());
            is_short.then_some(numbers).ok_or_else(|| Fault::Unreadable(format!("{item} {why}")))
        };
        let numbers = match self.kind {
            Kind::Choice(variants) => {
                let words = variants.iter().map(|variant| variant.word);
                return self.word(text()?, words).map(|value| vec![value]);
            }
            Kind::SignalRate => {
                let words = GENERATIONS.iter().map(|of| of.name);
                return self.word(text()?, words).map(|value| vec![value]);
            }
            Kind::Flag => return Ok(vec![item.as_bool().ok_or_else(wrong)?.into()]),
            Kind::Text => return Ok(vec![text()?.into()]),
            Kind::Delay => {
                let delay = text()?.parse::<Injection>().map_err(Fault::Unreadable)?;
                return Ok(vec![delay.to_string().into()]);
            }
            Kind::Grid => {
                let grid = text()?.parse::<Grid>().map_err(Fault::Unreadable)?;
                return Ok(vec![grid.to_string().into()]);
            }
            Kind::Link => {
                let link = text()?.parse::<LinkModel>();
                let link = link.map_err(|error| Fault::Unreadable(error.to_string()))?;
                return Ok(vec![link.to_string().into()]);
            }
            Kind::BitRate => {
                let rate = text()?.parse::<LinkRate>().map_err(Fault::Unreadable)?;
                return Ok(vec![rate.to_string().into()]);
            }
            Kind::Bytes => {
                let read = |text: &str| Ok(vec![units::parse_size(text)?]);
                below_2_32(numbers(read)?, "is not below 4GiB")?
            }
            Kind::Whole => vec![whole(item).ok_or_else(wrong)?],
            Kind::Count => match item.as_str() {
                Some(text) => {
                    let counts = units::parse_counts(text).ok_or_else(wrong)?;
                    counts.into_iter().map(u64::from).collect()
                }
                None => vec![whole(item).ok_or_else(wrong)?],
            },
            Kind::Micros => {
                let read = |text: &str| Ok(vec![nanoseconds(text)?.div_ceil(1000)]);
                below_2_32(numbers(read)?, "is too long")?
            }
            Kind::Pause => numbers(|text| Ok(vec![nanoseconds(text)?]))?,
            Kind::Rate => numbers(|text| Ok(vec![units::parse_rate(text)?]))?,
            Kind::Size => numbers(units::parse_sizes)?,
        };
        Ok(numbers.into_iter().map(Value::from).collect())
    }

    /// Reads a word: one of `words`, or the word for no value.
    fn word(&self, text: &str, words: impl Iterator<Item = &'static str>) -> Result<Value, Fault> {
        let known: Vec<_> = self.none.into_iter().chain(words).collect();
        if known.contains(&text) {
            return Ok(text.into());
        }
        Err(Fault::Unknown { value: text.to_owned(), known })
    }
}

/// Reads a duration as nanoseconds.
fn nanoseconds(text: &str) -> Result<u64, measure::Error> {
    Ok(u64::try_from(units::parse_duration(text)?.as_nanos()).unwrap_or(u64::MAX))
}

/// Reads a whole number below 2^32, or a text such as `10k`.
fn whole(item: &Value) -> Option<u64> {
    let number = match item {
        Value::String(text) => units::parse_count(text).ok(),
        _ => item.as_u64(),
    };
    number.filter(|number| *number <= u64::from(u32::MAX))
}
