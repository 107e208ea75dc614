//! The recommendation of a configuration from a record: configurations that were measured in
//! rounds, the best one for a goal, those equal to it within the error, and the cost of each step
//! away from it. The points alone decide.
//!
//! *The error.* A round measures every configuration once, one after the other, so that drift
//! affects all alike and rounds are pairs. Two configurations differ if the ratios of the rounds in
//! which both were measured differ by the exact signed-rank test (Wilcoxon, Biometrics Bulletin 1,
//! 1945), one-sided at 5 %, and by at least [`WORTH`]. With five rounds, one configuration then has
//! to be below the other in every round; with fewer, no two can be distinguished. Rounds in which
//! the machine was unstable do not count if there are five others ([`lacking`] returns how many to
//! measure again); if there are not, the result is marked as not decided.
//!
//! *The choice.* The simplest ([`Way::complexity`]) of all configurations than which neither the
//! best nor the steadiest of those equal to it is better by more than the error.
//!
//! # Invariants
//!
//! * Whatever receives the points of a run may choose what is measured next; `report::advice`
//!   decides what to recommend, from the points alone.

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
