//! Whether a record has all points of its plan.

use measure::record::{Point, Run};
use measure::text::counted;

/// Returns how many points of a run are not in its record, or were cut by a signal.
pub(crate) fn lacking(run: &Run, points: &[Point]) -> u64 {
    let whole = points.iter().filter(|point| !point.cut).count();
    run.points_planned.saturating_sub(whole as u64)
}

/// Returns how many points of a run are not in its record, in words, if there are any.
pub fn missing(run: &Run, points: u64) -> Option<String> {
    let lacking = run.points_planned.saturating_sub(points);
    (lacking > 0).then(|| format!("{lacking} of {} points are missing", run.points_planned))
}

/// Returns a sentence about the points of a run that are not in its record, or that were cut, if
/// there are any.
pub fn ended_early(run: &Run, points: &[Point]) -> Option<String> {
    let cut = points.iter().filter(|point| point.cut).count();
    let cut = (cut > 0).then(|| format!("{} cut by a signal", counted(cut as u64, "point")));
    let said: Vec<String> = missing(run, points.len() as u64).into_iter().chain(cut).collect();
    (!said.is_empty()).then(|| format!("{}: the run ended early", said.join(", ")))
}
