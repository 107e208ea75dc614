//! The placement of the CPUs around a point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The raw cross-core latency of the CPUs that measured, before and after a point.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Calibration {
    /// Median one-way time of a cache line between the two ranks before the point, in ns.
    pub before_ns: f64,
    /// The same after the point, in ns.
    pub after_ns: f64,
    /// The best such time known of these two CPUs when the point ended, in ns: of earlier runs and
    /// of this one, this point included. Absent where nothing was compared. A point is `unstable`
    /// whose larger time is above 1.5 times it, or above 1.5 times the least of all points of its
    /// environment: those of later ones are not in the line of a point that had ended before, and
    /// readers mark it ([`crate::placement::mark`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_ns: Option<f64>,
}
