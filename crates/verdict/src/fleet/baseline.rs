//! The values that an earlier examination of the same hosts leads to expect.

use super::cells::{Cell, mirrored};
use super::distance::Distances;
use super::fit::Fit;

/// An earlier examination's cells, and their model for pairs that it did not measure.
pub(super) struct Baseline {
    cells: Vec<Cell>,
    fit: Fit,
}

impl Baseline {
    /// From the cells of an examination; those of other hosts than the first `count` are ignored.
    pub(super) fn of(count: usize, distances: Distances, cells: &[Cell], directed: bool) -> Self {
        let is_known = |cell: &&Cell| cell.from.max(cell.to) < count as u32 && cell.value.is_finite();
        let mut cells: Vec<Cell> = cells.iter().filter(is_known).copied().collect();
        if !directed {
            cells = mirrored(&cells);
        }
        cells.sort_unstable_by_key(|cell| (cell.from, cell.to));
        let fit = if directed { Fit::of } else { Fit::symmetric };
        let fit = fit(count, distances, &cells);
        Self { cells, fit }
    }

    /// What a cell was, or what its hosts' effects lead to expect; `None` if one of them is
    /// unknown.
    pub(super) fn value(&self, from: usize, to: usize) -> Option<f64> {
        let key = (from as u32, to as u32);
        let found = self.cells.binary_search_by_key(&key, |cell| (cell.from, cell.to));
        let expected = || {
            let is_known = self.fit.sent[from] > 0 && self.fit.received[to] > 0;
            is_known.then(|| self.fit.expected(key.0, key.1))
        };
        found.ok().map(|index| self.cells[index].value).or_else(expected)
    }
}
