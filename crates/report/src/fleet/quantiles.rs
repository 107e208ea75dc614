//! The distribution of a quantity over the pairs of a fleet.

use measure::stats::{Share, quantile};
use verdict::fleet::Cell;

use super::value::Row;

/// The shares that are shown, with their headings.
pub(crate) const SHARES: [(&str, Share); 7] = [
    ("min", Share::new(0, 1)),
    ("1 %", Share::new(1, 100)),
    ("10 %", Share::P10),
    ("median", Share::P50),
    ("90 %", Share::P90),
    ("99 %", Share::P99),
    ("max", Share::new(1, 1)),
];

/// The values of pairs at [`SHARES`], in ns or bytes/s; none without a pair.
pub(crate) fn quantiles(row: &Row, cells: &[Cell]) -> Option<[f64; SHARES.len()]> {
    // Whole ns or bytes/s: more digits are not shown.
    at_shares(cells.iter().map(|cell| row.of_log(cell.value).round() as u64).collect())
}

/// Values at [`SHARES`] of them; none without a value.
pub(super) fn at_shares(mut values: Vec<u64>) -> Option<[f64; SHARES.len()]> {
    values.sort_unstable();
    let all: Option<Vec<f64>> =
        SHARES.iter().map(|(_, share)| quantile(&values, *share).map(|value| value as f64)).collect();
    all?.try_into().ok()
}
