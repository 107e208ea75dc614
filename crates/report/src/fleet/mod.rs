//! The examination of a fleet, from its record: which pairs were measured, who is slow, and how sure
//! that is.
//!
//! The record has the points and the question ([`measure::record::Fleet`]), and no verdict: the
//! procedure ([`verdict::fleet::examine`]) is run again over the recorded points, whenever it is
//! shown. While a fleet is measured, the program runs the same procedure over a [`Replay`] that asks
//! for what the record lacks.

mod matrix;
mod names;
mod outcome;
mod question;
mod quantiles;
mod replay;
mod text;
mod value;
mod words;

pub(crate) use matrix::{Matrix, asymmetry, tenths};
pub(crate) use outcome::open;
pub use outcome::{Outcome, outcome};
pub use question::Question;
pub(crate) use quantiles::{SHARES, quantiles};
pub use replay::{Missing, Replay, Step, examined};
pub use text::text;
pub use value::{QUANTITIES, Row};
pub(crate) use words::Words;
