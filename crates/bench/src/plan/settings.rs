//! The settings of an experiment as a plan, `quick`, `--set` or a flag gives them: all optional, one laid over another.

use std::collections::BTreeMap;

use measure::units;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::keys::{unknown_key, wrong_type};
use super::names::hint_or_all;
use super::text::{Entry, Node};
use crate::Error;
use crate::axis::{self, Axis, AxisList, Fault};

/// One definition of each key of `[[experiment]]` that a layer may set, axes apart: its field, its name and how it is read.
macro_rules! settings {
    ($($(#[doc = $documentation:literal])+ $field:ident: $value:ty = $key:literal, $read:ident;)+) => {
        /// What is set of an experiment. What is not set falls back to the layer below and then to a default
        /// (`plan/defaults.rs`).
        ///
        /// Build one in code with the fields: `Settings { iterations: Some(100), ..Settings::default() }`.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings {
            $($(#[doc = $documentation])+ pub $field: Option<$value>,)+
            /// The axes in the order in which they are walked.
            pub axes: AxisList,
            /// Where each key was set, for errors. Filled in when a plan is read; leave it at its default in code.
            pub places: Places,
        }

        impl Settings {
            /// The keys of `[[experiment]]` that a layer may set, axes apart.
            pub const KEYS: [&'static str; [$($key),+].len()] = [$($key),+];

            /// Lays the keys of `over` on top: what it sets wins.
            fn overlay_keys(&mut self, over: &Self) {
                $(if over.$field.is_some() { self.$field.clone_from(&over.$field); })+
            }

            /// Sets what one key of a plan says. `table` names the table in errors.
            pub(super) fn put(&mut self, entry: &Entry, table: &str) -> Result<(), Error> {
                let scalar = Scalar { entry, table };
                let key = match entry.key.as_str() {
                    $($key => {
                        self.$field = Some(scalar.$read()?);
                        $key
                    })+
                    _ => return Err(unknown_key(entry, table, &Self::KEYS)),
                };
                self.places.0.insert(key, entry.place.clone());
                Ok(())
            }
        }
    };
}

settings! {
    /// Bound on the payload of a point: large messages get fewer iterations (at least 10, or those asked for).
    bytes_max: u64 = "bytes_max", size;
    /// Time that a point is measured for. Excludes `iterations`.
    duration_s: f64 = "duration", duration_s;
    /// Messages of a point (in each direction). Excludes `duration_s`.
    iterations: u64 = "iterations", whole;
    /// Whether the raw samples stay in the record.
    keep_samples: bool = "keep_samples", flag;
    /// How often the whole product of the axes is measured; with `within` how often at least.
    repetitions: u32 = "repetitions", whole_u32;
    /// How often at most, with `within`.
    repetitions_max: u32 = "repetitions_max", whole_u32;
    /// Receive-queue depth.
    rx_depth: u32 = "rx_depth", whole_u32;
    /// Thresholds for which the share of samples above is reported.
    share_above_ns: Vec<u64> = "share_above_ns", wholes;
    /// Where files of samples stay, on the host of each rank of a pipeline.
    sink_dir: String = "sink_dir", text;
    /// How long a point may take, set-up included.
    timeout_s: f64 = "timeout", duration_s;
    /// Send-queue depth.
    tx_depth: u32 = "tx_depth", whole_u32;
    /// Messages before the first that counts.
    warmup: u64 = "warmup", whole;
    /// How near the mean over the repetitions is to be known, as a share of it, at 95 % confidence: a combination of the
    /// axes is measured again until it is (`-I` of netperf, which is given both halves together).
    within: f64 = "within", share;
}

/// Where the keys of [`Settings`] were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places(BTreeMap<&'static str, String>);

impl Settings {
    /// Adds an axis, or replaces its values.
    #[must_use]
    pub fn axis(mut self, axis: Axis) -> Self {
        self.axes.put(axis);
        self
    }

    /// Where `key` was set, if it was.
    pub(crate) fn place(&self, key: &str) -> Option<String> {
        self.places.0.get(key).cloned()
    }

    /// Lays `over` on top: what it sets wins.
    pub(super) fn overlay(&mut self, over: &Self) {
        // One length replaces the other.
        if over.iterations.is_some() || over.duration_s.is_some() {
            self.iterations = None;
            self.duration_s = None;
        }
        self.overlay_keys(over);
        over.axes.iter().for_each(|axis| self.axes.put(axis.clone()));
        self.places.0.extend(over.places.0.iter().map(|(key, place)| (*key, place.clone())));
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
        let place = entry.place.clone();
        let key = entry.key.clone();
        let table = table.to_owned();
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

/// A key whose value is read as one kind.
pub(super) struct Scalar<'a> {
    pub(super) entry: &'a Entry,
    pub(super) table: &'a str,
}

impl Scalar<'_> {
    fn value(&self) -> Option<&Value> {
        match &self.entry.node {
            Node::Leaf(value) => Some(value),
            Node::Table(_) | Node::Tables(_) => None,
        }
    }

    /// The value as a type reads it.
    fn read<T: DeserializeOwned>(&self, expected: &str) -> Result<T, Error> {
        let read = self.value().and_then(|value| T::deserialize(value).ok());
        read.ok_or_else(|| wrong_type(self.entry, self.table, expected))
    }

    fn flag(&self) -> Result<bool, Error> {
        self.read("true or false")
    }

    fn text(&self) -> Result<String, Error> {
        self.read("text")
    }

    pub(super) fn whole(&self) -> Result<u64, Error> {
        self.read("a whole number")
    }

    fn whole_u32(&self) -> Result<u32, Error> {
        u32::try_from(self.whole()?)
            .map_err(|_| wrong_type(self.entry, self.table, "a whole number below 2^32"))
    }

    fn wholes(&self) -> Result<Vec<u64>, Error> {
        match self.value() {
            Some(Value::Number(_)) => Ok(vec![self.read("a list of whole numbers")?]),
            _ => self.read("a list of whole numbers"),
        }
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
        Error::BadValue {
            place: self.entry.place.clone(),
            key: self.entry.key.clone(),
            table: self.table.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// The place of what no text set.
pub(super) const IN_CODE: &str = "the flags";
