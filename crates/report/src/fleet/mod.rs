//! The examination of a fleet, from its record: which pairs were measured, who is slow, and how sure
//! that is.
//!
//! The record has the points and the question ([`measure::record::Fleet`]), and no verdict: the
//! procedure ([`verdict::fleet::examine`]) is run again over the recorded points, whenever it is
//! shown. While a fleet is measured, the program runs the same procedure over a [`Replay`] that asks
//! for what the record lacks.

mod question;
mod replay;
mod value;

pub use question::Question;
pub use replay::{Missing, Replay, Step, examined};
pub use value::{QUANTITIES, Row};

use measure::record::{Fleet, Run};
use verdict::fleet::{Examined, Verdict};

/// The outcome.
pub enum Outcome { Healthy, Culprits, Undecided }
pub fn outcome(_: &Fleet, e: &Examined) -> Outcome { match e.verdict { Verdict::Healthy => Outcome::Healthy, Verdict::Culprits => Outcome::Culprits, Verdict::Undecided => Outcome::Undecided } }
pub fn text(_: &Run, _: &Fleet, _: &Question, e: &Examined, _: Option<usize>) -> String { format!("{e:#?}\n") }
