//! One point of a plan, resolved: what both ranks are told before they set it up.

mod carrier;
pub(crate) mod choice;
mod choices;
mod message;
pub(crate) mod tool;

use measure::conditions::Wanted;
use measure::record::Axes;
use serde::{Deserialize, Serialize};
use verbs::LinkModel;

pub use crate::endpoint::calls::Step;
pub use crate::pattern::id::PatternId as Pattern;
pub use crate::patterns::fan_out::choices::{Mesh, Notify};
pub use crate::patterns::one_way::choices::Stamp;
pub use crate::patterns::open_loop::choices::Load;
pub use crate::patterns::pairs::choices::Traffic;
pub use crate::patterns::pipeline::choices::{Filling, Pipeline, Signal, Sink, Timer, VALUES_MAX};
pub use carrier::{Carrier, Family, LinkLayer, Protocol, SocketSettings};
pub use choice::{Choice, Variant};
pub use choices::*;
pub use message::MessageSpec;
pub use tool::Tool;

/// Everything that a rank must know to measure a point. The plan resolves to a list of these.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// Number of the point in the run, from 0.
    pub id: u64,
    /// Name of the experiment in the plan.
    pub experiment: String,
    /// Which repetition of the same combination of axes, from 0.
    pub repetition: u32,
    /// What is done with the endpoints.
    pub pattern: Pattern,
    /// Which program measures it; absent for this one.
    pub tool: Option<Tool>,
    /// The messages, and how they are carried.
    pub message: MessageSpec,
    /// The n of 1:n: ranks that the first one talks to. 1 for every pattern of pairs.
    pub peers: u32,
    /// Pairs of ranks that do the same at the same time. 1 for every other pattern.
    pub pairs: u32,
    /// What pairs do.
    pub traffic: Traffic,
    /// Messages that are due in a second; absent where each waits for something else.
    pub rate_hz: Option<u64>,
    /// What the generator of a pipeline does; absent for every other pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// Ranks that load the device meanwhile. 0 for every pattern but `OpenLoop`.
    pub loaders: u32,
    /// Where their load goes.
    pub load: Load,
    /// Payload of a message of theirs, in bytes; at least 1.
    pub load_bytes: u64,
    /// Which ranks are connected beside those that talk to each other.
    pub mesh: Mesh,
    /// How it is learnt that bytes have come.
    pub notify: Notify,
    /// Which way a stream flows; `Uni` for every other pattern.
    pub direction: Flow,
    /// What the link is to be like; absent where it is taken as it is.
    #[serde(with = "link_text")]
    pub link: Option<LinkModel>,
    /// What is asked of the machine while it is measured.
    #[serde(default, skip_serializing_if = "Wanted::is_as_is")]
    pub conditions: Wanted,
    /// Messages that are posted without waiting for the peer, one way or in a round of `Prtt`; absent for all of them.
    pub burst: Option<u32>,
    /// Least time from one post to the next, in ns; of `Prtt` from the end of one to the begin of the next.
    pub pause_ns: u64,
    /// Which instant a message carries.
    pub stamp: Stamp,
    /// The call that is timed by itself; absent for every pattern but `Overhead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Calls between two stamps; 1 for every pattern but `Overhead`.
    pub batch: u32,
    /// How long to measure.
    pub length: Length,
    /// Messages before the first that counts.
    pub warmup: u64,
    /// Whether every sample is kept in the record (up to [`RAW_SAMPLES_MAX`]); a histogram otherwise.
    pub keep_samples: bool,
    /// Thresholds, in ns, for which the share of samples above is reported.
    pub share_above_ns: Vec<u64>,
    /// How long the whole point may take before it has failed, in seconds.
    pub timeout_s: f64,
    /// Values of every axis, as the record shows them.
    pub axes: Axes,
}

/// A model of a link as its text.
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

/// Above this many samples of one end, a point keeps a histogram instead: 32 MiB of locked memory per end.
pub const RAW_SAMPLES_MAX: u64 = 4 << 20;

/// Bytes of a stamp in a message.
pub const STAMP_BYTES: u64 = 8;

/// How long to measure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// For a time, in seconds.
    Duration(f64),
    /// For a number of messages (in each direction).
    Iterations(u64),
}
