//! Ranks that were started together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One start of all ranks. Memory, connections and placement differ between launches. Numbers of
/// one launch therefore resemble each other more than those of several (Hunold and Carpen-Amarie
/// 2016), so that launches are repeated.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Launch {
    /// Its number in the run, from 0, as in [`Point::launch`](super::Point::launch).
    pub number: u32,
    /// How the ranks were started and what they found: `launcher` (as it was given), `command` (the
    /// words before those of a rank, with the options of rdmascope), `launcher_version`,
    /// `variables` (those that were set for the ranks), `library` and `library_path`. Empty where
    /// no launcher of MPI started them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Its ranks, in rank order.
    pub ranks: Vec<LaunchedRank>,
}

/// A rank of a launch.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct LaunchedRank {
    /// Name of its host.
    pub hostname: String,
    /// Its process id on that host.
    pub pid: u32,
    /// CPUs that it was pinned to; absent when it was not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_cpus: Option<Vec<u32>>,
}
