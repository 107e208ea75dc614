//! What an agent and its guard say to each other.

use measure::conditions::{Condition, Wanted};
use serde::{Deserialize, Serialize};

use crate::place::Ranks;

/// What an agent asks, a line of JSON each.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Request {
    /// Apply what concerns the host.
    Apply {
        wanted: Wanted,
        ranks: Ranks,
        /// The agent.
        process: u32,
    },
    /// Say which of what was applied is so no more.
    Verify,
    /// Take it back.
    Release,
    /// Take back what other guards of the agent held that are dead.
    Restore {
        /// Their processes.
        dead: Vec<u32>,
    },
}

/// What the guard answers.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) conditions: Vec<Condition>,
    /// What the user has to know of it: what could not be taken back, and why.
    pub(crate) said: Vec<String>,
}
