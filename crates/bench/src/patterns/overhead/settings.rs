//! What a plan asks of calls that are timed by themselves.

use crate::axis::{self, AxisRow};
use crate::point::{PointSpec, Step};

/// Axes of this pattern that not all have.
pub(super) const AXES: &[&AxisRow] = &[axis::BATCH.row, axis::STEP.row];

/// What a point asks.
pub(super) struct Settings {
    /// The call that is timed by itself.
    pub(super) step: Step,
    /// Calls between two stamps.
    pub(super) batch: u32,
}

impl Settings {
    pub(super) fn of(spec: &PointSpec) -> Self {
        let step = axis::STEP.at(&spec.axes).unwrap_or(Step::ALL[0]);
        let room = spec.message.tx_depth.min(spec.message.rx_fill);
        let batch = axis::BATCH.at(&spec.axes).flatten();
        Self { step, batch: batch.unwrap_or_else(|| step.batch(room)) }
    }
}
