//! What the values of axes are.

use serde_json::Value;

use crate::point::{Choice, Variant};

/// What the values of an axis are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Bits per second, or generations of links (see [`verbs::LinkRate`]): `"16Gb/s"`, `"4X DDR"`.
    BitRate,
    /// Bytes below 2^32, or texts such as `"64KiB"`.
    Bytes,
    /// One of some words.
    Choice(&'static [Variant]),
    /// Whole numbers below 2^32, texts such as `"10k"`, and ranges: `"1..16"`.
    Count,
    /// Delays of a rank (see [`Injection`](crate::point::Injection)).
    Delay,
    /// `true` or `false`.
    Flag,
    /// Rows and columns of ranks: `"4x2"`.
    Grid,
    /// Models of a link (see [`verbs::LinkModel`]).
    Link,
    /// Microseconds below 2^32, or durations such as `"50us"`.
    Micros,
    /// Nanoseconds, or durations such as `"5.5us"`.
    Pause,
    /// Messages per second, or texts such as `"10k"`.
    Rate,
    /// Rates of links, by the names of their generations.
    SignalRate,
    /// Bytes, or texts such as `"64KiB"` and `"4..8MiB"`.
    Size,
    /// Names.
    Text,
    /// Whole numbers below 2^32, or texts such as `"10k"`.
    Whole,
}

impl Kind {
    /// Examples of values for the help; empty if the flag's name suggests them.
    pub fn examples(self) -> &'static str {
        match self {
            Self::BitRate => "16Gb/s or '4X DDR'",
            Self::Bytes => "64KiB",
            Self::Count => "15, 1,7,15 or 1..15",
            Self::Micros => "50us",
            Self::Pause => "5.5us",
            Self::Rate => "500, 10k or 2M",
            Self::Size => "64, 64,4KiB or 4..1MiB",
            Self::Choice(_)
            | Self::Delay
            | Self::Flag
            | Self::Grid
            | Self::Link
            | Self::SignalRate
            | Self::Text
            | Self::Whole => "",
        }
    }

    /// The kind with the words of a type as its values.
    pub const fn choice<T: Choice>() -> Self {
        Self::Choice(T::VARIANTS)
    }
}

/// Why a value cannot be one of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The value is of another kind than `AxisRow::expected` describes.
    WrongType(Value),
    /// The value is not one of the known words.
    Unknown {
        /// The value.
        value: String,
        /// The known words.
        known: Vec<&'static str>,
    },
    /// The value cannot be read, for this reason.
    Unreadable(String),
}
