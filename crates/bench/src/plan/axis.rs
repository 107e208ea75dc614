//! The axes of an experiment: what is varied, and through which values.

use std::iter::once;

use measure::units;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use verbs::{BadLink, GENERATIONS, LinkModel};

use super::defaults::SIGNAL_RATE;
use super::names::{hint_or_all, names_of};
use super::text::Node;
use crate::Error;
use crate::point::{Flow, Memory, Operation, Poll, Service, Setup};

/// One axis and its values, in the order in which they are measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// Which way a stream flows.
    Direction(Vec<Flow>),
    /// Whether the payload is copied into the work request at post time. Never assumed: it is off unless a plan asks
    /// for it, because a limit that differs between devices would silently put a step into the curve.
    Inline(Vec<bool>),
    /// What the link is to be like, where a device can imitate one (see [`verbs::LinkModel`]); `None`, in a plan `"none"`,
    /// leaves it as it is.
    Link(Vec<Option<String>>),
    /// Whose memory messages come from and go to.
    Memory(Vec<Memory>),
    /// Path MTU in bytes; `None`, in a plan `"active"`, is the largest that both ports have.
    MtuBytes(Vec<Option<u32>>),
    /// Operation that carries the message.
    Operation(Vec<Operation>),
    /// RDMA Reads or atomics of a queue pair under way; `None`, in a plan `"max"`, is what both devices allow.
    OutstandingReads(Vec<Option<u32>>),
    /// How a completion is waited for.
    Poll(Vec<Poll>),
    /// Sends that the device is told of at once.
    PostList(Vec<u32>),
    /// Queue pairs that messages take in turn.
    QueuePairs(Vec<u32>),
    /// Transport service.
    Service(Vec<Service>),
    /// How queue pairs are connected.
    Setup(Vec<Setup>),
    /// Elements that a message is gathered from and scattered to.
    Sge(Vec<u32>),
    /// Every how many sends one asks for a completion.
    SignalInterval(Vec<u32>),
    /// Signal rate of the link.
    SignalRate(Vec<String>),
    /// Payload of a message in bytes.
    SizeBytes(Vec<u64>),
}

impl Axis {
    /// Every axis, by the name that plans, records and exports share.
    pub const NAMES: [&'static str; 16] = [
        "direction",
        "inline",
        "link",
        "memory",
        "mtu_bytes",
        "operation",
        "outstanding_reads",
        "poll",
        "post_list",
        "queue_pairs",
        "service",
        "setup",
        "sge",
        "signal_interval",
        "signal_rate",
        "size_bytes",
    ];

    /// Its name in plans, records and exports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Direction(_) => "direction",
            Self::Inline(_) => "inline",
            Self::Link(_) => "link",
            Self::Memory(_) => "memory",
            Self::MtuBytes(_) => "mtu_bytes",
            Self::Operation(_) => "operation",
            Self::OutstandingReads(_) => "outstanding_reads",
            Self::Poll(_) => "poll",
            Self::PostList(_) => "post_list",
            Self::QueuePairs(_) => "queue_pairs",
            Self::Service(_) => "service",
            Self::Setup(_) => "setup",
            Self::Sge(_) => "sge",
            Self::SignalInterval(_) => "signal_interval",
            Self::SignalRate(_) => "signal_rate",
            Self::SizeBytes(_) => "size_bytes",
        }
    }

    /// Its values as a record shows them.
    pub fn values(&self) -> Vec<Value> {
        match self {
            Self::Direction(values) => json(values),
            Self::Inline(values) => json(values),
            Self::Link(values) => {
                values.iter().map(|link| Value::from(link.as_deref().unwrap_or(NO_LINK))).collect()
            }
            Self::Memory(values) => json(values),
            Self::MtuBytes(values) => numbers(values, ACTIVE),
            Self::OutstandingReads(values) => numbers(values, MAX),
            Self::PostList(values)
            | Self::QueuePairs(values)
            | Self::Sge(values)
            | Self::SignalInterval(values) => json(values),
            Self::Operation(values) => json(values),
            Self::Poll(values) => json(values),
            Self::Service(values) => json(values),
            Self::Setup(values) => json(values),
            Self::SignalRate(values) => json(values),
            Self::SizeBytes(values) => json(values),
        }
    }

    /// The axis `name` from what a plan sets it to; `None` if no axis has that name.
    pub(super) fn read(name: &str, node: &Node, place: &str, table: &str) -> Result<Option<Self>, Error> {
        let reader = Reader { name, node, place, table };
        Ok(Some(match name {
            "direction" => Self::Direction(reader.choices()?),
            "inline" => Self::Inline(reader.each("true or false", Value::as_bool)?),
            "link" => Self::Link(reader.links()?),
            "memory" => Self::Memory(reader.choices()?),
            "mtu_bytes" => Self::MtuBytes(reader.each("a whole number or \"active\"", number_or(ACTIVE))?),
            "operation" => Self::Operation(reader.choices()?),
            "outstanding_reads" => {
                Self::OutstandingReads(reader.each("a whole number or \"max\"", number_or(MAX))?)
            }
            "poll" => Self::Poll(reader.choices()?),
            "post_list" => Self::PostList(reader.each("a whole number", whole_u32)?),
            "queue_pairs" => Self::QueuePairs(reader.each("a whole number", whole_u32)?),
            "service" => Self::Service(reader.choices()?),
            "setup" => Self::Setup(reader.choices()?),
            "sge" => Self::Sge(reader.each("a whole number", whole_u32)?),
            "signal_interval" => Self::SignalInterval(reader.each("a whole number", whole_u32)?),
            "signal_rate" => Self::SignalRate(reader.signal_rates()?),
            "size_bytes" => Self::SizeBytes(reader.sizes()?),
            _ => return Ok(None),
        }))
    }
}

fn json<T: Serialize>(values: &[T]) -> Vec<Value> {
    values.iter().map(|value| serde_json::to_value(value).expect("axis values are plain scalars")).collect()
}

/// Numbers, and a word where there is none.
fn numbers(values: &[Option<u32>], word: &str) -> Vec<Value> {
    values.iter().map(|value| value.map_or_else(|| Value::from(word), Value::from)).collect()
}

/// Reads a number, or the word that stands for none.
fn number_or(word: &str) -> impl Fn(&Value) -> Option<Option<u32>> {
    move |value| if value.as_str() == Some(word) { Some(None) } else { whole_u32(value).map(Some) }
}

fn whole_u32(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|whole| u32::try_from(whole).ok())
}

struct Reader<'a> {
    name: &'a str,
    node: &'a Node,
    place: &'a str,
    table: &'a str,
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

    fn choices<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let known = names_of::<T>();
        let one = |item: Value| match &item {
            Value::String(text) if known.contains(&text.as_str()) => {
                Ok(serde_json::from_value(item).expect("a type reads the names that it lists"))
            }
            Value::String(text) => Err(self.unknown_value(text, known)),
            _ => Err(self.wrong_type(&Node::Leaf(item), "text")),
        };
        self.items("text")?.into_iter().map(one).collect()
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
                .map_err(|error| self.bad_link(&error)),
        };
        let links = self.each("text", |item| item.as_str().map(str::to_owned))?;
        links.into_iter().map(one).collect()
    }

    fn bad_link(&self, reason: &BadLink) -> Error {
        let (key, table) = (self.name.to_owned(), self.table.to_owned());
        Error::BadLink { place: self.place.to_owned(), key, table, reason: reason.to_string() }
    }

    fn sizes(&self) -> Result<Vec<u64>, Error> {
        let expected = "a size such as 64, \"64KiB\" or \"4..8MiB\"";
        let mut sizes = Vec::new();
        for item in self.items(expected)? {
            let read = match &item {
                Value::String(text) => {
                    units::parse_sizes(text).map_err(|error| self.bad_size(error.to_string()))?
                }
                _ => vec![item.as_u64().ok_or_else(|| self.wrong_type(&Node::Leaf(item), expected))?],
            };
            sizes.extend(read);
        }
        Ok(sizes)
    }

    fn bad_size(&self, reason: String) -> Error {
        let (key, table) = (self.name.to_owned(), self.table.to_owned());
        Error::BadSize { place: self.place.to_owned(), key, table, reason }
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

/// No model of a link.
pub(super) const NO_LINK: &str = "none";
/// The path MTU that the ports have.
const ACTIVE: &str = "active";
/// As many RDMA Reads or atomics as the devices allow.
const MAX: &str = "max";
