//! The settings of an experiment, from a plan, its quick form, `--set` or a flag. All are optional,
//! and one layer overrides another.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keys::Key;
use super::text::Node;
use crate::Error;
use crate::axis::{self, Axis, AxisList, Fault};

/// Defines each key of `[[experiment]]` that a layer may set, without the axes: its field, its name
/// and how it is read.
macro_rules! settings {
    ($($(#[doc = $documentation:literal])+ $field:ident: $value:ty = $key:literal, $read:ident;)+) => {
        /// The settings of an experiment. An absent setting falls back to the layer below, and then
        /// to a default (`plan/defaults.rs`).
        ///
        /// Build one in code with the fields: `Settings { iterations: Some(100),
        /// ..Settings::default() }`.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings {
            $($(#[doc = $documentation])+ pub $field: Option<$value>,)+
            /// The axes in the order in which they are walked.
            pub axes: AxisList,
            /// Where each key was set, for errors. Filled in when a plan is read; leave it at its
            /// default in code.
            pub places: Places,
        }

        impl Settings {
            /// The keys of `[[experiment]]` that a layer may set, without the axes.
            pub const KEYS: [&'static str; [$($key),+].len()] = [$($key),+];

            /// Each key, how it is read, and its documentation, for the plan reference.
            pub(crate) const DOCUMENTED: [(&'static str, &'static str, &'static str); Self::KEYS.len()] =
                [$(($key, stringify!($read), concat!($($documentation),+))),+];

            /// Overrides the keys that `over` sets.
            fn overlay_keys(&mut self, over: &Self) {
                $(if over.$field.is_some() { self.$field.clone_from(&over.$field); })+
            }

            /// Returns what is set, by key, as a plan writes it; without the axes.
            pub(super) fn written(&self) -> Vec<(&'static str, Value)> {
                let mut keys = Vec::new();
                $(if let Some(value) = &self.$field {
                    keys.push(($key, as_written(stringify!($read), Value::from(value.clone()))));
                })+
                keys
            }

            /// Sets one key of a plan.
            pub(super) fn put(&mut self, key: Key<'_>) -> Result<(), Error> {
                let name = match key.entry.key.as_str() {
                    $($key => {
                        self.$field = Some(key.$read()?);
                        $key
                    })+
                    _ => return Err(key.unknown(&Self::KEYS)),
                };
                self.places.0.insert(name, key.entry.place.clone());
                Ok(())
            }
        }
    };
}

settings! {
    /// Bound on the payload of a point: large messages get fewer iterations, but at least 10, or
    /// `iterations` if that is less.
    bytes_max: u64 = "bytes_max", size;
    /// Time that a point is measured for. Excludes `iterations`.
    duration_s: f64 = "duration", duration_s;
    /// Messages of a point (in each direction). Excludes `duration`.
    iterations: u64 = "iterations", count;
    /// Whether the record keeps every sample.
    keep_samples: bool = "keep_samples", flag;
    /// How often the ranks are started again, each time to measure all points of the experiment.
    launches: u32 = "launches", count_u32;
    /// How often each launch measures all combinations of the axes; with `within` the least number.
    repetitions: u32 = "repetitions", count_u32;
    /// With `within`, the largest number of repetitions.
    repetitions_max: u32 = "repetitions_max", count_u32;
    /// Depth of the receive queue.
    rx_depth: u32 = "rx_depth", count_u32;
    /// Thresholds, as numbers of ns or as durations; the share of samples above each is reported.
    share_above_ns: Vec<u64> = "share_above_ns", times_ns;
    /// Directory for files of samples, on the host of each rank of a pipeline.
    sink_dir: String = "sink_dir", text;
    /// How long a point may take, set-up included.
    timeout_s: f64 = "timeout", duration_s;
    /// Depth of the send queue.
    tx_depth: u32 = "tx_depth", count_u32;
    /// Messages before the first that counts.
    warmup: u64 = "warmup", count;
    /// Half width of the 95 % confidence interval of the mean over the repetitions, as a share of
    /// the mean: a combination of the axes is measured again until its interval is as narrow
    /// (netperf's `-I` gives the whole width).
    within: f64 = "within", share;
}

/// A value as the text that its key is read from.
fn as_written(read: &str, value: Value) -> Value {
    match (read, value.as_f64()) {
        ("duration_s", Some(seconds)) => format!("{seconds}s").into(),
        // Without the digits that the product adds.
        ("share", Some(share)) => format!("{} %", (share * 1e11).round() / 1e9).into(),
        _ => value,
    }
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

    /// The place where `key` was set, if it was set.
    pub(crate) fn place(&self, key: &str) -> Option<String> {
        self.places.0.get(key).cloned()
    }

    /// Overrides the settings that `over` sets.
    pub(super) fn overlay(&mut self, over: &Self) {
        // A length in `over` replaces both kinds of length.
        if over.iterations.is_some() || over.duration_s.is_some() {
            self.iterations = None;
            self.duration_s = None;
        }
        self.overlay_keys(over);
        over.axes.iter().for_each(|axis| self.axes.put(axis.clone()));
        self.places.0.extend(over.places.0.iter().map(|(key, place)| (*key, place.clone())));
    }

    /// Sets one axis of a plan.
    pub(super) fn put_axis(&mut self, key: Key<'_>) -> Result<(), Error> {
        let Some(row) = axis::find(&key.entry.key) else {
            return Err(Key { table: &format!("the axes of {}", key.table), ..key }.unknown(&axis::NAMES));
        };
        let values = match &key.entry.node {
            Node::Leaf(Value::Array(items)) => row.read(items),
            Node::Leaf(item) => row.read(std::slice::from_ref(item)),
            Node::Table(_) | Node::Tables(_) => return Err(key.wrong_type(&row.expected())),
        };
        let values = values.map_err(|fault| match fault {
            Fault::Unreadable(reason) => key.unreadable(reason),
            Fault::Unknown { value, known } => key.unknown_value(&value, &known),
            Fault::WrongType(item) => key.wrong_item(&row.expected(), &Node::Leaf(item).in_words()),
        })?;
        self.places.0.insert(row.name, key.entry.place.clone());
        self.axes.put(Axis::read(row, values));
        Ok(())
    }
}

/// The place of settings that no text set, in [`Error::Plan`].
pub const IN_CODE: &str = "the flags";
