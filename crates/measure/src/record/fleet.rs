//! A fleet: many hosts that were measured in pairs, to find the slow ones.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fleet of a run, how it was examined, and what that found.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Fleet {
    /// The members, which points name by their index.
    pub members: Vec<FleetMember>,
    /// The quantities of a pair by which members are compared.
    pub quantities: Vec<FleetQuantity>,
    /// Which pairs were measured at the same time: `all-pairs`, `isolated`, `ring`, `random`,
    /// `bisection`, `one-to-all` or `all-to-one`.
    pub schedule: String,
    /// How often the schedule was measured.
    pub passes: u32,
    /// Rounds of a schedule that draws pairs at random.
    pub rounds: u32,
    /// Whether the rails of the hosts do not reach each other, so that each was measured by itself;
    /// absent if they do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub separate_rails: bool,
    /// The most pairs that were measured at the same time; absent where the schedule sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// The time for the fleet from its first round on, in s; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// The rounds of the schedule that were measured in their part of the time (`time_s`); absent
    /// while they are measured, and where time did not end them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_in_time: Option<u32>,
    /// The part of the time (`time_s`) that was left for suspects; absent until the schedule has
    /// ended, and without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left: Option<FleetTimeLeft>,
    /// The least deficit that is said, as a share: 0.05 for 5 %.
    pub least: f64,
    /// The natural difference between healthy hosts, as a share.
    pub tolerance: f64,
    /// The share of healthy fleets in which something may be named.
    pub alpha: f64,
    /// For schedules that draw pairs at random.
    pub seed: u64,
    /// The directory of the earlier fleet that the run is compared with; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Why the fleet went on without members, by their index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<u32, String>,
    /// What the examination found, as the program that measured the fleet put it; absent until the
    /// examination has ended. It follows from the points, but a later version may ask for other
    /// measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examined: Option<Value>,
}

/// A member of a fleet: a host, or one device of a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct FleetMember {
    /// Its name: the host's, followed by `:` and the device's where the host has several.
    pub name: String,
    /// The name of the host, as it was given.
    pub host: String,
    /// The device that was asked for; absent where the member chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What it has in common with other members, by the kind of group: `group` for what the list of
    /// hosts says (such as a leaf switch), `rail` for the name of the device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
}

/// The time that is left for the suspects of a fleet, in rounds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct FleetTimeLeft {
    /// About the number of rounds that fit.
    pub rounds: u32,
    /// The number of rounds that would fit into the time before a visit begins.
    pub before_visit: u32,
}

/// A quantity by which the members of a fleet are compared.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct FleetQuantity {
    /// `latency` (the median of a point, in ns) or `throughput` (of a point, in bytes/s). Points
    /// of the experiment of this name have it.
    pub name: String,
    /// The value that is expected at least: of a latency, the largest one. Absent where members are
    /// compared with each other alone, or where `expected_of` has one for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// The value that is expected of each member, where it is not the same of all. Of a pair, the
    /// easier one of both is expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected_of: Vec<f64>,
    /// The cells of the baseline: the index of the sender and of the receiver in this fleet, and
    /// the value that the earlier fleet leads to expect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<(u32, u32, f64)>,
}

/// Where in the examination of a fleet a point was measured.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct InFleet {
    /// The number of the round, from 0: all pairs of a round are measured at the same time.
    pub round: u64,
    /// The members, in rank order.
    pub members: Vec<u32>,
}
