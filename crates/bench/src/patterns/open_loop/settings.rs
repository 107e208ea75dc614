//! What a plan asks of messages at a set rate, and of the load beside them.

use super::choices::Load;
use crate::axis::{self, AxisRow};
use crate::pattern::defaults::{RATE_HZ, SIZE_BYTES_STREAM};
use crate::point::PointSpec;

/// Axes of this pattern that not all have.
pub(super) const AXES: &[&AxisRow] =
    &[axis::LOAD.row, axis::LOAD_BYTES.row, axis::LOADERS.row, axis::RATE_HZ.row];
/// Where a load goes.
pub(super) const LOAD: Load = Load::Incast;
/// Payload of a message of a load, in bytes.
pub(super) const LOAD_BYTES: u64 = SIZE_BYTES_STREAM;

/// What a point asks.
pub(super) struct Settings {
    /// Messages that are due in a second.
    pub(super) rate_hz: u64,
    /// Ranks that load the device meanwhile.
    pub(super) loaders: u32,
    /// Where their load goes.
    pub(super) load: Load,
    /// Payload of a message of theirs, in bytes; at least 1.
    pub(super) load_bytes: u64,
}

impl Settings {
    pub(super) fn of(spec: &PointSpec) -> Self {
        Self {
            rate_hz: axis::RATE_HZ.at(&spec.axes).unwrap_or(RATE_HZ),
            loaders: axis::LOADERS.at(&spec.axes).unwrap_or(0),
            load: axis::LOAD.at(&spec.axes).unwrap_or(LOAD),
            load_bytes: axis::LOAD_BYTES.at(&spec.axes).unwrap_or(LOAD_BYTES),
        }
    }
}
