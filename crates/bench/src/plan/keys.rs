//! A key of a plan: how its value is read, and the errors of wrong keys and values.

use measure::units;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::names::{hint_or_all, is_name};
use super::text::{Entry, Node};
use crate::Error;

/// A key and the name of its table, as errors show them.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) entry: &'a Entry,
    pub(super) table: &'a str,
}

impl<'a> Key<'a> {
    pub(super) fn flag(self) -> Result<bool, Error> {
        self.read("true or false")
    }

    pub(super) fn text(self) -> Result<String, Error> {
        self.read("text")
    }

    pub(super) fn texts(self) -> Result<Vec<String>, Error> {
        self.read("a list of texts")
    }

    pub(super) fn count(self) -> Result<u64, Error> {
        let expected = "a count such as 1000 or \"10k\"";
        match self.entry.node {
            Node::Leaf(Value::String(_)) => self.parsed(expected, units::parse_count),
            _ => self.read(expected),
        }
    }

    pub(super) fn count_u32(self) -> Result<u32, Error> {
        u32::try_from(self.count()?).map_err(|_| self.wrong_type("a count below 2^32"))
    }

    pub(super) fn times_ns(self) -> Result<Vec<u64>, Error> {
        let expected = "a list of whole numbers of nanoseconds, or of durations such as \"10us\"";
        let times: Option<Vec<u64>> = match &self.entry.node {
            Node::Leaf(Value::Array(items)) => items.iter().map(units::time_ns).collect(),
            Node::Leaf(item) => units::time_ns(item).map(|time| vec![time]),
            _ => None,
        };
        times.ok_or_else(|| self.wrong_type(expected))
    }

    pub(super) fn size(self) -> Result<u64, Error> {
        let expected = "a size such as 65536 or \"64MiB\"";
        match self.entry.node {
            Node::Leaf(Value::Number(_)) => self.read(expected),
            _ => self.parsed(expected, units::parse_size),
        }
    }

    pub(super) fn duration_s(self) -> Result<f64, Error> {
        let expected = "a duration such as \"5s\", or seconds";
        match self.entry.node {
            Node::Leaf(Value::Number(_)) => self.read(expected),
            _ => Ok(self.parsed(expected, units::parse_duration)?.as_secs_f64()),
        }
    }

    pub(super) fn share(self) -> Result<f64, Error> {
        self.parsed("a share such as \"2.5 %\"", units::parse_percent)
    }

    /// The name of a run, an experiment or an environment.
    pub(super) fn name(self) -> Result<String, Error> {
        let name = self.text()?;
        if is_name(&name) {
            return Ok(name);
        }
        let words = "cannot be used: names are made of letters, digits, '-' and '_'";
        Err(self.entry.wrong(format!("the name {name:?} {words}")))
    }

    /// The tables of a key that is written as `[[key]]`, with the places of their headings.
    pub(super) fn tables(self) -> Result<&'a [(String, Vec<Entry>)], Error> {
        match &self.entry.node {
            Node::Tables(tables) => Ok(tables),
            _ => Err(self.wrong_type(&format!("given as [[{}]]", self.entry.key))),
        }
    }

    /// The value as a type reads it.
    fn read<T: DeserializeOwned>(self, expected: &str) -> Result<T, Error> {
        let Node::Leaf(value) = &self.entry.node else { return Err(self.wrong_type(expected)) };
        T::deserialize(value).map_err(|_| self.wrong_type(expected))
    }

    /// The value of a text with a unit.
    fn parsed<T>(self, expected: &str, read: fn(&str) -> Result<T, measure::Error>) -> Result<T, Error> {
        let Node::Leaf(Value::String(text)) = &self.entry.node else { return Err(self.wrong_type(expected)) };
        read(text).map_err(|error| self.unreadable(error))
    }

    /// The error for a key that the table does not have.
    pub(super) fn unknown(self, known: &[&str]) -> Error {
        self.unknown_but(&hint_or_all(&self.entry.key, known))
    }

    /// The error for a key that the table does not have, with a hint.
    pub(super) fn unknown_but(self, hint: &str) -> Error {
        self.entry.wrong(format!("unknown key {:?} in {}{hint}", self.entry.key, self.table))
    }

    /// The error for a value of another kind.
    pub(super) fn wrong_type(self, expected: &str) -> Error {
        self.wrong_item(expected, &self.entry.node.in_words())
    }

    /// The error for a value with a part of another kind.
    pub(super) fn wrong_item(self, expected: &str, found: &str) -> Error {
        self.entry.wrong(format!("{} in {} must be {expected}, not {found}", self.entry.key, self.table))
    }

    /// The error for an unknown word.
    pub(super) fn unknown_value(self, value: &str, known: &[&str]) -> Error {
        let hint = hint_or_all(value, known);
        self.entry.wrong(format!("unknown {} {value:?} in {}{hint}", self.entry.key, self.table))
    }

    /// The error for a value of the right kind that cannot be read.
    pub(super) fn unreadable(self, reason: impl std::fmt::Display) -> Error {
        self.entry.wrong(format!("{} in {}: {reason}", self.entry.key, self.table))
    }
}

/// The entry of a key that a table must have.
pub(super) fn require<'a>(
    entries: &'a [Entry],
    key: &str,
    place: &str,
    table: &str,
    example: &str,
) -> Result<&'a Entry, Error> {
    entries.iter().find(|entry| entry.key == key).ok_or_else(|| Error::Plan {
        place: place.to_owned(),
        words: format!("{table} has no {key:?}: add {example}"),
    })
}
