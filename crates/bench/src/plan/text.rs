//! TOML text as a tree that keeps the order and the line of every key.
//!
//! The points follow the order of the axes, and errors name a line. A plain deserializer keeps
//! neither.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::Error;

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The place of the key, e.g. `plans/x.toml:12`.
    pub(super) place: String,
    pub(super) node: Node,
}

/// The value of a key.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A scalar or a list without tables.
    Leaf(Value),
    /// `[key]` or `{ ... }`.
    Table(Vec<Entry>),
    /// The tables of `[[key]]`, each with the place of its heading.
    Tables(Vec<(String, Vec<Entry>)>),
}

impl Entry {
    /// The error for the value of the key.
    pub(super) fn wrong(&self, words: String) -> Error {
        Error::Plan { place: self.place.clone(), words }
    }
}

impl Node {
    /// The node as plain JSON, without its places.
    pub(super) fn to_json(&self) -> Value {
        let table = |entries: &[Entry]| {
            Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect())
        };
        match self {
            Self::Leaf(value) => value.clone(),
            Self::Table(entries) => table(entries),
            Self::Tables(tables) => Value::Array(tables.iter().map(|(_, entries)| table(entries)).collect()),
        }
    }

    /// The node in words, for an error that expected something else.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Leaf(Value::Array(_)) => "a list".to_owned(),
            Self::Leaf(Value::String(text)) => format!("the text {text:?}"),
            Self::Leaf(value) => value.to_string(),
            Self::Table(_) => "a table".to_owned(),
            Self::Tables(_) => "a list of tables".to_owned(),
        }
    }
}

/// Parses a whole TOML document. Places start with the name `origin`.
pub(super) fn parse(text: &str, origin: &str) -> Result<Vec<Entry>, Error> {
    let source = Source { text, origin: Origin::File(origin) };
    match DeTable::parse(text) {
        Ok(table) => Ok(source.entries(table.into_inner())),
        Err(err) => Err(Error::Plan {
            place: err.span().map_or_else(|| origin.to_owned(), |span| source.place(span.start)),
            words: format!("this is not TOML: {}", err.message().replace('\n', ", ")),
        }),
    }
}

/// Reads the VALUE of `--set KEY=VALUE`: as TOML if it is TOML (`100`, `true`, `[1, 2]`, `"5s"`),
/// else as a list if it has commas, else as text.
pub(super) fn value(text: &str, place: &str) -> Node {
    let source = Source { text, origin: Origin::Whole(place) };
    if let Ok(value) = DeValue::parse(text) {
        return source.node(value.into_inner());
    }
    let scalar = |text: &str| match DeValue::parse(text.trim()) {
        Ok(value) => source.node(value.into_inner()).to_json(),
        Err(_) => Value::String(text.trim().to_owned()),
    };
    if text.contains(',') {
        Node::Leaf(Value::Array(text.split(',').map(scalar).collect()))
    } else {
        Node::Leaf(Value::String(text.trim().to_owned()))
    }
}

struct Source<'a> {
    text: &'a str,
    origin: Origin<'a>,
}

#[derive(Clone, Copy)]
enum Origin<'a> {
    /// A file. A place has the number of the line.
    File(&'a str),
    /// A text of one line. All places are the same.
    Whole(&'a str),
}

impl Source<'_> {
    fn place(&self, offset: usize) -> String {
        match self.origin {
            Origin::File(name) => {
                let before = self.text.as_bytes().iter().take(offset);
                format!("{name}:{}", 1 + before.filter(|byte| **byte == b'\n').count())
            }
            Origin::Whole(place) => place.to_owned(),
        }
    }

    fn entries(&self, table: DeTable<'_>) -> Vec<Entry> {
        let mut pairs: Vec<(Spanned<DeString<'_>>, Spanned<DeValue<'_>>)> = table.into_iter().collect();
        pairs.sort_unstable_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| Entry {
            place: self.place(key.span().start),
            key: key.into_inner().into_owned(),
            node: self.node(value.into_inner()),
        };
        pairs.into_iter().map(entry).collect()
    }

    fn node(&self, value: DeValue<'_>) -> Node {
        match value {
            DeValue::Table(table) => Node::Table(self.entries(table)),
            DeValue::Array(items)
                if !items.is_empty() && items.iter().all(|item| item.get_ref().is_table()) =>
            {
                let table = |item: Spanned<DeValue<'_>>| {
                    let place = self.place(item.span().start);
                    match item.into_inner() {
                        DeValue::Table(table) => (place, self.entries(table)),
                        _ => (place, Vec::new()),
                    }
                };
                Node::Tables(items.into_iter().map(table).collect())
            }
            DeValue::Array(items) => {
                Node::Leaf(items.into_iter().map(|item| self.node(item.into_inner()).to_json()).collect())
            }
            DeValue::String(text) => Node::Leaf(Value::String(text.into_owned())),
            DeValue::Integer(number) => {
                let digits = number.as_str();
                let whole = i64::from_str_radix(digits, number.radix()).map(Value::from);
                Node::Leaf(whole.unwrap_or_else(|_| Value::String(digits.to_owned())))
            }
            DeValue::Float(number) => {
                let real = number.as_str().parse::<f64>().map(Value::from);
                Node::Leaf(real.unwrap_or_else(|_| Value::String(number.as_str().to_owned())))
            }
            DeValue::Boolean(flag) => Node::Leaf(Value::Bool(flag)),
            DeValue::Datetime(time) => Node::Leaf(Value::String(time.to_string())),
        }
    }
}
