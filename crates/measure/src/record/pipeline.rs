//! The part of a record about samples at a fixed rate.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Latency;

/// Facts about samples at a fixed rate, apart from their latencies. The counters of the point say
/// what became of the steps: `steps_missed` (the generator was late), `messages_not_transmitted`
/// (the endpoint had no room, which `messages_refused` counts, or no sample had arrived yet),
/// `messages_lost` (after the first sample that arrived), `messages_received`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Pipeline {
    /// The rate of due steps, in Hz; a timer of whole nanoseconds does not have every rate.
    pub rate_hz: f64,
    /// The rate of generated samples, in Hz, by `CLOCK_MONOTONIC` of the generator's host.
    pub achieved_hz: f64,
    /// Of the missed steps, those for which the generator only waited: it was preempted, or it was
    /// woken too late.
    pub missed_waiting: u64,
    /// Whether samples were sent inline, except those that asked for a completion; of verbs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<bool>,
    /// The timer alone, on the same CPU right before and right after the point.
    pub timer: TimerAlone,
    /// The files of samples, in rank order; empty where they are not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<SinkReport>,
}

/// A file of the samples of one rank: of rank 0 all that it generated, of rank 1 all that arrived,
/// including the warm-up.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SinkReport {
    /// The rank.
    pub rank: u32,
    /// `csv` or `villas.human`, as VILLASnode writes them.
    pub format: String,
    /// Where it is on that rank's host; absent where it was removed after it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The cost of handing over a sample to be written, for the thread that generates or receives
    /// it, in ns: a copy to memory.
    pub handing_over_ns: f64,
    /// Samples in it.
    pub samples: u64,
    /// Samples that could not be written to it.
    #[serde(default)]
    pub missing: u64,
    /// Bytes in it.
    pub bytes: u64,
    /// Time to write all samples into the system's cache after the last one, in ns.
    pub write_ns: u64,
    /// Why samples are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A timer that only waits.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TimerAlone {
    /// Steps that were due.
    pub steps: u64,
    /// Steps for which the loop was late.
    pub missed: u64,
    /// The rate of due steps, in Hz, by `CLOCK_MONOTONIC`.
    pub rate_hz: f64,
    /// Share of the time for which the loop, which never sleeps, was preempted by the scheduler,
    /// interrupts or a hypervisor. Absent where it sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_share: Option<f64>,
    /// How late steps were noticed: the timer's jitter.
    pub lateness: Latency,
}

/// Counters of the steps that were due and not missed.
const FATES: [&str; 3] = ["messages_received", "messages_not_transmitted", "messages_lost"];

/// The steps of a pipeline that counted, and how many of them were missed, by the counters of its
/// point; `None` for another pattern.
pub fn steps(counters: &BTreeMap<String, u64>) -> Option<[u64; 2]> {
    let missed = *counters.get("steps_missed")?;
    let others: u64 = FATES.iter().filter_map(|fate| counters.get(*fate)).sum();
    Some([missed + others, missed])
}
