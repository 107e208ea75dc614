//! Series as multiples of others that differ from them only in some axes.

use std::collections::BTreeMap;

use measure::text::value;
use serde_json::Value;

use super::cells::{Cell, Number, Series};
use super::difference::number as less;

/// Divides each series by the one that has these values of its axes and otherwise the same ones.
pub(super) fn relative(series: &[Series], to: &BTreeMap<String, Value>) -> Vec<Series> {
    let one = |here: &Series| {
        let key: Vec<_> = here.key.iter().map(|(axis, own)| (axis, to.get(axis).unwrap_or(own))).collect();
        let is_it =
            |other: &&Series| other.key.iter().map(|(axis, value)| (axis, value)).eq(key.iter().copied());
        let below = series.iter().find(is_it);
        let cells = here.cells.iter().enumerate().map(|(row, cell)| match below {
            Some(below) => ratio(cell, &below.cells[row], std::ptr::eq(here, below), to),
            None => without(cell, to),
        });
        Series { cells: cells.collect(), ..here.clone() }
    };
    series.iter().map(one).collect()
}

/// The text after the name of the number: `relative to mode ib`.
pub(super) fn words(to: &BTreeMap<String, Value>) -> String {
    let all: Vec<_> =
        to.iter().map(|(axis, of)| format!("{} {}", axis.replace('_', " "), value(of))).collect();
    format!("relative to {}", all.join(" and "))
}

fn ratio(here: &Cell, below: &Cell, is_same: bool, to: &BTreeMap<String, Value>) -> Cell {
    match (here, below) {
        (Cell::Value(_), Cell::Value(below)) if below.runs[0] <= 0.0 => Cell::NotMeasured(format!(
            "the number with {} is not above zero, so there is no multiple of it",
            of(to)
        )),
        (Cell::Value(here), Cell::Value(below)) => Cell::Value(number(here, below, is_same, to)),
        _ => without(here, to),
    }
}

/// A cell without a number to compare it with.
fn without(here: &Cell, to: &BTreeMap<String, Value>) -> Cell {
    match here {
        Cell::Value(_) => {
            Cell::NotMeasured(format!("no number with {} was measured here to divide by", of(to)))
        }
        other => other.clone(),
    }
}

/// Axes with their values, in words.
fn of(to: &BTreeMap<String, Value>) -> String {
    let all: Vec<_> =
        to.iter().map(|(axis, of)| format!("{} {}", axis.replace('_', " "), value(of))).collect();
    all.join(" and ")
}

/// The ratio of two numbers. Its spread reaches from the smallest to the largest ratio of two
/// repetitions.
fn number(here: &Number, below: &Number, is_same: bool, to: &BTreeMap<String, Value>) -> Number {
    let base = below.doubts.iter().filter(|_| !is_same).map(|doubt| format!("with {}: {doubt}", of(to)));
    Number {
        median: here.median / below.median,
        runs: [here.runs[0] / below.runs[1], here.runs[1] / below.runs[0]],
        bound: None,
        doubts: base.chain(here.doubts.iter().cloned()).collect(),
        ..less(here, below)
    }
}
