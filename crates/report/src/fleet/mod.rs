//! The examination of a fleet, from its record: which pairs were measured, who is slow, and how
//! sure that is.
//!
//! The procedure ([`verdict::fleet::examine()`]) is a deterministic function of what was measured.
//! While a fleet is measured, the program runs it over a [`Replay`] of the record, and measures
//! what the record lacks.

mod matrix;
mod names;
mod outcome;
mod quantiles;
mod question;
mod replay;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod words;

pub(crate) use matrix::{Matrix, asymmetry, tenths};
pub(crate) use outcome::open;
pub use outcome::{Outcome, outcome};
pub(crate) use quantiles::{SHARES, quantiles};
pub use question::Question;
pub use replay::{Missing, Replay, Step, examined};
pub use text::text;
pub use value::{QUANTITIES, Row};
pub(crate) use words::Words;

use measure::presentation::Patterns;
use measure::record::{Device, Point};

/// Returns the throughput that the link of a point can carry, in bytes/s; none if that is not
/// known.
pub fn link_limit(point: &Point, devices: &[Device], patterns: Patterns) -> Option<f64> {
    crate::link_limit::LinkLimit::of(point, devices, patterns)?.number("throughput.bytes_per_s")
}
