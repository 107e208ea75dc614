//! What a record says of messages that were timed one way.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Latency;

/// What is known of messages that were timed one way, besides their latencies.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct OneWay {
    /// How the stamps of the two ends are compared.
    pub clocks: Clocks,
    /// The first messages of the point, which are in no other statistic: caches and translations
    /// are cold (V13 of the evaluations).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Latency>,
    /// All messages, the first ones too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_first: Option<Latency>,
    /// Share of the messages with both stamps whose completion was seen before their reception;
    /// absent where none asked for a completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_first_share: Option<f64>,
    /// Messages that seem to arrive before they were posted: by less than the bound of two clocks,
    /// or because readings of one on two CPUs do not quite agree. They count as 0 ns.
    #[serde(default)]
    pub negative: u64,
    /// The gaps that each end saw in its own time while it polled, in rank order; absent for an end
    /// that sleeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gaps>,
    /// The message that took longest, and what the ends did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Largest>,
    /// How many of the messages above a threshold in ns (those of `share_above`) were in flight
    /// while an end did not run for at least half of that time; at least so many where gaps were
    /// not kept ([`Gaps::kept`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub above_explained: BTreeMap<String, u64>,
}

/// How stamps of two ends are compared.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Clocks {
    /// Both ends read the same clock.
    One,
    /// Each has its own. Every one-way latency is right to within the bound.
    Two {
        /// What the clock of rank 1 is ahead of that of rank 0, in ns, in the middle of the point.
        offset_ns: f64,
        /// Largest error of the comparison at any time of the point, in ns.
        bound_ns: f64,
        /// Least and largest rate of the clock of rank 1, relative to that of rank 0, in parts per
        /// million above 1.
        drift_ppm: [f64; 2],
        /// Exchanges of messages that it was found from.
        exchanges: u64,
    },
}

/// Time that passed between two looks at the clock of a loop that does nothing but poll: the
/// scheduler, the hypervisor or an interrupt had its CPU.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Gaps {
    /// Rank that saw them.
    pub rank: u32,
    /// Shorter ones are not counted, in ns.
    pub threshold_ns: u64,
    /// How many there were.
    pub count: u64,
    /// How many of them were kept, the first ones: only those explain latencies. Absent where all
    /// were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// All of them together, in ns.
    pub total_ns: u64,
    /// The longest, in ns; also where it is shorter than the threshold.
    pub longest_ns: u64,
}

/// The message that took longest.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Largest {
    /// Its number among those that count, from 0.
    pub message: u64,
    /// Its latency, in ns.
    pub ns: u64,
    /// For how much of that each end did not run, in ns, by rank; absent for an end that sleeps,
    /// and for one whose gaps were no longer kept by then ([`Gaps::kept`]).
    pub gaps_ns: BTreeMap<u32, u64>,
}
