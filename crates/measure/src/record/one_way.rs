//! The part of a record about messages that were timed one way.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Latency;

/// Facts about messages that were timed one way, apart from their latencies.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct OneWay {
    /// How the stamps of the two ranks are compared.
    pub clocks: Clocks,
    /// The first messages of the point, the warm-up, which are in no other statistic: caches and
    /// address translations are cold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Latency>,
    /// All messages, including the first ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_first: Option<Latency>,
    /// Share of the messages with both stamps whose completion was seen before their reception;
    /// absent where no message asked for a completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_first_share: Option<f64>,
    /// Messages that seem to arrive before they were posted, by less than the bound of two clocks,
    /// or because readings of one clock on two CPUs differ slightly. They count as 0 ns.
    #[serde(default)]
    pub negative: u64,
    /// The preemptions that each rank saw while it polled, in rank order; absent for a rank that
    /// sleeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gaps>,
    /// The message with the largest latency, and the preemptions during it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Largest>,
    /// How many of the messages above a threshold in ns (those of `share_above`) were in flight
    /// while a rank was preempted for at least half of that time. A lower bound where preemptions
    /// were not kept ([`Gaps::kept`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub above_explained: BTreeMap<String, u64>,
}

/// How stamps of two ranks are compared.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Clocks {
    /// Both ranks read the same clock.
    One,
    /// Each rank has its own clock. Every one-way latency is right to within the bound.
    Two {
        /// By how much the clock of rank 1 is ahead of that of rank 0, in ns, in the middle of the
        /// point.
        offset_ns: f64,
        /// Largest error of the comparison at any time of the point, in ns.
        bound_ns: f64,
        /// Smallest and largest rate of the clock of rank 1, relative to that of rank 0, in parts
        /// per million above 1.
        drift_ppm: [f64; 2],
        /// Exchanges of messages that the comparison used.
        exchanges: u64,
    },
}

/// The preemptions of a rank: gaps between two readings of the clock in a loop that only polls, in
/// which the scheduler, the hypervisor or an interrupt had its CPU.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Gaps {
    /// Rank that was preempted.
    pub rank: u32,
    /// Shorter gaps are not counted, in ns.
    pub threshold_ns: u64,
    /// The number of gaps.
    pub count: u64,
    /// How many of them were kept, the first ones: only those explain latencies. Absent where all
    /// were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// The sum of all gaps, in ns.
    pub total_ns: u64,
    /// The longest gap, in ns; also where it is shorter than the threshold.
    pub longest_ns: u64,
}

/// The message with the largest latency.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Largest {
    /// Its number among the messages that count, from 0.
    pub message: u64,
    /// Its latency, in ns.
    pub ns: u64,
    /// For how much of that time each rank was preempted, in ns, by rank; absent for a rank that
    /// sleeps, and for one whose gaps were no longer kept by then ([`Gaps::kept`]).
    pub gaps_ns: BTreeMap<u32, u64>,
}
