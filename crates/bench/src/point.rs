//! One resolved point of a plan: what the ranks are told before they set it up.

mod carrier;
pub(crate) mod choice;
mod choices;
mod injection;
mod message;
pub(crate) mod tool;
mod world;

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use measure::conditions::Wanted;
use measure::record::Axes;
use serde::{Deserialize, Serialize};
use verbs::LinkModel;

use crate::application::ApplicationSpec;
use crate::axis;
pub use crate::endpoint::calls::Step;
pub use crate::endpoint::collectives::{Algorithm, Blocks, Collective, CollectiveCall, Element, Reduction};
pub use crate::mpi_endpoint::choices::{MpiCall, MpiMap, MpiOperation, MpiSync, MpiTransport};
pub use crate::pattern::id::PatternId as Pattern;
pub use crate::pattern::joint::Start;
pub use crate::patterns::fan_out::choices::{Mesh, Notify};
pub use crate::patterns::halo::choices::{Grid, HaloMethod};
pub use crate::patterns::one_way::choices::Stamp;
pub use crate::patterns::open_loop::choices::Load;
pub use crate::patterns::pairs::choices::Traffic;
pub use crate::patterns::pipeline::choices::{Filling, Signal, Sink, Timer, VALUES_MAX, sample_bytes};
pub use crate::patterns::transfer::choices::Place;
pub use crate::transfer::{Checksum, News, Telling, TransferSpec};
pub use carrier::{Carrier, Family, LinkLayer, Protocol, SocketSettings};
pub use choice::{Choice, Variant};
pub use choices::*;
pub use injection::Injection;
pub use message::{MessageSpec, MpiSettings};
pub use tool::Tool;
pub use world::World;

/// Everything that a rank must know to measure a point. The plan resolves to a list of these.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// Number of the point in the run, from 0.
    pub id: u64,
    /// Name of the experiment in the plan.
    pub experiment: String,
    /// Number of the repetition of the same combination of axes, from 0.
    pub repetition: u32,
    /// Number of the launch of its experiment that measures it, from 0; absent if any suitable
    /// ranks may measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<u32>,
    /// How the ranks exchange messages.
    pub pattern: Pattern,
    /// The program that measures it; absent for rdmascope.
    pub tool: Option<Tool>,
    /// The application that is run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Box<ApplicationSpec>>,
    /// The directory trees that are sent, and their destination; absent if files are made for the
    /// point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Box<TransferSpec>>,
    /// The messages, and how they are carried.
    pub message: MessageSpec,
    /// The link model; absent for none.
    #[serde(with = "link_text")]
    pub link: Option<LinkModel>,
    /// The environment that is applied while it is measured.
    #[serde(default, skip_serializing_if = "Wanted::is_as_is")]
    pub conditions: Wanted,
    /// How long to measure.
    pub length: Length,
    /// Messages before the first that counts.
    pub warmup: u64,
    /// Whether every sample is kept in the record (up to [`RAW_SAMPLES_MAX`]). Otherwise a
    /// histogram is kept.
    pub keep_samples: bool,
    /// Thresholds, in ns, for which the share of samples above is reported.
    pub share_above_ns: Vec<u64>,
    /// How long the whole point may take before it fails, in seconds.
    pub timeout_s: f64,
    /// The directory on each rank's host for files that the pattern keeps. Without one, the files
    /// are removed after they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink_dir: Option<String>,
    /// Values of every axis, as the record shows them. A pattern reads the values of its axes by
    /// their keys.
    #[serde(deserialize_with = "axis::of_point")]
    pub axes: Axes,
}

impl PointSpec {
    /// Whether it is a measurement. Otherwise it transfers files of a user.
    pub fn is_measurement(&self) -> bool {
        self.transfer.is_none()
    }
}

/// Serialises a link model as its text.
mod link_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use verbs::LinkModel;

    #[allow(clippy::ref_option, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(link: &Option<LinkModel>, to: S) -> Result<S::Ok, S::Error> {
        link.map(|link| link.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LinkModel>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Above this many samples of one rank, a point keeps a histogram instead. They take 32 MiB of
/// locked memory per rank.
pub const RAW_SAMPLES_MAX: u64 = 4 << 20;

/// How long to measure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// For a time, in seconds.
    Duration(f64),
    /// For a number of messages (in each direction).
    Iterations(u64),
}

impl Length {
    /// The time in seconds, if it is a time.
    pub fn duration_s(self) -> Option<f64> {
        if let Self::Duration(duration_s) = self { Some(duration_s) } else { None }
    }

    /// The number of messages, if it is a number.
    pub(crate) fn iterations(self) -> Option<u64> {
        if let Self::Iterations(iterations) = self { Some(iterations) } else { None }
    }

    /// The number of messages, and the time stamp, at which a measurement that started at `begin`
    /// ends. The one that is not limited is `u64::MAX`.
    pub(crate) fn end(self, clock: Clock, begin: Ticks) -> (u64, u64) {
        match self {
            Self::Iterations(messages) => (messages, u64::MAX),
            Self::Duration(seconds) => {
                (u64::MAX, begin.0.saturating_add(clock.ticks(Duration::from_secs_f64(seconds))))
            }
        }
    }
}
