//! What a way to send is to be best at.

use measure::quantity::{cpu_ns_per_message, lost};
use measure::record::Point;

/// Messages of a round from which on ten are above its p99.9.
pub const TAIL_MESSAGES: u64 = 10_000;

/// What is to be least.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goal {
    /// The median of the one-way latency.
    Median,
    /// Its 99.9 % quantile.
    P999,
    /// The time of CPUs that a message takes at both ends, in user space and in the kernel.
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

    /// What it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "one-way median",
            Self::P999 => "one-way p99.9",
            Self::Cpu => "CPU time of both ends per message",
        }
    }
}

/// The p99.9 of all messages, in ns; a lost one took for ever. `None` where more than one of a
/// thousand did. Where fewer did, the largest of the others: it is not below it, and no quantile
/// between is in a record.
fn p999_ns(point: &Point) -> Option<f64> {
    let latency = point.latency.as_ref()?;
    match lost(point) {
        0 => Some(latency.p999_ns as f64),
        lost if lost * 1000 <= latency.count + lost => Some(latency.max_ns as f64),
        _ => None,
    }
}
