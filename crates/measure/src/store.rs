//! The directory of a run (its format is described in [`crate::record`]): writing it so that a kill, a full disk or a
//! loss of power at any moment costs no finished point, and reading it back.
//!
//! # Invariants
//!
//! * A finished point is on disk before the next one starts. A run directory is never overwritten.

mod lines;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::RunReader;
pub use writer::RunWriter;

/// File of the [`crate::record::Run`].
pub const RUN_FILE: &str = "run.json";
/// File of the [`crate::record::Point`]s.
pub const POINTS_FILE: &str = "points.jsonl";
/// Directory of the raw samples.
pub const SAMPLES_DIR: &str = "samples";
