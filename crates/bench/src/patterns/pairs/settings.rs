//! What a plan asks of several pairs beside their messages.

use super::choices::Traffic;
use crate::axis::{self, AxisRow};
use crate::point::PointSpec;

/// Axes of this pattern that not all have.
pub(super) const AXES: &[&AxisRow] = &[axis::PAIRS.row, axis::TRAFFIC.row];
/// One pair, beside which every other number of them stands.
pub(super) const PAIRS: u32 = 1;

/// What a point asks.
pub(super) struct Settings {
    /// Pairs of ranks that do the same at the same time.
    pub(super) pairs: u32,
    /// What they do.
    pub(super) traffic: Traffic,
}

impl Settings {
    pub(super) fn of(spec: &PointSpec) -> Self {
        Self {
            pairs: axis::PAIRS.at(&spec.axes).unwrap_or(PAIRS),
            traffic: axis::TRAFFIC.at(&spec.axes).unwrap_or(Traffic::PingPong),
        }
    }
}
