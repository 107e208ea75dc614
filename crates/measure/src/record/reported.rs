//! The results of other tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of another tool that this program started. It is taken as the tool reports it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Reported {
    /// Its name and version, as it reports them.
    pub program: String,
    /// How its client was called.
    pub command: String,
    /// Mean of half a round trip, in ns; absent where it measured throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
}
