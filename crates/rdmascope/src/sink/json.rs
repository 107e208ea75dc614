//! Points as JSON: a line each on standard output (`--json`).

use measure::record::Point;

/// Returns a point as one line.
pub(crate) fn line(point: &Point) -> String {
    let point = without_distributions(point.clone());
    serde_json::to_string(&point).expect("a point is a tree of maps with text keys") + "\n"
}

/// Returns a point without its histograms, which are large: findings need its statistics only.
pub(super) fn without_distributions(mut point: Point) -> Point {
    point.ends.iter_mut().for_each(|end| end.histogram = None);
    point.kinds.iter_mut().for_each(|timed| timed.histogram = None);
    point
}
