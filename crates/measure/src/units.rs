//! Sizes, ranges, durations, rates and shares as people write and read them.
//!
//! Numbers inside the program and in records are bytes, nanoseconds and rates per second. Texts are
//! read and printed at the edges only. A printed unit always shows its base, because tools do not
//! agree on one ("MB/s" is 2^20 in UCX, 10^6 in fabtests, and was 2^20 in perftest until 2024).

use crate::figure::{Better, Unit};
use crate::{Error, Result};

mod counts;
mod duration;
mod number;
mod percent;
mod rate;
mod size;
#[cfg(test)]
mod tests;

pub use counts::{COUNTS_MAX, parse_count, parse_counts};
pub use duration::{format_duration, parse_duration, time_ns};
pub use percent::parse_percent;
pub use rate::{parse_rate, parse_rate_hz};
pub use size::{format_size, parse_size, parse_sizes};

/// What a number measures, which decides the units it can be printed in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dimension {
    /// In bytes per second.
    Bandwidth,
    /// In messages per second.
    MessageRate,
    /// Without a unit.
    Number,
    /// A part of 1.
    Share,
    /// In ns.
    Time,
}

impl Dimension {
    /// Whether larger or smaller numbers are better, where that is the same for all quantities.
    pub fn better(self) -> Option<Better> {
        match self {
            Self::Bandwidth | Self::MessageRate => Some(Better::More),
            Self::Number | Self::Share => None,
            Self::Time => Some(Better::Less),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::MessageRate => "message rate",
            Self::Number => "plain number",
            Self::Share => "share",
            Self::Time => "time",
        }
    }

    /// The units that fit it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Bandwidth => "Gb/s, MB/s or MiB/s",
            Self::MessageRate => "Mmsg/s",
            Self::Number | Self::Share => "no unit",
            Self::Time => "ns, us, ms or s",
        }
    }
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 9] = [
        Self::Ns,
        Self::Us,
        Self::Ms,
        Self::S,
        Self::GbPerS,
        Self::MbPerS,
        Self::MBPerS,
        Self::MiBPerS,
        Self::MmsgPerS,
    ];

    /// Its symbol, as plans have it, e.g. `Gb/s`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
            Self::GbPerS => "Gb/s",
            Self::MbPerS => "Mb/s",
            Self::MBPerS => "MB/s",
            Self::MiBPerS => "MiB/s",
            Self::MmsgPerS => "Mmsg/s",
        }
    }

    /// What it measures.
    pub fn dimension(self) -> Dimension {
        match self {
            Self::Ns | Self::Us | Self::Ms | Self::S => Dimension::Time,
            Self::GbPerS | Self::MbPerS | Self::MBPerS | Self::MiBPerS => Dimension::Bandwidth,
            Self::MmsgPerS => Dimension::MessageRate,
        }
    }

    /// Its size in the base of records: ns, bytes per second, messages per second.
    pub fn one(self) -> f64 {
        match self {
            Self::Ns => 1.0,
            Self::Us => 1e3,
            Self::S => 1e9,
            Self::GbPerS => 1e9 / 8.0,
            Self::MbPerS => 1e6 / 8.0,
            Self::Ms | Self::MBPerS | Self::MmsgPerS => 1e6,
            Self::MiBPerS => f64::from(1 << 20),
        }
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
