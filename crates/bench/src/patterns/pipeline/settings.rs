//! What a plan asks of the generator of a pipeline.

use measure::record::Axes;

use super::choices::{Filling, Signal, Sink, Timer, sample_bytes};
use crate::axis::{self, AxisRow};
use crate::pattern::defaults::RATE_HZ;
use crate::point::PointSpec;

/// Axes of this pattern that not all have.
pub(super) const AXES: &[&AxisRow] = &[
    axis::BUFFERS.row,
    axis::INLINE_MAX_BYTES.row,
    axis::RATE_HZ.row,
    axis::RX_FILL.row,
    axis::RX_FILLED.row,
    axis::SIGNAL.row,
    axis::SINK.row,
    axis::TIMER.row,
    axis::VALUES.row,
];
/// Values of a sample, as in the thesis's figures over the rate (V60).
pub(super) const VALUES: u32 = 8;

/// What a point asks.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Samples that are due in a second.
    pub(super) rate_hz: u64,
    /// Values of a sample.
    pub(super) values: u32,
    /// What they are.
    pub(super) signal: Signal,
    /// What tells when the next is due.
    pub(super) timer: Timer,
    /// When the receiver posts its receives.
    pub(super) rx_filled: Filling,
    /// Where both ends keep samples.
    pub(super) sink: Sink,
}

impl Settings {
    pub(super) fn of(spec: &PointSpec) -> Self {
        Self {
            rate_hz: axis::RATE_HZ.at(&spec.axes).unwrap_or(RATE_HZ),
            values: axis::VALUES.at(&spec.axes).unwrap_or(VALUES),
            signal: axis::SIGNAL.at(&spec.axes).unwrap_or(Signal::Random),
            timer: axis::TIMER.at(&spec.axes).unwrap_or(Timer::Tsc),
            rx_filled: axis::RX_FILLED.at(&spec.axes).unwrap_or(Filling::Before),
            sink: axis::SINK.at(&spec.axes).unwrap_or(Sink::Null),
        }
    }
}

/// A sample is as long as its values make it.
pub(super) fn size_bytes(axes: &Axes) -> u64 {
    sample_bytes(axis::VALUES.at(axes).unwrap_or(VALUES).into())
}
