//! The directory of a run (its format is described in [`crate::record`]). A kill, a full disk or a
//! loss of power at any moment loses no finished point.
//!
//! # Invariants
//!
//! * A finished point is on disk before the next one starts. A run directory is never overwritten.

mod lines;
mod names;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use names::{POINTS_FILE, RUN_FILE, SAMPLES_DIR};
pub use reader::RunReader;
pub use writer::{EndedRun, RunWriter};
