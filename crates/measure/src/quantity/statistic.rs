//! The statistics of a latency, and their errors from comparing two clocks.

use crate::record::{Clocks, Latency, LatencyKind, Point};
use crate::stats::shape;
use crate::units::Dimension;

/// A statistic of a latency.
#[derive(Debug)]
pub struct Statistic {
    /// The last part of its path, e.g. `p50_ns`; a last `*` stands for a threshold in ns.
    pub field: &'static str,
    /// What it measures.
    pub unit: Dimension,
    /// Reads the number; the text is the threshold of a share.
    pub of: fn(&Latency, &str) -> Option<f64>,
    /// The bounds of its 95 % interval within one run; the number itself where it needs none.
    pub interval: fn(&Latency, f64) -> Option<[f64; 2]>,
    /// Whether the offset of two clocks shifts it; in a spread the offset cancels.
    pub is_shifted: bool,
    /// The last part of a path to it, as an example for hints.
    pub example: Option<&'static str>,
    /// Its description.
    pub help: &'static str,
}

impl Statistic {
    const fn time(field: &'static str, of: fn(&Latency, &str) -> Option<f64>, help: &'static str) -> Self {
        let unit = Dimension::Time;
        let interval = none as fn(&Latency, f64) -> Option<[f64; 2]>;
        Self { field, unit, of, interval, is_shifted: true, example: Some(field), help }
    }

    const fn number(field: &'static str, of: fn(&Latency, &str) -> Option<f64>, help: &'static str) -> Self {
        Self { unit: Dimension::Number, is_shifted: false, ..Self::time(field, of, help) }
    }

    /// Its last parts of paths: its field, or one for each threshold of a latency.
    pub(super) fn ends(&'static self, latency: Option<&Latency>) -> Vec<String> {
        match self.field.strip_suffix('*') {
            None => vec![self.field.to_owned()],
            Some(start) => {
                let thresholds = latency.into_iter().flat_map(|latency| latency.share_above.keys());
                thresholds.map(|threshold| format!("{start}{threshold}")).collect()
            }
        }
    }

    /// Returns the row and the threshold if the last part of a path names them.
    pub(super) fn matches<'p>(&'static self, end: &'p str) -> Option<(&'static Self, &'p str)> {
        match self.field.strip_suffix('*') {
            None => (self.field == end).then_some((self, "")),
            Some(start) => {
                let threshold = end.strip_prefix(start).filter(|text| text.parse::<u64>().is_ok())?;
                Some((self, threshold))
            }
        }
    }
}

fn none(_: &Latency, _: f64) -> Option<[f64; 2]> {
    None
}

macro_rules! statistics {
    ($($name:ident = $row:expr;)+) => {
        $(static $name: Statistic = $row;)+
        /// Every statistic of a latency.
        pub static STATISTICS: &[&Statistic] = &[$(&$name),+];
    };
}

statistics! {
    COUNT = Statistic {
        interval: |_, count| Some([count; 2]),
        ..Statistic::number("count", |l, _| Some(l.count as f64), "samples of the latency")
    };
    MIN = Statistic::time("min_ns", |l, _| Some(l.min_ns as f64), "smallest latency");
    P10 = Statistic::time("p10_ns", |l, _| Some(l.p10_ns as f64), "10th percentile of the latency");
    P50 = Statistic {
        interval: |l, _| l.p50_ci95_ns.map(|ends| ends.map(|end| end as f64)),
        ..Statistic::time("p50_ns", |l, _| Some(l.p50_ns as f64), "median latency")
    };
    P90 = Statistic::time("p90_ns", |l, _| Some(l.p90_ns as f64), "90th percentile of the latency");
    P99 = Statistic::time("p99_ns", |l, _| Some(l.p99_ns as f64), "99th percentile of the latency");
    P999 = Statistic::time("p999_ns", |l, _| Some(l.p999_ns as f64), "99.9th percentile of the latency");
    MAX = Statistic::time("max_ns", |l, _| Some(l.max_ns as f64), "largest latency");
    MEAN = Statistic::time("mean_ns", |l, _| Some(l.mean_ns), "mean latency");
    STDDEV = Statistic {
        is_shifted: false,
        ..Statistic::time("stddev_ns", |l, _| l.stddev_ns, "standard deviation of the latency")
    };
    RESOLUTION = Statistic::number("resolution", |l, _| l.resolution, "width of the histogram's buckets");
    SPREAD = Statistic {
        is_shifted: false,
        ..Statistic::time("spread_ns", spread_ns, "spread of the latency, p90 - p10")
    };
    SHARE_ABOVE = Statistic {
        unit: Dimension::Share,
        interval: |l, share| { let e = shape::share(share, l.count); Some([e.low, e.high]) },
        example: Some("share_above.10000"),
        ..Statistic::number("share_above.*", |l, at| l.share_above.get(at).copied(), "messages above")
    };
    MAVERICKS = Statistic {
        example: None,
        ..Statistic::number("mavericks.count", |l, _| Some(l.mavericks.count as f64), "outliers")
    };
}

/// The statistics of a round of `fan-out` that may be divided by its messages. The spread may not:
/// single messages vary, which rounds do not show.
pub(super) static OF_MESSAGES: &[&Statistic] = &[&MIN, &P10, &P50, &P90, &P99, &P999, &MAX, &MEAN];

/// The width of the middle 80 % of the latencies. It is not in the record.
fn spread_ns(latency: &Latency, _: &str) -> Option<f64> {
    Some(latency.p90_ns as f64 - latency.p10_ns as f64)
}

/// The largest error of a latency from comparing two clocks, in ns; `None` where one clock took
/// both stamps.
pub fn bound_ns(point: &Point, kind: LatencyKind) -> Option<f64> {
    match (point.one_way.as_ref()?.clocks, kind) {
        (
            Clocks::Two { bound_ns, .. },
            LatencyKind::Arrival | LatencyKind::OneWay | LatencyKind::OneWaySend,
        ) => Some(bound_ns),
        _ => None,
    }
}

/// The smallest and the largest possible share of messages above a threshold, where two clocks are
/// compared: 0 to 1 if the record does not say.
pub fn share_bounds(point: &Point, latency: &Latency, threshold: &str) -> Option<[f64; 2]> {
    bound_ns(point, latency.kind)?;
    Some(latency.share_above_bounds.get(threshold).copied().unwrap_or([0.0, 1.0]))
}
