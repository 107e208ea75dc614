//! Whether a record has all points of its plan.

use measure::record::{Point, Run};

/// Returns how many points of a run are not in its record.
pub(crate) fn lacking(run: &Run, points: u64) -> u64 {
    run.points_planned.saturating_sub(points)
}

/// Returns how many points of a run are not in its record, in words, if there are any.
pub fn missing(run: &Run, points: u64) -> Option<String> {
    let lacking = lacking(run, points);
    (lacking > 0).then(|| format!("{lacking} of {} points are missing", run.points_planned))
}

/// Returns a sentence about the points of a run that are not in its record, if there are any.
pub fn ended_early(run: &Run, points: &[Point]) -> Option<String> {
    missing(run, points.len() as u64).map(|missing| missing + ": the run ended early")
}
