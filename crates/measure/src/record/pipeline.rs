//! What a record says of samples at a fixed rate.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Latency;

/// What is known of samples at a fixed rate, besides their latencies. What became of the steps
/// stands in the counters: `steps_missed` (the generator was not there), `messages_not_transmitted`
/// (the node had no room, which are `messages_refused`, or nothing had arrived yet),
/// `messages_lost` (after the first that arrived), `messages_received`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Pipeline {
    /// Steps that were due, in Hz; a timer of whole nanoseconds does not have every rate.
    pub rate_hz: f64,
    /// Samples that were generated, in Hz, by `CLOCK_MONOTONIC` of the generator's host.
    pub achieved_hz: f64,
    /// Of the steps that were missed, those for which the generator had nothing to do but to wait:
    /// its CPU was taken, or it was woken too late.
    pub missed_waiting: u64,
    /// Whether samples went into the work requests, but for those that asked for a completion; of
    /// verbs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<bool>,
    /// The same timer with nothing to do, on the same CPU right before and right after.
    pub timer: TimerAlone,
    /// What became of the files of samples, in rank order; none where they are not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<SinkReport>,
}

/// A file of the samples of one end: of rank 0 all that it generated, of rank 1 all that came,
/// those of the warm-up too.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SinkReport {
    /// Whose samples they are.
    pub rank: u32,
    /// `csv` or `villas.human`, as VILLASnode writes them.
    pub format: String,
    /// Where it is on that rank's host; absent where it was removed once it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What handing over a sample costs who generates or takes it, in ns: a copy to memory.
    pub handing_over_ns: f64,
    /// Samples in it.
    pub samples: u64,
    /// Samples that are not, because they could not be written.
    #[serde(default)]
    pub missing: u64,
    /// Bytes in it.
    pub bytes: u64,
    /// How long it took after the last sample to write them all, into the system's cache, in ns.
    pub write_ns: u64,
    /// Why samples are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A timer that nothing but its own loop waits for.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TimerAlone {
    /// Steps that were due.
    pub steps: u64,
    /// Those for which the loop was not there.
    pub missed: u64,
    /// Steps that were due, in Hz, by `CLOCK_MONOTONIC`.
    pub rate_hz: f64,
    /// Share of the time in which the loop did not run, though it never sleeps: what the scheduler,
    /// interrupts and a hypervisor took. Absent where it sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_share: Option<f64>,
    /// How late steps were noticed: the timer's jitter.
    pub lateness: Latency,
}

/// Where steps went that were due, beside those that nobody was there for.
const FATES: [&str; 3] = ["messages_received", "messages_not_transmitted", "messages_lost"];

/// The steps of a pipeline that counted, and how many of them were missed, by the counters of its
/// point; none of another pattern.
pub fn steps(counters: &BTreeMap<String, u64>) -> Option<[u64; 2]> {
    let missed = *counters.get("steps_missed")?;
    let others: u64 = FATES.iter().filter_map(|fate| counters.get(*fate)).sum();
    Some([missed + others, missed])
}
