//! What a plan asks of parametrised round trips.

use std::time::Duration;

use super::rounds::Burst;
use crate::axis::{self, AxisRow};
use crate::pattern::defaults::BURST;
use crate::point::PointSpec;

/// Axes of this pattern that not all have.
pub(super) const AXES: &[&AxisRow] = &[axis::BURST.row, axis::PAUSE_NS.row];

impl Burst {
    /// What a point asks.
    pub(super) fn of(spec: &PointSpec) -> Self {
        Self {
            messages: axis::BURST.at(&spec.axes).flatten().unwrap_or(BURST),
            pause: Duration::from_nanos(axis::PAUSE_NS.at(&spec.axes).unwrap_or(0)),
        }
    }
}
