//! Verdicts with proven error rates: which of several runs differ, when a series changed, and which
//! host of a fleet is slow.
//!
//! Everything here computes on logarithms of numbers that were measured, and knows neither records
//! nor networks. Every procedure states its error rate, and `cargo xtask verdicts` proves it by
//! simulation.
//!
//! # Invariants
//!
//! - The unit of every test is one repetition of one run. Messages of a run are never pooled: they
//!   are not independent.
//! - Every procedure that draws random numbers takes them from a fixed seed, so that the same
//!   records give the same verdict.
//! - A procedure that cannot decide says so, and what would decide. It never guesses.

pub mod compare;
pub mod fleet;
mod orders;
pub mod permutation;
pub mod ranks;
pub mod regime;
pub mod session;
pub mod signs;
pub mod trend;
