//! The settings of a pipeline: those of its generator, and how a rank keeps its samples.

use measure::record::Axes;

use super::choices::{Filling, Signal, Sink, Timer, sample_bytes};
use crate::axis;
use crate::pattern::defaults::RATE_HZ;
use crate::pattern::settings::settings;

settings! {
    usual {
        rate_hz: u64 = RATE_HZ or RATE_HZ,
        signal: Signal = SIGNAL or Signal::Random,
        sink: Sink = SINK or Sink::Null,
        timer: Timer = TIMER or Timer::Tsc,
        values: u32 = VALUES or VALUES,
    }
    asked {
        rx_filled: Filling = RX_FILLED or Filling::Before,
    }
    messages {
        BUFFERS,
        INLINE_MAX_BYTES,
        RX_FILL,
    }
}

/// As in the figures of Potter 2018 with a varying rate.
const VALUES: u32 = 8;

/// The bytes of a sample, which its values determine.
pub(super) fn size_bytes(axes: &Axes) -> u64 {
    sample_bytes(axis::VALUES.at(axes).unwrap_or(VALUES).into())
}
