//! The names of a run's files.

/// File of the [`crate::record::Run`].
pub const RUN_FILE: &str = "run.json";
/// File of the [`crate::record::Point`]s.
pub const POINTS_FILE: &str = "points.jsonl";
/// Directory of the raw samples.
pub const SAMPLES_DIR: &str = "samples";
