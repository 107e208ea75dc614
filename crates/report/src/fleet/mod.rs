//! The examination of a fleet, from its record: which pairs were measured, who is slow, and how
//! sure that is.
//!
//! The procedure ([`verdict::fleet::examine()`]) is a deterministic function of what was measured.
//! While a fleet is measured, the program runs it over a [`Replay`] of the record, and measures
//! what the record lacks.

mod found;
mod json;
mod matrix;
mod names;
mod outcome;
mod quantiles;
mod question;
mod replay;
mod rows;
mod split;
mod stated;
mod tails;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod value;
mod words;

pub(crate) use found::Found;
pub(crate) use json::against;
pub use json::json;
pub(crate) use matrix::{Matrix, asymmetry, tenths};
pub use outcome::{Outcome, outcome};
pub(crate) use outcome::{congested, culprits, missed, open};
pub(crate) use quantiles::SHARES;
pub use question::{Question, ROUNDS_MAX, separate_rails};
pub(crate) use replay::rounds_of_schedule;
pub use replay::{Missing, Replay, Step, compared, examined, lasting};
pub(crate) use rows::{OverPairs, rows};
pub(crate) use stated::stated;
pub use tails::Tails;
pub(crate) use text::remarks;
pub use text::{of_record, text};
pub use value::{QUANTITIES, Row};
pub(crate) use words::Words;

use measure::presentation::Patterns;
use measure::record::{Device, Point};

/// Returns the throughput that the link of a point can carry, in bytes/s; none if that is not
/// known.
pub fn link_limit(point: &Point, devices: &[Device], patterns: Patterns) -> Option<f64> {
    crate::link_limit::LinkLimit::of(point, devices, patterns)?.number("throughput.bytes_per_s")
}
