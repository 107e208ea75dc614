//! The axes of an experiment: what is varied, and through which values.

use std::iter::once;

use measure::units;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use verbs::{GENERATIONS, LinkModel};

use super::defaults::SIGNAL_RATE;
use super::names::{hint_or_all, names_of};
use super::text::Node;
use crate::Error;
use crate::point::{
    Flow, Load, Memory, Mesh, Notify, Operation, Poll, QueuePoll, Service, Setup, Stamp, Step, Traffic,
};

/// One axis and its values, in the order in which they are measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// Calls between two stamps; `None`, in a plan `"step"`, is as many as suit the step.
    Batch(Vec<Option<u32>>),
    /// Buffers that messages are sent from in turn, and as many that they arrive in; `None`, in a plan `"page"`, is as many
    /// as fit in a page, at least one.
    Buffers(Vec<Option<u32>>),
    /// Messages that are posted without waiting for the peer, n of a parametrised round trip; `None`, in a plan `"all"`, is all
    /// of the point.
    Burst(Vec<Option<u32>>),
    /// Which way a stream flows.
    Direction(Vec<Flow>),
    /// Under which conditions it is measured, by a name that the plan defines or that is built in.
    Environment(Vec<String>),
    /// Whether the payload is copied into the work request at post time. Never assumed: it is off unless a plan asks
    /// for it, because a limit that differs between devices would silently put a step into the curve.
    Inline(Vec<bool>),
    /// What the link is to be like, where a device can imitate one (see [`verbs::LinkModel`]); `None`, in a plan `"none"`,
    /// leaves it as it is.
    Link(Vec<Option<String>>),
    /// Where the load of other ranks goes.
    Load(Vec<Load>),
    /// Payload of their messages in bytes.
    LoadBytes(Vec<u64>),
    /// Ranks that load the device meanwhile; in a plan as `peers`, and 0 for none.
    Loaders(Vec<u32>),
    /// Whose memory messages come from and go to.
    Memory(Vec<Memory>),
    /// Which ranks are connected beside those that talk to each other.
    Mesh(Vec<Mesh>),
    /// Path MTU in bytes; `None`, in a plan `"active"`, is the largest that both ports have.
    MtuBytes(Vec<Option<u32>>),
    /// How it is learnt that bytes have come; `None`, in a plan `"usual"`, is by a completion where there is one.
    Notify(Vec<Option<Notify>>),
    /// Operation that carries the message.
    Operation(Vec<Operation>),
    /// RDMA Reads or atomics of a queue pair under way; `None`, in a plan `"max"`, is what both devices allow.
    OutstandingReads(Vec<Option<u32>>),
    /// Least time from one post to the next, or d of a parametrised round trip: from the end of a post; in nanoseconds. In a
    /// plan a number of them or a duration such as `"5.5us"`.
    PauseNs(Vec<u64>),
    /// Pairs of ranks that do the same at the same time; in a plan as `peers`.
    Pairs(Vec<u32>),
    /// The n of 1:n; in a plan a number, a list of them or a range such as `"1..16"`, which is every one of them.
    Peers(Vec<u32>),
    /// How a completion is waited for.
    Poll(Vec<Poll>),
    /// Sends that the device is told of at once.
    PostList(Vec<u32>),
    /// Queue pairs that messages take in turn.
    QueuePairs(Vec<u32>),
    /// Messages that are due in a second; in a plan a number of them or a text such as `"10k"`.
    RateHz(Vec<u64>),
    /// Receive-queue depth.
    RxDepth(Vec<u32>),
    /// Receives that are kept posted; `None`, in a plan `"depth"`, is as many as the queue holds.
    RxFill(Vec<Option<u32>>),
    /// How the completion of a send is waited for; `None`, in a plan `"poll"`, is as `poll` says.
    SendPoll(Vec<Option<QueuePoll>>),
    /// Transport service.
    Service(Vec<Service>),
    /// How queue pairs are connected.
    Setup(Vec<Setup>),
    /// Elements that a message is gathered from and scattered to.
    Sge(Vec<u32>),
    /// Every how many sends one asks for a completion; `None`, in a plan `"half"`, is half of the send queue's depth.
    SignalInterval(Vec<Option<u32>>),
    /// Signal rate of the link.
    SignalRate(Vec<String>),
    /// Payload of a message in bytes.
    SizeBytes(Vec<u64>),
    /// Which instant the message itself carries.
    Stamp(Vec<Stamp>),
    /// The call that is timed by itself.
    Step(Vec<Step>),
    /// What several pairs do.
    Traffic(Vec<Traffic>),
    /// Send-queue depth.
    TxDepth(Vec<u32>),
}

impl Axis {
    /// Every axis, by the name that plans, records and exports share.
    pub const NAMES: [&'static str; 36] = [
        "batch",
        "buffers",
        "burst",
        "direction",
        "environment",
        "inline",
        "link",
        "load",
        "load_bytes",
        "loaders",
        "memory",
        "mesh",
        "mtu_bytes",
        "notify",
        "operation",
        "outstanding_reads",
        "pairs",
        "pause_ns",
        "peers",
        "poll",
        "post_list",
        "queue_pairs",
        "rate_hz",
        "rx_depth",
        "rx_fill",
        "send_poll",
        "service",
        "setup",
        "sge",
        "signal_interval",
        "signal_rate",
        "size_bytes",
        "stamp",
        "step",
        "traffic",
        "tx_depth",
    ];

    /// Its name in plans, records and exports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Batch(_) => "batch",
            Self::Buffers(_) => "buffers",
            Self::Burst(_) => "burst",
            Self::Direction(_) => "direction",
            Self::Environment(_) => "environment",
            Self::Inline(_) => "inline",
            Self::Link(_) => "link",
            Self::Load(_) => "load",
            Self::LoadBytes(_) => "load_bytes",
            Self::Loaders(_) => "loaders",
            Self::Memory(_) => "memory",
            Self::Mesh(_) => "mesh",
            Self::MtuBytes(_) => "mtu_bytes",
            Self::Notify(_) => "notify",
            Self::Operation(_) => "operation",
            Self::OutstandingReads(_) => "outstanding_reads",
            Self::Pairs(_) => "pairs",
            Self::PauseNs(_) => "pause_ns",
            Self::Peers(_) => "peers",
            Self::Poll(_) => "poll",
            Self::PostList(_) => "post_list",
            Self::QueuePairs(_) => "queue_pairs",
            Self::RateHz(_) => "rate_hz",
            Self::RxDepth(_) => "rx_depth",
            Self::RxFill(_) => "rx_fill",
            Self::SendPoll(_) => "send_poll",
            Self::Service(_) => "service",
            Self::Setup(_) => "setup",
            Self::Sge(_) => "sge",
            Self::SignalInterval(_) => "signal_interval",
            Self::SignalRate(_) => "signal_rate",
            Self::SizeBytes(_) => "size_bytes",
            Self::Stamp(_) => "stamp",
            Self::Step(_) => "step",
            Self::Traffic(_) => "traffic",
            Self::TxDepth(_) => "tx_depth",
        }
    }

    /// Its values as a record shows them.
    pub fn values(&self) -> Vec<Value> {
        match self {
            Self::Batch(values) => numbers(values, BY_STEP),
            Self::Buffers(values) => numbers(values, PAGE),
            Self::Burst(values) => numbers(values, ALL),
            Self::Direction(values) => json(values),
            Self::Environment(values) => json(values),
            Self::Inline(values) => json(values),
            Self::Link(values) => {
                values.iter().map(|link| Value::from(link.as_deref().unwrap_or(NO_LINK))).collect()
            }
            Self::Load(values) => json(values),
            Self::Memory(values) => json(values),
            Self::Mesh(values) => json(values),
            Self::Notify(values) => {
                values.iter().map(|notify| notify.map_or(USUAL.into(), one_json)).collect()
            }
            Self::MtuBytes(values) => numbers(values, ACTIVE),
            Self::OutstandingReads(values) => numbers(values, MAX),
            Self::Loaders(values)
            | Self::Pairs(values)
            | Self::Peers(values)
            | Self::PostList(values)
            | Self::QueuePairs(values)
            | Self::RxDepth(values)
            | Self::Sge(values)
            | Self::TxDepth(values) => json(values),
            Self::LoadBytes(values)
            | Self::PauseNs(values)
            | Self::RateHz(values)
            | Self::SizeBytes(values) => json(values),
            Self::RxFill(values) => numbers(values, DEPTH),
            Self::SendPoll(values) => values.iter().map(|poll| poll.map_or(SAME.into(), one_json)).collect(),
            Self::SignalInterval(values) => numbers(values, HALF),
            Self::Operation(values) => json(values),
            Self::Poll(values) => json(values),
            Self::Service(values) => json(values),
            Self::Setup(values) => json(values),
            Self::SignalRate(values) => json(values),
            Self::Stamp(values) => json(values),
            Self::Step(values) => json(values),
            Self::Traffic(values) => json(values),
        }
    }

    /// The axis `name` from what a plan sets it to; `None` if no axis has that name.
    pub(super) fn read(name: &str, node: &Node, place: &str, table: &str) -> Result<Option<Self>, Error> {
        let reader = Reader { name, node, place, table };
        Ok(Some(match name {
            "batch" => Self::Batch(reader.numbers_or(BY_STEP)?),
            "buffers" => Self::Buffers(reader.numbers_or(PAGE)?),
            "burst" => Self::Burst(reader.numbers_or(ALL)?),
            "direction" => Self::Direction(reader.choices()?),
            "environment" => Self::Environment(reader.each("text", |item| item.as_str().map(str::to_owned))?),
            "inline" => Self::Inline(reader.each("true or false", Value::as_bool)?),
            "link" => Self::Link(reader.links()?),
            "load" => Self::Load(reader.choices()?),
            "load_bytes" => Self::LoadBytes(reader.sizes()?),
            "loaders" => Self::Loaders(reader.counts()?),
            "memory" => Self::Memory(reader.choices()?),
            "mesh" => Self::Mesh(reader.choices()?),
            "notify" => Self::Notify(reader.choices_or(USUAL)?),
            "pairs" => Self::Pairs(reader.counts()?),
            "peers" => Self::Peers(reader.counts()?),
            "mtu_bytes" => Self::MtuBytes(reader.numbers_or(ACTIVE)?),
            "operation" => Self::Operation(reader.choices()?),
            "outstanding_reads" => Self::OutstandingReads(reader.numbers_or(MAX)?),
            "pause_ns" => Self::PauseNs(reader.pauses()?),
            "poll" => Self::Poll(reader.choices()?),
            "post_list" => Self::PostList(reader.each("a whole number", whole_u32)?),
            "queue_pairs" => Self::QueuePairs(reader.each("a whole number", whole_u32)?),
            "rate_hz" => Self::RateHz(reader.rates()?),
            "rx_depth" => Self::RxDepth(reader.each("a whole number", whole_u32)?),
            "rx_fill" => Self::RxFill(reader.numbers_or(DEPTH)?),
            "send_poll" => Self::SendPoll(reader.choices_or(SAME)?),
            "service" => Self::Service(reader.choices()?),
            "setup" => Self::Setup(reader.choices()?),
            "sge" => Self::Sge(reader.each("a whole number", whole_u32)?),
            "signal_interval" => Self::SignalInterval(reader.numbers_or(HALF)?),
            "signal_rate" => Self::SignalRate(reader.signal_rates()?),
            "size_bytes" => Self::SizeBytes(reader.sizes()?),
            "stamp" => Self::Stamp(reader.choices()?),
            "step" => Self::Step(reader.choices()?),
            "traffic" => Self::Traffic(reader.choices()?),
            "tx_depth" => Self::TxDepth(reader.each("a whole number", whole_u32)?),
            _ => return Ok(None),
        }))
    }
}

fn json<T: Serialize>(values: &[T]) -> Vec<Value> {
    values.iter().map(one_json).collect()
}

fn one_json<T: Serialize>(value: T) -> Value {
    serde_json::to_value(value).expect("axis values are plain scalars")
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

    fn numbers_or(&self, word: &str) -> Result<Vec<Option<u32>>, Error> {
        self.each(&format!("a whole number or {word:?}"), number_or(word))
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

/// No model of a link.
pub(super) const NO_LINK: &str = "none";
/// The path MTU that the ports have.
const ACTIVE: &str = "active";
/// As many RDMA Reads or atomics as the devices allow.
const MAX: &str = "max";
/// As many buffers as fit in a page.
const PAGE: &str = "page";
/// By a completion where there is one.
pub(super) const USUAL: &str = "usual";
/// All messages of a point in one burst.
const ALL: &str = "all";
/// As many calls between two stamps as suit the step.
const BY_STEP: &str = "step";
/// As many receives as the queue holds.
const DEPTH: &str = "depth";
/// Half of the send queue's depth.
const HALF: &str = "half";
/// As `poll` says.
pub(super) const SAME: &str = "poll";
