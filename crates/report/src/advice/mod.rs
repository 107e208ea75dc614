//! What a record says about how to send: ways that were measured in rounds, which of them is best
//! for a goal, what is equal to it within the error, and what each step away from it costs. Decided
//! from the points alone.
//!
//! *The error.* Rounds measure every way once, one after the other, so that what drifts hits all
//! alike, and rounds are pairs. Two ways differ where the ratios of the rounds that both were
//! measured in say so by the exact signed-rank test (Wilcoxon, Biometrics Bulletin 1, 1945),
//! one-sided at 5 %, and by at least [`WORTH`]. With five rounds that is where the one is below the
//! other in every round; with fewer no two ways can be told apart. Rounds in which the machine was
//! unstable do not count where there are five others ([`lacking`] says how many to measure again);
//! where there are not, what they say is marked as not decided.
//!
//! *The choice.* Of all ways that neither the best nor the steadiest of those equal to it is better
//! than by more than the error, the simplest ([`Way::complexity`]).
//!
//! # Invariants
//!
//! * A sink may say what is measured next; what to recommend is decided by `report::advice`, from
//!   the points alone.

mod candidate;
mod choice;
mod compare;
mod counted;
mod goal;
mod rounds;
#[cfg(test)]
mod tests;
mod text;
mod way;

pub use candidate::{Candidate, Conditions, RATE_KEPT, candidates};
pub use choice::{Advice, Choice, Outcome, Step, advise, choose};
pub use compare::{Comparison, Verdict, WORTH, compare};
pub use counted::ROUNDS_MIN;
pub use goal::{Goal, TAIL_MESSAGES};
pub use measure::quantity::arrived;
pub use rounds::lacking;
pub use text::text;
pub use way::{OPERATIONS, POLLS, SERVICES, Way};
