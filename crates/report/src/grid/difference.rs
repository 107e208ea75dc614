//! Each series less the one before it: what a layer adds to the one below.

use super::{Cell, Number, Series};

/// The first as it is, the others less the one before.
pub(super) fn of_each(series: Vec<Series>) -> Vec<Series> {
    let less = |(index, here): (usize, &Series)| {
        let below = index.checked_sub(1).map(|below| &series[below]);
        let label =
            below.map_or_else(|| here.label.clone(), |below| format!("{} - {}", here.label, below.label));
        let cells = match below {
            None => here.cells.clone(),
            Some(below) => {
                here.cells.iter().zip(&below.cells).map(|(here, below)| cell(here, below)).collect()
            }
        };
        Series { label, key: here.key.clone(), words: here.words.clone(), cells }
    };
    series.iter().enumerate().map(less).collect()
}

/// Where either has no number, there is none, for its reason.
fn cell(here: &Cell, below: &Cell) -> Cell {
    match (here, below) {
        (Cell::Value(here), Cell::Value(below)) => Cell::Value(number(here, below)),
        (Cell::Value(_), other) | (other, _) => other.clone(),
    }
}

/// The spread reaches from the least that the difference of two repetitions can be to the largest.
fn number(here: &Number, below: &Number) -> Number {
    Number {
        median: here.median - below.median,
        runs: [here.runs[0] - below.runs[1], here.runs[1] - below.runs[0]],
        repetitions: here.repetitions.min(below.repetitions),
        quantiles: None,
        bound: here.bound.zip(below.bound).map(|(here, below)| here + below),
        samples: None,
        id: here.id,
        at_best: None,
        doubts: below.doubts.iter().chain(&here.doubts).cloned().collect(),
    }
}
