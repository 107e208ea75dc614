//! Calls that are timed by themselves.

mod batches;
pub(crate) mod rank;
mod step;

pub(crate) use batches::{Batch, Calls};
pub use step::Step;
