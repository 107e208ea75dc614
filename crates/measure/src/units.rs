//! Sizes, ranges, durations, rates and shares as people write and read them.
//!
//! Inside and in records there are bytes, nanoseconds and rates per second; texts are read at the edge and printed at
//! the edge. A printed unit always shows its base, because the tools of the field do not agree on one ("MB/s" is 2^20
//! in UCX, 10^6 in fabtests, and was 2^20 in perftest until 2024).

use crate::figure::Unit;
use crate::{Error, Result};

mod counts;
mod duration;
mod percent;
mod rate;
mod size;
#[cfg(test)]
mod tests;

pub use counts::{COUNTS_MAX, parse_counts};
pub use duration::{format_duration, parse_duration};
pub use percent::parse_percent;
pub use rate::parse_rate;
pub use size::{format_size, parse_size, parse_sizes};

/// What a unit measures. Values that are handed to a unit are in the base named here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quantity {
    /// Time, in ns.
    TimeNs,
    /// Throughput, in bytes per second.
    BytesPerS,
    /// Rate, in messages per second.
    MessagesPerS,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 7] =
        [Self::Ns, Self::Us, Self::GbPerS, Self::MbPerS, Self::MBPerS, Self::MiBPerS, Self::MmsgPerS];

    /// Its symbol, as plans have it, e.g. `Gb/s`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::GbPerS => "Gb/s",
            Self::MbPerS => "Mb/s",
            Self::MBPerS => "MB/s",
            Self::MiBPerS => "MiB/s",
            Self::MmsgPerS => "Mmsg/s",
        }
    }

    /// Its symbol with its base where the symbol leaves a doubt, e.g. `Gb/s (10^9 bit/s)`; for headings.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::GbPerS => "Gb/s (10^9 bit/s)",
            Self::MbPerS => "Mb/s (10^6 bit/s)",
            Self::MBPerS => "MB/s (10^6 B/s)",
            Self::MiBPerS => "MiB/s (2^20 B/s)",
            Self::MmsgPerS => "Mmsg/s (10^6 messages/s)",
        }
    }

    /// What it measures.
    pub fn quantity(self) -> Quantity {
        match self {
            Self::Ns | Self::Us => Quantity::TimeNs,
            Self::GbPerS | Self::MbPerS | Self::MBPerS | Self::MiBPerS => Quantity::BytesPerS,
            Self::MmsgPerS => Quantity::MessagesPerS,
        }
    }

    /// Converts from the base of its quantity (ns, bytes per second, messages per second).
    pub fn scale(self, value: f64) -> f64 {
        match self {
            Self::Ns => value,
            Self::Us => value / 1e3,
            Self::GbPerS => value * 8.0 / 1e9,
            Self::MbPerS => value * 8.0 / 1e6,
            Self::MBPerS | Self::MmsgPerS => value / 1e6,
            Self::MiBPerS => value / f64::from(1 << 20),
        }
    }

    /// Decimals that lose nothing that was measured: times to the nanosecond, rates to about four digits.
    pub fn decimals(self) -> usize {
        match self {
            Self::Ns => 0,
            Self::MbPerS | Self::MBPerS | Self::MiBPerS => 2,
            Self::Us | Self::GbPerS | Self::MmsgPerS => 3,
        }
    }

    /// Prints a value in the base of its quantity, without the symbol: the same decimals for every value, so that a
    /// column lines up.
    pub fn format(self, value: f64) -> String {
        format!("{:.*}", self.decimals(), self.scale(value))
    }

    /// The unit that a field is printed in unless a figure says otherwise, by the end of the field's name, e.g. of
    /// `latency.p50_ns`.
    pub fn of_field(path: &str) -> Option<Self> {
        let ends = [("_ns", Self::Ns), ("bytes_per_s", Self::MBPerS), ("messages_per_s", Self::MmsgPerS)];
        ends.iter().find(|(end, _)| path.ends_with(end)).map(|&(_, unit)| unit)
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.symbol())
    }
}

impl std::str::FromStr for Unit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|unit| unit.symbol() == text).ok_or_else(|| Error::Unit {
            text: text.to_owned(),
            known: Self::ALL.map(Self::symbol).join(", "),
        })
    }
}
