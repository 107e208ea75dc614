//! Differences of series: what a layer adds to the one below, or how far each is above a reference.

use super::cells::{Cell, Number, Series};

/// The first series as it is, and the others minus the one before.
pub(super) fn of_each(series: Vec<Series>) -> Vec<Series> {
    let first = series.first().cloned();
    first.into_iter().chain(series.windows(2).map(|pair| less(&pair[1], &pair[0]))).collect()
}

/// All series but the first, minus the first.
pub(super) fn above_first(series: Vec<Series>) -> Vec<Series> {
    let Some((first, rest)) = series.split_first() else { return series };
    rest.iter().map(|here| less(here, first)).collect()
}

fn less(here: &Series, below: &Series) -> Series {
    let cells = here.cells.iter().zip(&below.cells).map(|(here, below)| cell(here, below)).collect();
    let label = format!("{} - {}", here.label, below.label);
    Series { label, key: here.key.clone(), words: here.words.clone(), cells }
}

/// The difference of two cells; without a number, the reason of the cell that has none.
fn cell(here: &Cell, below: &Cell) -> Cell {
    match (here, below) {
        (Cell::Value(here), Cell::Value(below)) => Cell::Value(number(here, below)),
        (Cell::Value(_), other) | (other, _) => other.clone(),
    }
}

/// The difference of two numbers. Its spread reaches from the smallest to the largest difference of
/// two repetitions.
pub(super) fn number(here: &Number, below: &Number) -> Number {
    Number {
        median: here.median - below.median,
        runs: [here.runs[0] - below.runs[1], here.runs[1] - below.runs[0]],
        repetitions: here.repetitions.min(below.repetitions),
        are_launches: here.are_launches || below.are_launches,
        quantiles: None,
        bound: here.bound.zip(below.bound).map(|(here, below)| here + below),
        samples: None,
        id: here.id,
        at_limit: None,
        doubts: below.doubts.iter().chain(&here.doubts).cloned().collect(),
    }
}
