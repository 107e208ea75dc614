//! The values of the quantities by which members are compared.

use measure::record::{Point, Status};
use measure::text::time;

/// A quantity of a pair of members.
pub struct Row {
    /// Its name, and that of its experiment.
    pub name: &'static str,
    /// Whether it has a value in each direction: two points, with the ranks exchanged.
    pub is_directed: bool,
    /// Whether more is better.
    pub is_rate: bool,
    /// What it is, for readers.
    pub title: &'static str,
    value: fn(&Point) -> Option<f64>,
}

/// The quantities.
pub static QUANTITIES: [Row; 2] = [
    Row {
        name: "latency",
        is_directed: false,
        is_rate: false,
        title: "latency of small messages, median",
        value: |point| Some(point.latency.as_ref()?.p50_ns as f64),
    },
    Row {
        name: "throughput",
        is_directed: true,
        is_rate: true,
        title: "throughput of large messages, each direction by itself",
        value: |point| Some(point.throughput.as_ref()?.bytes_per_s),
    },
];

impl Row {
    /// The quantity of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        QUANTITIES.iter().find(|row| row.name == name)
    }

    /// The value of a point, in ns or bytes/s; none if it was not measured.
    pub fn value(&self, point: &Point) -> Option<f64> {
        (self.value)(point).filter(|value| {
            point.status == Status::Measured
                && point.experiment == self.name
                && *value > 0.0
                && value.is_finite()
        })
    }

    /// The logarithm of a value by which members are compared: larger is better.
    pub fn log(&self, value: f64) -> f64 {
        if self.is_rate { value.ln() } else { -value.ln() }
    }

    /// A value with its unit.
    pub(crate) fn shown(&self, value: f64) -> String {
        match self.is_rate {
            true => format!("{:.0} MiB/s", value / MIB),
            false => time(value),
        }
    }

    /// The unit of values around this one in a table, and its size in ns or bytes/s.
    pub(crate) fn unit(&self, value: f64) -> (&'static str, f64) {
        match self.is_rate {
            true => ("MiB/s", MIB),
            false if value < 1000.0 => ("ns", 1.0),
            false if value < 1e7 => ("us", 1e3),
            false => ("ms", 1e6),
        }
    }

    /// The value of a logarithm.
    pub fn of_log(&self, log: f64) -> f64 {
        if self.is_rate { log.exp() } else { (-log).exp() }
    }
}

const MIB: f64 = 1024.0 * 1024.0;
