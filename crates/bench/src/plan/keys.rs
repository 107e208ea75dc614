//! What is read of keys of all tables, and the errors for those that cannot be.

use serde_json::Value;

use super::names::hint_or_all;
use super::text::{Entry, Node};
use crate::Error;

/// The text that a key is set to.
pub(super) fn string(entry: &Entry, table: &str) -> Result<String, Error> {
    match &entry.node {
        Node::Leaf(Value::String(text)) => Ok(text.clone()),
        _ => Err(wrong_type(entry, table, "text")),
    }
}

/// The name that a key is set to: of a run, an experiment or an environment.
pub(super) fn name(entry: &Entry, table: &str) -> Result<String, Error> {
    let name = string(entry, table)?;
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Ok(name);
    }
    let words = format!("the name {name:?} cannot be used: names are made of letters, digits, '-' and '_'");
    Err(Error::Plan { place: entry.place.clone(), words })
}

/// The entry of a key that a table must have.
pub(super) fn require<'a>(
    entries: &'a [Entry],
    key: &str,
    place: &str,
    table: &str,
    example: &str,
) -> Result<&'a Entry, Error> {
    entries.iter().find(|entry| entry.key == key).ok_or_else(|| Error::Missing {
        place: place.to_owned(),
        key: key.to_owned(),
        table: table.to_owned(),
        example: example.to_owned(),
    })
}

/// The tables of a key that is written as `[[key]]`.
pub(super) fn tables<'a>(entry: &'a Entry, table: &str) -> Result<&'a [(String, Vec<Entry>)], Error> {
    match &entry.node {
        Node::Tables(tables) => Ok(tables),
        _ => Err(wrong_type(entry, table, &format!("given as [[{}]]", entry.key))),
    }
}

/// The error for a key that `table` does not have.
pub(super) fn unknown_key(entry: &Entry, table: &str, known: &[&str]) -> Error {
    Error::UnknownKey {
        place: entry.place.clone(),
        key: entry.key.clone(),
        table: table.to_owned(),
        hint: hint_or_all(&entry.key, known),
    }
}

/// The error for a key that is set to the wrong kind of value.
pub(super) fn wrong_type(entry: &Entry, table: &str, expected: &str) -> Error {
    Error::WrongType {
        place: entry.place.clone(),
        key: entry.key.clone(),
        table: table.to_owned(),
        expected: expected.to_owned(),
        found: entry.node.in_words(),
    }
}
