//! What a plan asks of messages that are timed one way.

use std::time::Duration;

use super::choices::Stamp;
use crate::axis::{self, AxisRow};
use crate::point::PointSpec;

/// Axes of this pattern that not all have.
pub(super) const AXES: &[&AxisRow] = &[
    axis::BUFFERS.row,
    axis::BURST.row,
    axis::PAUSE_NS.row,
    axis::RX_FILL.row,
    axis::SEND_POLL.row,
    axis::STAMP.row,
];

/// What a point asks.
pub(super) struct Settings {
    /// Messages that are posted without waiting for the peer; absent for all of them.
    pub(super) burst: Option<u32>,
    /// Least time from one post to the next.
    pub(super) pause: Duration,
    /// Which instant a message carries.
    pub(super) stamp: Stamp,
}

impl Settings {
    pub(super) fn of(spec: &PointSpec) -> Self {
        Self {
            burst: axis::BURST.at(&spec.axes).flatten(),
            pause: Duration::from_nanos(axis::PAUSE_NS.at(&spec.axes).unwrap_or(0)),
            stamp: axis::STAMP.at(&spec.axes).unwrap_or(Stamp::Submitted),
        }
    }
}
