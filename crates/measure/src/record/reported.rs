//! What other programs found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What another program found, which this one has started: its word is taken for it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Reported {
    /// Its name and version, as it says them.
    pub program: String,
    /// How its client was called.
    pub command: String,
    /// Mean of half a round trip, in ns; absent where it measured throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
}
