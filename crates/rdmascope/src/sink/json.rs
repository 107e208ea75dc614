//! Points as JSON: a line each on standard output (`--json`).

use measure::record::Point;

use super::without_distributions;

/// Returns a point as one line.
pub(crate) fn line(point: &Point) -> String {
    let point = without_distributions(point.clone());
    serde_json::to_string(&point).expect("a point is a tree of maps with text keys") + "\n"
}
