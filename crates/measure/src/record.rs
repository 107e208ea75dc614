//! The record of a run: what is written to disk. A report uses nothing else.
//!
//! A run is a directory:
//!
//! * `run.json`: one [`Run`], written before the first point and again (atomically) when the run
//!   ends;
//! * `points.jsonl`: one [`Point`] a line, appended and synced as each point ends. A run that is
//!   killed at any moment keeps every finished point; readers ignore a torn last line;
//! * `samples/POINT-WHAT.u64`: raw samples of a point when they are kept: of one rank (its number)
//!   or of one kind of latency (its name), in nanoseconds, 8 bytes little-endian each, in the order
//!   in which the messages were sent; e.g. in Python
//!   `numpy.fromfile("samples/000012-0.u64", "<u8")`.
//!
//! Times are nanoseconds, sizes bytes, rates per second. Every field that does not apply is absent,
//! never zero. Readers accept records of every schema version up to [`SCHEMA_VERSION`] and ignore
//! fields that they do not know.

mod axes;
mod calibration;
mod cost;
mod fairness;
mod fleet;
mod kinds;
mod latency;
mod launch;
mod one_way;
mod pipeline;
mod reported;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conditions::Condition;
use crate::expectation::Expectation;
use crate::figure::Figure;
use crate::finding::Finding;

pub use axes::Axes;
pub use calibration::Calibration;
pub use cost::Cost;
pub use fairness::Fairness;
pub use fleet::{Fleet, FleetMember, FleetQuantity, FleetTimeLeft, InFleet};
pub use kinds::{LatencyKind, Scale};
pub use latency::{Histogram, Latency, Mavericks};
pub use launch::{Launch, LaunchedRank};
pub use one_way::{Clocks, Gaps, Largest, OneWay};
pub use pipeline::{Pipeline, SinkReport, TimerAlone, steps};
pub use reported::Reported;

/// Version of the record that this program writes.
pub const SCHEMA_VERSION: u32 = 1;

impl Run {
    /// Whether a rank measured the software device. Its provider's name begins with `softdev`.
    #[must_use]
    pub fn is_of_softdev(&self) -> bool {
        self.devices.iter().any(|device| device.provider.starts_with("softdev"))
    }
}

/// `run.json`: everything about a run but its points.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Run {
    /// Version of the record's format.
    pub schema_version: u32,
    /// The program that wrote the record.
    pub program: Program,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// When the run started, RFC 3339, UTC.
    pub started: String,
    /// When the run ended; absent while it runs and after a kill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Heading of the report, from the plan.
    pub title: String,
    /// A paragraph on what the run is for, from the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Whether this was the quick form of the plan.
    #[serde(default)]
    pub quick: bool,
    /// The resolved plan: every default filled in, every axis expanded.
    pub plan: Value,
    /// The number of points that the plan asks for, repetitions included.
    pub points_planned: u64,
    /// The figures of the plan, with the published numbers filled in.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The findings of papers, each with the condition for this run to show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Bounds that the plan or `--expect` sets on numbers of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// The device that was measured, as each rank's provider describes it.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// The host of each rank, in rank order. Ranks of one host share an entry's `hostname`.
    #[serde(default)]
    pub environments: Vec<Environment>,
    /// What the measurement itself costs, per rank.
    #[serde(default)]
    pub overheads: Vec<Overhead>,
    /// Every start of ranks by a launcher of MPI, and of ranks that the plan starts anew
    /// (`launches`), in the order of their numbers; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<Launch>,
    /// The fleet that was examined; absent in other runs. The run then has an environment for each
    /// member, whose rank is the index of the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Fleet>,
    /// What limits all numbers of the run.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The program that wrote a record.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Program {
    /// `rdmascope`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A device as its provider describes it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Device {
    /// Rank that opened it.
    pub rank: u32,
    /// e.g. `softdev0`, `mlx5_0`.
    pub name: String,
    /// The driver behind it, e.g. `softdev (software device in user space)`.
    pub provider: String,
    /// Attributes worth printing, in a stable order: firmware, link layer, state, MTU, LID, GID,
    /// limits ...
    pub attributes: BTreeMap<String, Value>,
}

/// The machine of one rank.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Environment {
    /// Rank that read it.
    pub rank: u32,
    /// Name of the host.
    pub hostname: String,
    /// CPUs that the rank was pinned to; absent when it was not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_cpus: Option<Vec<u32>>,
    /// Everything else, grouped for print: `cpu`, `memory`, `kernel`, `power`, `isolation`,
    /// `limits`, ...; each a map of names to values. What could not be read is absent, or its value
    /// says so in words.
    pub facts: BTreeMap<String, BTreeMap<String, String>>,
}

/// What the measurement itself costs on one rank.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Overhead {
    /// Rank that measured it.
    pub rank: u32,
    /// `tsc` or `clock_monotonic`.
    pub clock: String,
    /// Frequency of the clock's ticks, in Hz.
    pub tick_hz: f64,
    /// Bound on the error of `tick_hz`, in parts per million, from the residuals of the
    /// calibration.
    pub tick_error_ppm: f64,
    /// Median cost of one time stamp, in ns.
    pub stamp_ns: f64,
    /// Median cost of one turn of the empty measuring loop (stamp and store), in ns.
    pub empty_loop_ns: f64,
    /// Median cost of both stamps that a sender takes for a one-way latency, in ns; absent in
    /// records of programs that did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_ns: Option<f64>,
    /// Why the sample arrays are not locked in memory; absent where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_locked: Option<String>,
}

/// One line of `points.jsonl`: one repetition of one combination of the axes.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Point {
    /// Number of the point in the run, from 0; names its sample files.
    pub id: u64,
    /// Name of the experiment in the plan.
    pub experiment: String,
    /// Name of the pattern in the plan, e.g. `ping-pong`.
    pub pattern: String,
    /// Values of every axis.
    pub axes: Axes,
    /// How the point ended.
    #[serde(flatten)]
    pub status: Status,
    /// Which repetition of the same combination, from 0.
    pub repetition: u32,
    /// The number of the launch whose ranks measured it, in [`Run::launches`]; absent where no
    /// launch did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<u32>,
    /// Where in the examination of a fleet it was measured; absent in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<InFleet>,
    /// The link model that the software device kept to, e.g. `4X FDR,latency=700ns`; absent without
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_model: Option<String>,
    /// What became of each technique of the point's environment, in rank order; empty where the
    /// environment asks for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Messages that were asked for (absent when the plan gives a duration).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// The main latency: as rank 0 timed it, or from stamps of both ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Every kind of latency of the point's messages, where they were timed in several ways. The
    /// first of them is `latency`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Timed>,
    /// More facts about messages that were timed one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// More facts about samples at a fixed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// The result of another tool, where one measured the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// The cost of one call, where calls were timed in batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What only points of its pattern have, by the name of the pattern; absent where the fields
    /// above suffice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, Value>,
    /// Throughput of one direction: the main number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// How evenly the pairs of a point, or the loaders of a device, were served, where there are
    /// several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Sum of both directions; only for bidirectional points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_total: Option<Throughput>,
    /// The results of each rank, in rank order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<End>,
    /// The core-to-core latency around the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Present where more ranks ran on a host than it had CPUs for them: every number then includes
    /// scheduling delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversubscribed: Option<Oversubscribed>,
    /// Whether a signal ended the point early: its numbers are of the messages until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Why the point is unstable; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstable: Option<String>,
    /// Counters of the pattern and the device, e.g. `packets_sent`, `rnr_waits`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Wall time of the whole point, set-up included, in ns.
    pub wall_ns: u64,
}

/// The reason of a point that a signal ended early, if it has no other.
pub const CUT: &str = "a signal ended the point early";

impl Run {
    /// The host of the first rank; empty if the record does not name it.
    pub fn host(&self) -> &str {
        self.environments.first().map_or("", |environment| &environment.hostname)
    }
}

impl Point {
    /// Reads a point from an object of JSON. It is read as the record is, from text: the code that
    /// reads it from values would be a second copy of all types of a point.
    ///
    /// # Errors
    ///
    /// If the object is no point.
    pub fn of_json(object: &Value) -> serde_json::Result<Self> {
        serde_json::from_slice(&serde_json::to_vec(object)?)
    }

    /// Why the number may be wrong: what disturbed the point. That a signal ended the point early
    /// is no disturbance: `cut` says so.
    pub fn disturbance(&self) -> Option<&str> {
        self.unstable.as_deref().filter(|reason| !(self.cut && *reason == CUT))
    }
}

/// Ranks of a point and the CPUs that they share.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Oversubscribed {
    /// Ranks of the point on the host.
    pub ranks: u32,
    /// CPUs of the host that any of them may use.
    pub cpus: u32,
}

/// How a point ended.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Status {
    /// It was measured and has numbers.
    Measured,
    /// It cannot be measured here.
    NotMeasured {
        /// Why, in words for the reader.
        reason: String,
    },
    /// It could be measured, but went wrong.
    Failed {
        /// What failed, on what, why, and what to do.
        error: String,
    },
}

/// The results of one rank of a point.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct End {
    /// Its rank.
    pub rank: u32,
    /// Latency of the messages that it timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Throughput of the messages that it received (or, where it only sends, that were
    /// acknowledged; at a set rate, those that it posted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Raw samples in nanoseconds, as a path in the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<String>,
    /// The distribution as a histogram, where raw samples were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The CPU time that the messages took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// What its host counted while the point ran, for all of its processes: `interrupts`,
    /// `context_switches`, `softirqs.net_rx`, `cpu.busy_ns` of all CPUs (in ticks of the kernel,
    /// usually 10 ms), `interface.NAME.rx_dropped` and others of the interfaces that carry the
    /// messages, `Tcp.RetransSegs` and others of its network namespace (proc_pid_net(5)), and the
    /// counters of the InfiniBand port that changed, as `port.NAME` in the driver's own units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host: BTreeMap<String, u64>,
    /// The skew with which the ranks of its host began each message, where they began together and
    /// this rank led them; of loads, the skew with which all began, at the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew: Option<Latency>,
    /// The library that carried its messages, by the name that it reports; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// The transport that the library used: `shm`, `tcp` or `verbs` (with the device and its
    /// port), as the library, its settings or the port's counters show, or `transport not known`.
    /// Absent where no library chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// The CPU time of the thread that measured a point, from before its first message to after its
/// last (getrusage(2), `RUSAGE_THREAD`). A thread that polls is always busy, whatever a message
/// costs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Cpu {
    /// Wall time, in ns.
    pub wall_ns: u64,
    /// CPU time in user space, in ns. A kernel may count it in ticks, depending on how it was
    /// built; the sum of both times is exact.
    pub user_ns: u64,
    /// CPU time in the kernel, in ns.
    pub system_ns: u64,
    /// Times that it slept.
    pub voluntary_switches: u64,
    /// Times that it was preempted.
    pub involuntary_switches: u64,
    /// Messages between it and its peers in that time, each counted once, including the warm-up:
    /// the CPU time is divided by them. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

impl Cpu {
    /// The same, with a number of messages.
    #[must_use]
    pub fn of(self, messages: u64) -> Self {
        Self { messages: Some(messages), ..self }
    }
}

/// One kind of latency of the messages of a point.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Timed {
    /// Its statistics.
    pub latency: Latency,
    /// Raw samples in nanoseconds, as a path in the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<String>,
    /// The distribution as a histogram, where raw samples were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// Throughput of a set of messages.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Throughput {
    /// Payload bytes per second.
    pub bytes_per_s: f64,
    /// Messages per second.
    pub messages_per_s: f64,
    /// The messages that are added up.
    pub direction: Direction,
}

impl Throughput {
    /// The throughput of messages of `message_bytes` bytes.
    #[must_use]
    pub fn of(messages_per_s: f64, message_bytes: u64, direction: Direction) -> Self {
        Self { bytes_per_s: messages_per_s * message_bytes as f64, messages_per_s, direction }
    }
}

/// The messages that a throughput adds up.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// One direction of traffic that flows both ways.
    BiOne,
    /// The sum of both directions.
    BiTotal,
    /// All ranks that load the device beside the timed messages, while all of them send.
    Load,
    /// All pairs that send at the same time, one direction, while all pairs send.
    Pairs,
    /// Traffic that flows one way only.
    Uni,
}
