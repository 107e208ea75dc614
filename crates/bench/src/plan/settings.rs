//! The settings of an experiment as a plan, `quick`, `--set` or a flag gives them: all optional,
//! one laid over another.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keys::Key;
use super::text::Node;
use crate::Error;
use crate::axis::{self, Axis, AxisList, Fault};

/// One definition of each key of `[[experiment]]` that a layer may set, axes apart: its field, its
/// name and how it is read.
macro_rules! settings {
    ($($(#[doc = $documentation:literal])+ $field:ident: $value:ty = $key:literal, $read:ident;)+) => {
        /// What is set of an experiment. What is not set falls back to the layer below and then to
        /// a default (`plan/defaults.rs`).
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
            /// The keys of `[[experiment]]` that a layer may set, axes apart.
            pub const KEYS: [&'static str; [$($key),+].len()] = [$($key),+];

            /// Each of them with how it is read and what it is for, for the reference of plans.
            pub(crate) const DOCUMENTED: [(&'static str, &'static str, &'static str); Self::KEYS.len()] =
                [$(($key, stringify!($read), concat!($($documentation),+))),+];

            /// Lays the keys of `over` on top: what it sets wins.
            fn overlay_keys(&mut self, over: &Self) {
                $(if over.$field.is_some() { self.$field.clone_from(&over.$field); })+
            }

            /// Sets what one key of a plan says.
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
    /// Bound on the payload of a point: large messages get fewer iterations (at least 10, or those
    /// asked for).
    bytes_max: u64 = "bytes_max", size;
    /// Time that a point is measured for. Excludes `iterations`.
    duration_s: f64 = "duration", duration_s;
    /// Messages of a point (in each direction). Excludes `duration_s`.
    iterations: u64 = "iterations", whole;
    /// Whether the raw samples stay in the record.
    keep_samples: bool = "keep_samples", flag;
    /// How often the ranks are started anew, each time to measure all points of the experiment.
    launches: u32 = "launches", whole_u32;
    /// How often the whole product of the axes is measured, in each launch; with `within` how often
    /// at least.
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
    /// How near the mean over the repetitions is to be known, as a share of it, at 95 % confidence:
    /// a combination of the axes is measured again until it is (`-I` of netperf, which is given
    /// both halves together).
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

/// The place of what no text set.
pub(super) const IN_CODE: &str = "the flags";
