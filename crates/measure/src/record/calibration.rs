//! The core-to-core latency around a point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The raw core-to-core latency of the CPUs that measured, before and after a point.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Calibration {
    /// Median time in which a cache line goes from one rank to the other, before the point, in ns.
    pub before_ns: f64,
    /// Median time in which a cache line goes from one rank to the other, after the point, in ns.
    pub after_ns: f64,
    /// The best core-to-core latency known of these two CPUs when the point ended, in ns: of
    /// earlier runs and of this one, this point included. Absent where nothing was compared. A
    /// point is `unstable` if its larger latency is above 3 times this value, or above 3 times
    /// the smallest of all points of its environment. The line of a point does not include later
    /// points, so that readers mark it (docs/record.md).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_ns: Option<f64>,
}
