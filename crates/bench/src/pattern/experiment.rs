//! An experiment of a plan with all defaults filled in.

use serde_json::{Map, Value, json};

use crate::axis::{self, AxisList, Key};
use crate::plan::Settings;
use crate::point::{Carrier, Length, Pattern};

/// An experiment with a value for every setting, for one kind of endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    pub(crate) name: String,
    pub(crate) pattern: Pattern,
    pub(crate) carrier: Carrier,
    pub(crate) length: Length,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) warmup: u64,
    /// How often the ranks are started anew.
    pub(crate) launches: u32,
    /// How often each launch measures every point.
    pub(crate) repetitions: u32,
    /// The relative width within which the mean is to be known, and the largest number of
    /// repetitions for that.
    pub(crate) within: Option<(f64, u32)>,
    pub(crate) tx_depth: u32,
    pub(crate) rx_depth: u32,
    pub(crate) keep_samples: bool,
    pub(crate) share_above_ns: Vec<u64>,
    pub(crate) timeout_s: f64,
    /// The axes in the order of the plan, except that the size varies fastest.
    pub(crate) axes: AxisList,
    /// The settings as the plan has them, with their places for errors.
    pub(crate) settings: Settings,
    /// The place of the experiment in the plan.
    pub(crate) place: String,
}

impl Filled {
    /// The number of messages and of warm-up messages of a point of this size. `bytes_max` reduces
    /// both by the same factor. With a rate and a duration, as many as are due in that time.
    pub(crate) fn length_at(&self, size_bytes: u64, rate_hz: Option<u64>) -> (Length, u64) {
        if let (Length::Duration(duration_s), Some(rate_hz)) = (self.length, rate_hz) {
            let messages = ((duration_s * rate_hz as f64).round() as u64).max(1);
            let warmup = self.settings.warmup.unwrap_or(messages / WARMUP_SHARE);
            return (Length::Iterations(messages), warmup);
        }
        let (Length::Iterations(asked), Some(bytes_max)) = (self.length, self.bytes_max) else {
            return (self.length, self.warmup);
        };
        let iterations = bytes_max
            .checked_div(size_bytes)
            .map_or(asked, |messages| messages.max(ITERATIONS_MIN).min(asked));
        let warmup = (u128::from(self.warmup) * u128::from(iterations)).div_ceil(u128::from(asked));
        // No overflow: iterations <= asked, so the quotient is at most the warm-up itself.
        (Length::Iterations(iterations), warmup as u64)
    }

    /// The number of its points, including all repetitions that may happen; `None` above 2^64.
    pub(crate) fn points(&self) -> Option<u64> {
        let lengths = self.axes.iter().map(|axis| axis.values().len() as u64);
        let repetitions = self.within.map_or(self.repetitions, |(_, most)| most.max(self.repetitions));
        lengths.chain([u64::from(repetitions), u64::from(self.launches)]).try_fold(1u64, u64::checked_mul)
    }

    /// The experiment as the record stores it.
    pub(crate) fn to_json(&self) -> Value {
        let axes: Map<String, Value> =
            self.axes.iter().map(|axis| (axis.row.name.to_owned(), axis.values().into())).collect();
        let mut json = json!({
            "name": self.name,
            "pattern": self.pattern,
            "warmup": self.warmup,
            "repetitions": self.repetitions,
            "tx_depth": self.tx_depth,
            "rx_depth": self.rx_depth,
            "keep_samples": self.keep_samples,
            "share_above_ns": self.share_above_ns,
            "timeout_s": self.timeout_s,
            "axes": axes,
        });
        if self.launches > 1 {
            json["launches"] = self.launches.into();
        }
        match self.length {
            Length::Duration(duration_s) => json["duration_s"] = duration_s.into(),
            Length::Iterations(iterations) => json["iterations"] = iterations.into(),
        }
        if let Some((within, most)) = self.within {
            (json["within"], json["repetitions_max"]) = (within.into(), most.into());
        }
        if let Some(bytes_max) = self.bytes_max {
            json["bytes_max"] = bytes_max.into();
        }
        json
    }

    /// The smallest depth of a queue: that of the axis, or else of the setting.
    pub(crate) fn least_depth(&self, depth: Key<u32>) -> u32 {
        let is_of_sends = depth.row.name == axis::TX_DEPTH.row.name;
        let setting = if is_of_sends { self.tx_depth } else { self.rx_depth };
        least_depth(&self.axes, depth).unwrap_or(setting)
    }
}

/// The smallest depth of a queue among the values of an axis; `None` without such an axis.
pub(crate) fn least_depth(axes: &AxisList, depth: Key<u32>) -> Option<u32> {
    axes.get(depth).into_iter().min()
}

/// The fewest messages that `bytes_max` leaves: below about ten, a median says little.
const ITERATIONS_MIN: u64 = 10;
/// Warm-up is a tenth of the iterations, within limits: the rule of the Intel MPI Benchmarks.
pub(crate) const WARMUP_SHARE: u64 = 10;
