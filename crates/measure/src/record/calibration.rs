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
}
