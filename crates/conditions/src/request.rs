//! Messages between an agent and its guard.

use measure::conditions::{Condition, Wanted};
use serde::{Deserialize, Serialize};

use crate::place::Ranks;

/// A request of an agent, one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Request {
    /// Apply the host-wide techniques.
    Apply {
        wanted: Wanted,
        ranks: Ranks,
        /// Process ID of the agent.
        process: u32,
    },
    /// Report which applied techniques are no longer in force.
    Verify,
    /// Revert the changes.
    Release,
    /// Revert changes of earlier guards of this agent that are dead.
    Restore {
        /// Process IDs of the dead guards.
        dead: Vec<u32>,
    },
}

/// The guard's answer.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) conditions: Vec<Condition>,
    /// Messages for the user: changes that could not be reverted, and why.
    pub(crate) said: Vec<String>,
}
