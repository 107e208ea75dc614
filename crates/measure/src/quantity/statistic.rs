//! The statistics of a latency, and what comparing two clocks leaves open of them.

use crate::record::{Clocks, Latency, LatencyKind, Point};
use crate::stats::shape;
use crate::units::Dimension;

/// A number of a latency.
#[derive(Debug)]
pub struct Statistic {
    /// The end of its path, e.g. `p50_ns`; a last `*` stands for a threshold in ns.
    pub field: &'static str,
    /// What it measures.
    pub unit: Dimension,
    /// The number, by the threshold of a share.
    pub of: fn(&Latency, &str) -> Option<f64>,
    /// The ends of the 95 % interval of the number within one run; of what needs none, the number.
    pub interval: fn(&Latency, f64) -> Option<[f64; 2]>,
    /// Whether the offset of two clocks shifts it: in a spread the offset cancels.
    pub is_shifted: bool,
    /// An end of a path that leads to it, for hints.
    pub example: Option<&'static str>,
    /// What it is, in words.
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

    /// The row where the end of a path leads to it, with the threshold in that.
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
        /// Every number of a latency.
        pub static STATISTICS: &[&Statistic] = &[$(&$name),+];
    };
}

statistics! {
    COUNT = Statistic {
        interval: |_, count| Some([count; 2]),
        ..Statistic::number("count", |l, _| Some(l.count as f64), "samples of the latency")
    };
    MIN = Statistic::time("min_ns", |l, _| Some(l.min_ns as f64), "smallest latency");
    P10 = Statistic::time("p10_ns", |l, _| Some(l.p10_ns as f64), "10 % quantile of the latency");
    P50 = Statistic {
        interval: |l, _| l.p50_ci95_ns.map(|ends| ends.map(|end| end as f64)),
        ..Statistic::time("p50_ns", |l, _| Some(l.p50_ns as f64), "median latency")
    };
    P90 = Statistic::time("p90_ns", |l, _| Some(l.p90_ns as f64), "90 % quantile of the latency");
    P99 = Statistic::time("p99_ns", |l, _| Some(l.p99_ns as f64), "99 % quantile of the latency");
    P999 = Statistic::time("p999_ns", |l, _| Some(l.p999_ns as f64), "99.9 % quantile of the latency");
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
        ..Statistic::number("mavericks.count", |l, _| Some(l.mavericks.count as f64), "mavericks")
    };
}

/// The times of a round of one to n that can be divided by n. Their spread cannot: messages differ
/// as rounds do not.
pub(super) static OF_MESSAGES: &[&Statistic] = &[&MIN, &P10, &P50, &P90, &P99, &P999, &MAX, &MEAN];

/// The time that the middle 80 % of the messages lie within. It stands in no record.
fn spread_ns(latency: &Latency, _: &str) -> Option<f64> {
    Some(latency.p90_ns as f64 - latency.p10_ns as f64)
}

/// The largest error of a latency of a point that comes from comparing two clocks, in ns; `None`
/// where one clock took both stamps.
pub fn bound_ns(point: &Point, kind: LatencyKind) -> Option<f64> {
    match (point.one_way.as_ref()?.clocks, kind) {
        (
            Clocks::Two { bound_ns, .. },
            LatencyKind::Arrival | LatencyKind::OneWay | LatencyKind::OneWaySend,
        ) => Some(bound_ns),
        _ => None,
    }
}

/// Least and largest share of a latency's messages above a threshold that can be, where comparing
/// two clocks leaves it open: all that a share can be in a record of a program that did not say.
pub fn share_bounds(point: &Point, latency: &Latency, threshold: &str) -> Option<[f64; 2]> {
    bound_ns(point, latency.kind)?;
    Some(latency.share_above_bounds.get(threshold).copied().unwrap_or([0.0, 1.0]))
}
