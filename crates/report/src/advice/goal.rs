//! The quantity that a configuration should minimise.

use measure::quantity::{cpu_ns_per_message, lost};
use measure::record::Point;

/// The number of messages of a round from which on ten are above its p99.9.
pub const TAIL_MESSAGES: u64 = 10_000;

/// The quantity to minimise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goal {
    /// The median of the one-way latency.
    Median,
    /// The 99.9th percentile of the one-way latency.
    P999,
    /// The CPU time of a message at both ranks, in user space and in the kernel.
    Cpu,
}

impl Goal {
    /// Its value for a point, in ns.
    pub fn value(self, point: &Point) -> Option<f64> {
        match self {
            Self::Median => Some(point.latency.as_ref()?.p50_ns as f64),
            Self::P999 => p999_ns(point),
            Self::Cpu => cpu_ns_per_message(point),
        }
    }

    /// The path of the value into a point, for figures.
    pub fn path(self) -> &'static str {
        match self {
            Self::Median => "latency.p50_ns",
            Self::P999 => "latency.p999_ns",
            Self::Cpu => "cpu_ns_per_message",
        }
    }

    /// Its name in print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "one-way median",
            Self::P999 => "one-way p99.9",
            Self::Cpu => "CPU time of both ranks per message",
        }
    }
}

/// The p99.9 of all messages, in ns, where a lost message takes forever. `None` where more than one
/// of a thousand was lost. Where fewer were lost, the largest latency of the others, which is not
/// below it: a record has no percentile between.
fn p999_ns(point: &Point) -> Option<f64> {
    let latency = point.latency.as_ref()?;
    match lost(point) {
        0 => Some(latency.p999_ns as f64),
        lost if lost * 1000 <= latency.count + lost => Some(latency.max_ns as f64),
        _ => None,
    }
}
