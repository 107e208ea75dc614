//! The settings of an experiment as a plan, `quick`, `--set` or a flag gives them: all optional, one laid over another.

use std::collections::BTreeMap;

use measure::units;
use serde_json::Value;

use super::names::hint_or_all;
use super::text::{Entry, Node};
use crate::Error;
use crate::axis::{self, Axis, AxisList, Fault};

/// What is set of an experiment. What is not set falls back to the layer below and then to a default
/// (`plan/defaults.rs`).
///
/// Build one in code with the fields: `Settings { iterations: Some(100), ..Settings::default() }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Messages of a point (in each direction). Excludes `duration_s`.
    pub iterations: Option<u64>,
    /// Time that a point is measured for. Excludes `iterations`.
    pub duration_s: Option<f64>,
    /// Bound on the payload of a point: large messages get fewer iterations (at least 10, or those asked for).
    pub bytes_max: Option<u64>,
    /// Messages before the first that counts.
    pub warmup: Option<u64>,
    /// How often the whole product of the axes is measured; with `within` how often at least.
    pub repetitions: Option<u32>,
    /// How often at most, with `within`.
    pub repetitions_max: Option<u32>,
    /// How near the mean over the repetitions is to be known, as a share of it, at 95 % confidence: a combination of the axes is
    /// measured again until it is (`-I` of netperf, which is given both halves together).
    pub within: Option<f64>,
    /// Send-queue depth.
    pub tx_depth: Option<u32>,
    /// Receive-queue depth.
    pub rx_depth: Option<u32>,
    /// Whether the raw samples stay in the record.
    pub keep_samples: Option<bool>,
    /// Thresholds for which the share of samples above is reported.
    pub share_above_ns: Option<Vec<u64>>,
    /// Where files of samples stay, on the host of each rank of a pipeline.
    pub sink_dir: Option<String>,
    /// How long a point may take, set-up included.
    pub timeout_s: Option<f64>,
    /// The axes in the order in which they are walked.
    pub axes: AxisList,
    /// Where each key was set, for errors. Filled in when a plan is read; leave it at its default in code.
    pub places: Places,
}

/// Where the keys of [`Settings`] were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places(BTreeMap<&'static str, String>);

impl Settings {
    /// The keys of `[[experiment]]` that a layer may set, axes apart.
    pub const KEYS: [&'static str; 13] = [
        "bytes_max",
        "duration",
        "iterations",
        "keep_samples",
        "repetitions",
        "repetitions_max",
        "rx_depth",
        "share_above_ns",
        "sink_dir",
        "timeout",
        "tx_depth",
        "warmup",
        "within",
    ];

    /// Adds an axis, or replaces its values.
    #[must_use]
    pub fn axis(mut self, axis: Axis) -> Self {
        self.axes.put(axis);
        self
    }

    /// Where `key` was set, if it was.
    pub(super) fn place(&self, key: &str) -> Option<String> {
        self.places.0.get(key).cloned()
    }

    /// Lays `over` on top: what it sets wins.
    pub(super) fn overlay(&mut self, over: &Self) {
        if over.iterations.is_some() || over.duration_s.is_some() {
            (self.iterations, self.duration_s) = (over.iterations, over.duration_s);
        }
        macro_rules! overlay {
            ($($field:ident)*) => { $(if over.$field.is_some() { self.$field.clone_from(&over.$field); })* };
        }
        overlay!(bytes_max warmup repetitions repetitions_max within tx_depth rx_depth);
        overlay!(keep_samples share_above_ns sink_dir timeout_s);
        over.axes.iter().for_each(|axis| self.axes.put(axis.clone()));
        self.places.0.extend(over.places.0.iter().map(|(key, place)| (*key, place.clone())));
    }

    /// Sets what one key of a plan says. `table` names the table in errors.
    pub(super) fn put(&mut self, entry: &Entry, table: &str) -> Result<(), Error> {
        let Some(key) = Self::KEYS.into_iter().find(|key| *key == entry.key) else {
            return Err(unknown_key(entry, table, &Self::KEYS));
        };
        let scalar = Scalar { entry, table };
        match key {
            "bytes_max" => self.bytes_max = Some(scalar.size()?),
            "duration" => self.duration_s = Some(scalar.duration_s()?),
            "iterations" => self.iterations = Some(scalar.whole()?),
            "keep_samples" => self.keep_samples = Some(scalar.flag()?),
            "repetitions" => self.repetitions = Some(scalar.whole_u32()?),
            "repetitions_max" => self.repetitions_max = Some(scalar.whole_u32()?),
            "rx_depth" => self.rx_depth = Some(scalar.whole_u32()?),
            "share_above_ns" => self.share_above_ns = Some(scalar.wholes()?),
            "sink_dir" => self.sink_dir = Some(scalar.text()?),
            "timeout" => self.timeout_s = Some(scalar.duration_s()?),
            "tx_depth" => self.tx_depth = Some(scalar.whole_u32()?),
            "warmup" => self.warmup = Some(scalar.whole()?),
            "within" => self.within = Some(scalar.share()?),
            _ => unreachable!("every key of KEYS is read"),
        }
        self.places.0.insert(key, entry.place.clone());
        Ok(())
    }

    /// Sets one axis of a plan.
    pub(super) fn put_axis_entry(&mut self, entry: &Entry, table: &str) -> Result<(), Error> {
        let unknown = || unknown_key(entry, &format!("the axes of {table}"), &axis::NAMES);
        let row = axis::find(&entry.key).ok_or_else(unknown)?;
        let values = match &entry.node {
            Node::Leaf(Value::Array(items)) => row.read(items),
            Node::Leaf(item) => row.read(std::slice::from_ref(item)),
            Node::Table(_) | Node::Tables(_) => return Err(wrong_type(entry, table, &row.expected())),
        };
        let (place, key, table) = (entry.place.clone(), entry.key.clone(), table.to_owned());
        let values = values.map_err(|fault| match fault {
            Fault::Unreadable(reason) => Error::BadValue { place, key, table, reason },
            Fault::Unknown { value, known } => {
                Error::UnknownValue { place, key, table, hint: hint_or_all(&value, &known), value }
            }
            Fault::WrongType(item) => {
                let found = Node::Leaf(item).in_words();
                Error::WrongType { place, key, table, expected: row.expected(), found }
            }
        })?;
        self.places.0.insert(row.name, entry.place.clone());
        self.axes.put(Axis::read(row, values));
        Ok(())
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

/// A key whose value is read as one kind.
struct Scalar<'a> {
    entry: &'a Entry,
    table: &'a str,
}

impl Scalar<'_> {
    fn value(&self) -> Option<&Value> {
        match &self.entry.node {
            Node::Leaf(value) => Some(value),
            Node::Table(_) | Node::Tables(_) => None,
        }
    }

    fn flag(&self) -> Result<bool, Error> {
        self.value()
            .and_then(Value::as_bool)
            .ok_or_else(|| wrong_type(self.entry, self.table, "true or false"))
    }

    fn text(&self) -> Result<String, Error> {
        let text = self.value().and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| wrong_type(self.entry, self.table, "text"))
    }

    fn whole(&self) -> Result<u64, Error> {
        self.value()
            .and_then(Value::as_u64)
            .ok_or_else(|| wrong_type(self.entry, self.table, "a whole number"))
    }

    fn whole_u32(&self) -> Result<u32, Error> {
        u32::try_from(self.whole()?)
            .map_err(|_| wrong_type(self.entry, self.table, "a whole number below 2^32"))
    }

    fn wholes(&self) -> Result<Vec<u64>, Error> {
        let list = match self.value() {
            Some(Value::Array(items)) => items.iter().map(Value::as_u64).collect(),
            Some(value) => value.as_u64().map(|whole| vec![whole]),
            None => None,
        };
        list.ok_or_else(|| wrong_type(self.entry, self.table, "a list of whole numbers"))
    }

    fn size(&self) -> Result<u64, Error> {
        match self.value() {
            Some(Value::String(text)) => units::parse_size(text).map_err(|error| self.bad_value(&error)),
            Some(value) if value.is_u64() => Ok(value.as_u64().unwrap_or_default()),
            _ => Err(wrong_type(self.entry, self.table, "a size such as 65536 or \"64MiB\"")),
        }
    }

    fn duration_s(&self) -> Result<f64, Error> {
        match self.value() {
            Some(Value::String(text)) => {
                let read = units::parse_duration(text).map_err(|error| self.bad_value(&error))?;
                Ok(read.as_secs_f64())
            }
            _ => Err(wrong_type(self.entry, self.table, "a duration such as \"5s\"")),
        }
    }

    fn share(&self) -> Result<f64, Error> {
        match self.value() {
            Some(Value::String(text)) => units::parse_percent(text).map_err(|error| self.bad_value(&error)),
            _ => Err(wrong_type(self.entry, self.table, "a share such as \"2.5 %\"")),
        }
    }

    fn bad_value(&self, reason: &measure::Error) -> Error {
        let (place, key) = (self.entry.place.clone(), self.entry.key.clone());
        Error::BadValue { place, key, table: self.table.to_owned(), reason: reason.to_string() }
    }
}

/// The place of what no text set.
pub(super) const IN_CODE: &str = "the flags";
