//! How the values of axes stand in plans and records.

use std::iter::once;
use std::marker::PhantomData;

use measure::units;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use verbs::{GENERATIONS, LinkModel};

use super::NO_LINK;
use crate::Error;
use crate::plan::defaults::SIGNAL_RATE;
use crate::plan::names::{hint_or_all, names_of};
use crate::plan::text::Node;

/// How values of a kind are written.
pub(super) trait Codec {
    /// The kind.
    type Value;

    /// All that a plan gives.
    fn read(&self, reader: &Reader<'_>) -> Result<Vec<Self::Value>, Error>;

    /// One as a record shows it.
    fn json(&self, value: &Self::Value) -> Value;
}

/// Kinds that are written as they are.
macro_rules! plain {
    ($($(#[$doc:meta])* $codec:ident($value:ty) = $read:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) struct $codec;

            impl Codec for $codec {
                type Value = $value;

                fn read(&self, reader: &Reader<'_>) -> Result<Vec<$value>, Error> {
                    $read(reader)
                }

                fn json(&self, value: &$value) -> Value {
                    one_json(value)
                }
            }
        )*
    };
}

plain! {
    /// Numbers, and ranges of them: `"1..16"`.
    Count(u32) = Reader::counts;
    /// `true` or `false`.
    Flag(bool) = |reader: &Reader<'_>| reader.each("true or false", Value::as_bool);
    /// Nanoseconds, or durations such as `"5.5us"`.
    Pause(u64) = Reader::pauses;
    /// Messages in a second, or texts such as `"10k"`.
    Rate(u64) = Reader::rates;
    /// Rates of links, by name.
    SignalRate(String) = Reader::signal_rates;
    /// Bytes, or texts such as `"64KiB"` and `"4..8MiB"`.
    Size(u64) = Reader::sizes;
    /// Names.
    Text(String) = |reader: &Reader<'_>| reader.each("text", |item| item.as_str().map(str::to_owned));
    /// Whole numbers.
    Whole(u32) = |reader: &Reader<'_>| reader.each("a whole number", whole_u32);
}

/// One of the names that a type has.
pub(super) struct Choice<T>(PhantomData<T>);

impl<T> Choice<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: DeserializeOwned + Serialize> Codec for Choice<T> {
    type Value = T;

    fn read(&self, reader: &Reader<'_>) -> Result<Vec<T>, Error> {
        reader.choices()
    }

    fn json(&self, value: &T) -> Value {
        one_json(value)
    }
}

/// The same, or a word for none of them.
pub(super) struct ChoiceOr<T>(&'static str, PhantomData<T>);

impl<T> ChoiceOr<T> {
    pub(super) fn new(word: &'static str) -> Self {
        Self(word, PhantomData)
    }
}

impl<T: DeserializeOwned + Serialize> Codec for ChoiceOr<T> {
    type Value = Option<T>;

    fn read(&self, reader: &Reader<'_>) -> Result<Vec<Option<T>>, Error> {
        reader.choices_or(self.0)
    }

    fn json(&self, value: &Option<T>) -> Value {
        value.as_ref().map_or_else(|| self.0.into(), one_json)
    }
}

/// A number, or a word for none.
pub(super) struct NumberOr(pub(super) &'static str);

impl Codec for NumberOr {
    type Value = Option<u32>;

    fn read(&self, reader: &Reader<'_>) -> Result<Vec<Option<u32>>, Error> {
        let number = |value: &Value| match value.as_str() {
            Some(word) if word == self.0 => Some(None),
            _ => whole_u32(value).map(Some),
        };
        reader.each(&format!("a whole number or {:?}", self.0), number)
    }

    fn json(&self, value: &Option<u32>) -> Value {
        value.map_or_else(|| self.0.into(), Value::from)
    }
}

/// A name, or a word for none.
pub(super) struct TextOr(pub(super) &'static str);

impl Codec for TextOr {
    type Value = Option<String>;

    fn read(&self, reader: &Reader<'_>) -> Result<Vec<Option<String>>, Error> {
        let text = |value: &Value| Some(Some(value.as_str()?.to_owned()).filter(|text| text != self.0));
        reader.each("text", text)
    }

    fn json(&self, value: &Option<String>) -> Value {
        value.as_deref().unwrap_or(self.0).into()
    }
}

/// What a link is to be like (see [`verbs::LinkModel`]), or `"none"`.
pub(super) struct Link;

impl Codec for Link {
    type Value = Option<String>;

    fn read(&self, reader: &Reader<'_>) -> Result<Vec<Option<String>>, Error> {
        reader.links()
    }

    fn json(&self, value: &Option<String>) -> Value {
        value.as_deref().unwrap_or(NO_LINK).into()
    }
}

fn one_json<T: Serialize>(value: T) -> Value {
    serde_json::to_value(value).expect("axis values are plain scalars")
}

fn whole_u32(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|whole| u32::try_from(whole).ok())
}

/// What a plan sets an axis to.
pub(super) struct Reader<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    pub(super) place: &'a str,
    pub(super) table: &'a str,
}

impl Reader<'_> {
    fn items(&self, expected: &str) -> Result<Vec<Value>, Error> {
        match self.node {
            Node::Leaf(Value::Array(items)) => Ok(items.clone()),
            Node::Leaf(value) => Ok(vec![value.clone()]),
            Node::Table(_) | Node::Tables(_) => Err(self.wrong_type(self.node, expected)),
        }
    }

    fn each<T>(&self, expected: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, Error> {
        let one = |item: Value| read(&item).ok_or_else(|| self.wrong_type(&Node::Leaf(item), expected));
        self.items(expected)?.into_iter().map(one).collect()
    }

    /// Numbers, and ranges of them.
    fn counts(&self) -> Result<Vec<u32>, Error> {
        let expected = "a whole number or a range such as \"1..16\"";
        let wrong = |item: &Value| self.wrong_type(&Node::Leaf(item.clone()), expected);
        let one = |item: Value| match item.as_str() {
            None => whole_u32(&item).map(|n| vec![n]).ok_or_else(|| wrong(&item)),
            Some(text) => units::parse_counts(text).ok_or_else(|| wrong(&item)),
        };
        Ok(self.items(expected)?.into_iter().map(one).collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn choices<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let one = |item: Value| self.choice(item, names_of::<T>());
        self.items("text")?.into_iter().map(one).collect()
    }

    /// Choices, and a word for none of them.
    fn choices_or<T: DeserializeOwned>(&self, word: &str) -> Result<Vec<Option<T>>, Error> {
        let known = [&[word], names_of::<T>()].concat();
        let one = |item: Value| match item.as_str() {
            Some(text) if text == word => Ok(None),
            _ => self.choice(item, &known).map(Some),
        };
        self.items("text")?.into_iter().map(one).collect()
    }

    fn choice<T: DeserializeOwned>(&self, item: Value, known: &[&str]) -> Result<T, Error> {
        match &item {
            Value::String(text) if known.contains(&text.as_str()) => {
                Ok(serde_json::from_value(item).expect("a type reads the names that it lists"))
            }
            Value::String(text) => Err(self.unknown_value(text, known)),
            _ => Err(self.wrong_type(&Node::Leaf(item), "text")),
        }
    }

    fn pauses(&self) -> Result<Vec<u64>, Error> {
        let expected = "a whole number of nanoseconds or a duration such as \"5.5us\"";
        let read =
            |text: &str| Ok(u64::try_from(units::parse_duration(text)?.as_nanos()).unwrap_or(u64::MAX));
        self.numbers_or_texts(expected, |text| read(text).map(|ns| vec![ns]))
    }

    fn rates(&self) -> Result<Vec<u64>, Error> {
        let expected = "a whole number of messages in a second, or a text such as \"10k\"";
        self.numbers_or_texts(expected, |text| units::parse_rate(text).map(|rate| vec![rate]))
    }

    fn sizes(&self) -> Result<Vec<u64>, Error> {
        self.numbers_or_texts("a size such as 64, \"64KiB\" or \"4..8MiB\"", units::parse_sizes)
    }

    /// Numbers, or texts that stand for some.
    fn numbers_or_texts(
        &self,
        expected: &str,
        read: impl Fn(&str) -> Result<Vec<u64>, measure::Error>,
    ) -> Result<Vec<u64>, Error> {
        let one = |item: Value| match &item {
            Value::String(text) => read(text).map_err(|error| self.bad_value(&error)),
            _ => {
                let number = item.as_u64().ok_or_else(|| self.wrong_type(&Node::Leaf(item), expected))?;
                Ok(vec![number])
            }
        };
        Ok(self.items(expected)?.into_iter().map(one).collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn signal_rates(&self) -> Result<Vec<String>, Error> {
        let rates = self.each("text", |item| item.as_str().map(str::to_owned))?;
        let known: Vec<&str> = once(SIGNAL_RATE).chain(GENERATIONS.map(|of| of.name)).collect();
        match rates.iter().find(|rate| !known.contains(&rate.as_str())) {
            Some(rate) => Err(self.unknown_value(rate, &known)),
            None => Ok(rates),
        }
    }

    fn links(&self) -> Result<Vec<Option<String>>, Error> {
        let one = |text: String| match text.as_str() {
            NO_LINK => Ok(None),
            _ => text
                .parse()
                .map(|link: LinkModel| Some(link.to_string()))
                .map_err(|error| self.bad_value(&error)),
        };
        let links = self.each("text", |item| item.as_str().map(str::to_owned))?;
        links.into_iter().map(one).collect()
    }

    fn bad_value(&self, reason: &impl ToString) -> Error {
        let (key, table) = (self.name.to_owned(), self.table.to_owned());
        Error::BadValue { place: self.place.to_owned(), key, table, reason: reason.to_string() }
    }

    fn wrong_type(&self, found: &Node, expected: &str) -> Error {
        Error::WrongType {
            place: self.place.to_owned(),
            key: self.name.to_owned(),
            table: self.table.to_owned(),
            expected: expected.to_owned(),
            found: found.in_words(),
        }
    }

    fn unknown_value(&self, value: &str, known: &[&str]) -> Error {
        Error::UnknownValue {
            place: self.place.to_owned(),
            key: self.name.to_owned(),
            table: self.table.to_owned(),
            value: value.to_owned(),
            hint: hint_or_all(value, known),
        }
    }
}
