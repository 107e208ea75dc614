//! The examination of a fleet, from its record: which pairs were measured, who is slow, and how sure
//! that is.
//!
//! The procedure ([`verdict::fleet::examine`]) is a deterministic function of what was measured.
//! While a fleet is measured, the program runs it over a [`Replay`] of the record, and measures what
//! the record lacks.

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
