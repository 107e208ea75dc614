//! The record of a run: what is written to disk, and all that a report may use.
//!
//! A run is a directory:
//!
//! * `run.json`: one [`Run`], written before the first point and again (atomically) when the run
//!   ends;
//! * `points.jsonl`: one [`Point`] a line, appended and synced as each point ends, so that a run
//!   that is killed at any moment keeps every finished point (a torn last line is ignored by
//!   readers);
//! * `samples/POINT-WHAT.u64`: raw samples of a point when they are kept: of one end (its rank) or
//!   of one kind of latency (its name), in nanoseconds, 8 bytes little-endian each, in the order in
//!   which the messages were sent; e.g. in Python `numpy.fromfile("samples/000012-0.u64", "<u8")`.
//!
//! Times are nanoseconds, sizes bytes, rates per second. Every field that does not apply is absent,
//! never zero. Readers accept records of every schema version up to [`SCHEMA_VERSION`] and ignore
//! fields that they do not know.

mod axes;
mod calibration;
mod cost;
mod fairness;
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
use crate::figure::Figure;
use crate::finding::Finding;

pub use axes::Axes;
pub use calibration::Calibration;
pub use cost::Cost;
pub use fairness::Fairness;
pub use kinds::{LatencyKind, Scale};
pub use latency::{Histogram, Latency, Mavericks};
pub use launch::{Launch, LaunchedRank};
pub use one_way::{Clocks, Gaps, Largest, OneWay};
pub use pipeline::{Pipeline, SinkReport, TimerAlone, steps};
pub use reported::Reported;

/// Version of the record that this program writes.
pub const SCHEMA_VERSION: u32 = 1;

/// `run.json`: everything about a run but its points.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Run {
    /// [`SCHEMA_VERSION`] of the program that wrote the record.
    pub schema_version: u32,
    /// What wrote the record.
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
    /// What a paper found, with what it takes for this run to show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The device that was measured, as each rank's provider describes it.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// The host of each rank, in rank order. Ranks of one host share an entry's `hostname`.
    #[serde(default)]
    pub environments: Vec<Environment>,
    /// What the measurement itself costs, per rank.
    #[serde(default)]
    pub overheads: Vec<Overhead>,
    /// Every start of ranks by a launcher of MPI, and of those that the plan wants started anew
    /// (`launches`), in the order of their numbers; empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<Launch>,
    /// What the reader should know before trusting a number.
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
    /// What drives it, e.g. `softdev (software device in user space)`.
    pub provider: String,
    /// Attributes worth printing, in a stable order: firmware, link layer, state, MTU, LID, GID,
    /// limits ...
    pub attributes: BTreeMap<String, Value>,
}

/// The machine of one rank (X3 of the evaluations: the environment is part of the result).
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
    /// `limits`, ...; each a map of names to values. What could not be read is absent or says so in
    /// words.
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
    /// Bound on the error of `tick_hz`, in parts per million, from the calibration's own residuals.
    pub tick_error_ppm: f64,
    /// Median cost of one time stamp, in ns.
    pub stamp_ns: f64,
    /// Median cost of one turn of the empty measuring loop (stamp and store), in ns.
    pub empty_loop_ns: f64,
    /// Median cost of both stamps that the sender of a message takes which is timed one way, in ns;
    /// absent in records of programs that did not time so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_ns: Option<f64>,
    /// Whether the sample arrays are locked in memory; absent means yes, else the reason.
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
    /// `fan-out`, `one-way`, `open-loop`, `overhead`, `pairs`, `ping-pong`, `prtt`, `stream`.
    pub pattern: String,
    /// Values of every axis.
    pub axes: Axes,
    /// How the point ended.
    #[serde(flatten)]
    pub status: Status,
    /// Which repetition of the same combination, from 0.
    pub repetition: u32,
    /// The number of the launch whose ranks measured it, in [`Run::launches`]; absent where none of
    /// those did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<u32>,
    /// The model of a link that shaped the numbers, e.g. `4X FDR,latency=700ns`; absent where the
    /// link was taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_model: Option<String>,
    /// What became of what the point's environment asks of the machine, in rank order; empty where
    /// it asks nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Messages that were asked for (absent when the plan gives a duration).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Latency as rank 0 saw it, or where stamps of both ends make one, theirs: the headline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Every kind of latency of the point's messages, where they were timed in several ways:
    /// `latency` is the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Timed>,
    /// What else is known of messages that were timed one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// What else is known of samples at a fixed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// What another program said, where one measured the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// What one call costs, where calls were timed in batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What only points of its pattern have, by the name of the pattern; absent where that is
    /// nothing, or has a field above.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, Value>,
    /// Throughput of one direction: the headline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// How evenly the pairs of a point, or those that load the device, were served, where there are
    /// several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Sum of both directions; only for bidirectional points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_total: Option<Throughput>,
    /// What each end saw, in rank order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<End>,
    /// State of the machine's placement around the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Where more ranks ran on a host than it had CPUs for them: the scheduler is then part of
    /// every number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversubscribed: Option<Oversubscribed>,
    /// Why the numbers of this point should not be trusted, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstable: Option<String>,
    /// Counters of the pattern and the device, e.g. `packets`, `rnr_waits`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Wall time of the whole point, set-up included, in ns.
    pub wall_ns: u64,
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
    /// It was measured; the numbers are there.
    Measured,
    /// It cannot be measured here.
    NotMeasured {
        /// Why, in words for the reader.
        reason: String,
    },
    /// It could have been measured but something went wrong.
    Failed {
        /// What was tried, on which object, why it failed, what to do.
        error: String,
    },
}

/// What one end of a point saw.
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
    /// What the messages cost its CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// What its host counted while the point ran, whoever caused it: `interrupts`,
    /// `context_switches`, `softirqs.net_rx`, `cpu.busy_ns` of all CPUs (in ticks of the kernel,
    /// usually 10 ms), `interface.NAME.rx_dropped` and the like of the interfaces that the messages
    /// take, `Tcp.RetransSegs` and the like of its network namespace (proc_pid_net(5)), and of the
    /// InfiniBand port what has changed, as `port.NAME` in the driver's own units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host: BTreeMap<String, u64>,
    /// How far apart the ranks of its host began each message, where they began together and it led
    /// them; of loads, how far apart all began, at the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew: Option<Latency>,
    /// The library that carried its messages, as that calls itself; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// What that library carried them over, of `shm`, `tcp` and `verbs` (with the device and its
    /// port): as the library itself, its settings or the port's counters tell, or `transport not
    /// known`. Absent where no library chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// What a point cost the thread that measured it, from before its first message to after its last
/// (getrusage(2), `RUSAGE_THREAD`). A thread that polls is busy all the time, whatever a message
/// costs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Cpu {
    /// Wall time, in ns.
    pub wall_ns: u64,
    /// CPU time in user space, in ns. That in the kernel may be counted in ticks, as it was built;
    /// the sum of both is exact.
    pub user_ns: u64,
    /// CPU time in the kernel, in ns.
    pub system_ns: u64,
    /// Times that it slept.
    pub voluntary_switches: u64,
    /// Times that it was taken off its CPU.
    pub involuntary_switches: u64,
    /// Messages that went between it and its peers meanwhile, each counted once, those of the
    /// warm-up too: what the CPU time is divided by. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

impl Cpu {
    /// The same of so many messages.
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
    /// What is added up.
    pub direction: Direction,
}

impl Throughput {
    /// That of messages of so many bytes.
    #[must_use]
    pub fn of(messages_per_s: f64, message_bytes: u64, direction: Direction) -> Self {
        Self { bytes_per_s: messages_per_s * message_bytes as f64, messages_per_s, direction }
    }
}

/// What a throughput adds up.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// One direction of traffic that flows both ways.
    BiOne,
    /// The sum of both directions.
    BiTotal,
    /// All ranks that load the device beside what is timed, in the time that all were at it.
    Load,
    /// All pairs that send at the same time, one direction, in the time that all were at it.
    Pairs,
    /// Traffic that flows one way only.
    Uni,
}
