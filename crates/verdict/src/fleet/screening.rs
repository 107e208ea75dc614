//! The rounds of a schedule, and the cells that they give.

use super::baseline::Baseline;
use super::cells::Cell;
use super::examined::Measurements;
use super::fit::Fit;
use super::hosts::Hosts;
use super::options::{Options, Quantity};
use super::probe::{Measured, Probe, Purpose, Reading, Round};
use super::robust::{median, median_of};

/// A round with fewer cells has no median of its own.
const CELLS_OF_ROUND: usize = 8;
/// The step of values shows in those that are as near to the median as this logarithm.
const NEAR: f64 = 0.1;

/// All values of the screening.
pub(super) struct Screening {
    /// The values of each quantity, in the order in which they were measured.
    values: Vec<Vec<Value>>,
    /// Complete passes.
    pub(super) passes: usize,
}

/// One value in one direction.
#[derive(Clone, Copy, Debug)]
struct Value {
    from: u32,
    to: u32,
    pass: u32,
    round: u32,
    /// As measured.
    raw: f64,
    /// Without what the baseline and the round explain.
    value: f64,
}

/// The cells of one quantity, sorted by sender and receiver, in both directions of every pair.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Without what the rounds and the baseline explain: what is fitted.
    pub(super) fitted: Vec<Cell>,
    /// As measured.
    pub(super) raw: Vec<f64>,
    /// The first round of each cell.
    pub(super) rounds: Vec<u32>,
    /// Differences between passes of one cell.
    pub(super) differences: Vec<f64>,
    /// The step of the measured values, such as that of the clock as a share of a latency.
    pub(super) step: f64,
}

impl Screening {
    /// Measures the passes over the schedule, as far as time allows.
    pub(super) fn run<P: Probe>(
        hosts: &Hosts,
        options: &Options,
        probe: &mut P,
        counts: &mut Measurements,
    ) -> Result<Self, P::Error> {
        let mut screening = Self { values: vec![Vec::new(); options.quantities.len()], passes: 0 };
        for pass in 0..options.passes() {
            for (round, pairs) in options.schedule.rounds(hosts, &options.amounts, options.seed).enumerate() {
                if counts.rounds > 0 && !probe.goes_on() {
                    counts.is_cut = true;
                    return Ok(screening);
                }
                let asked = Round { purpose: Purpose::Screening { pass, round }, pairs };
                let measured = probe.round(&asked)?;
                counts.rounds += 1;
                counts.screening += asked.pairs.len();
                for (pair, measured) in asked.pairs.iter().zip(&measured) {
                    counts.missing += usize::from(is_missing(measured));
                    screening.add(&options.quantities, *pair, measured, [pass as u32, round as u32]);
                }
            }
            screening.passes += 1;
        }
        Ok(screening)
    }

    fn add(
        &mut self,
        quantities: &[Quantity],
        [a, b]: [usize; 2],
        measured: &Measured,
        [pass, round]: [u32; 2],
    ) {
        for ((values, quantity), reading) in self.values.iter_mut().zip(quantities).zip(measured) {
            let mut push = |from: usize, to: usize| {
                let value = directed(*reading, quantity.directed, from == b);
                let place = |raw| Value { from: from as u32, to: to as u32, pass, round, raw, value: raw };
                values.extend(value.map(place));
            };
            push(a, b);
            push(b, a);
        }
    }

    /// The cells of a quantity. Rounds are compared by how far their cells are from a first model;
    /// without one, they are taken as they are.
    pub(super) fn table(
        &self,
        index: usize,
        is_directed: bool,
        baseline: Option<&Baseline>,
        first: Option<&Fit>,
    ) -> Table {
        let mut values = self.values[index].clone();
        if let Some(baseline) = baseline {
            values.retain_mut(|value| {
                let was = baseline.value(value.from as usize, value.to as usize);
                value.value -= was.unwrap_or(0.0);
                was.is_some()
            });
        }
        if let Some(first) = first {
            centre_rounds(&mut values, if is_directed { CELLS_OF_ROUND } else { 2 * CELLS_OF_ROUND }, first);
        }
        // A stable sort: the values of a cell stay in the order of their passes.
        values.sort_by_key(|value| u64::from(value.from) << 32 | u64::from(value.to));
        let is_better_of_two = self.passes == 2;
        let mut table = Table { step: step(&values), ..Table::default() };
        for cell in values.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
            let Value { from, to, round, .. } = cell[0];
            let value = chosen(cell.iter().map(|value| value.value), is_better_of_two);
            table.fitted.push(Cell { from, to, value });
            table.raw.push(chosen(cell.iter().map(|value| value.raw), is_better_of_two));
            table.rounds.push(round);
            for (index, value) in cell.iter().enumerate() {
                table.differences.extend(cell[..index].iter().map(|earlier| value.value - earlier.value));
            }
        }
        table
    }
}

/// Whether a measurement gave nothing.
pub(super) fn is_missing(measured: &Measured) -> bool {
    measured.iter().all(|reading| reading.there.is_none() && reading.back.is_none())
}

/// The value of a reading in one direction; `None` if it was not measured.
pub(super) fn directed(reading: Reading, is_directed: bool, is_back: bool) -> Option<f64> {
    let value = if is_directed && is_back { reading.back } else { reading.there };
    value.filter(|value| value.is_finite())
}

/// The better of two passes, else the middle: with two passes, a slow outlier is likelier than a
/// fast one.
fn chosen(values: impl ExactSizeIterator<Item = f64>, is_better_of_two: bool) -> f64 {
    match is_better_of_two && values.len() == 2 {
        true => values.fold(f64::NEG_INFINITY, f64::max),
        false => median(values).unwrap_or(f64::NAN),
    }
}

/// The smallest difference between values near their median: a clock with a coarse step gives few
/// different latencies. 0 if there is one value alone.
fn step(values: &[Value]) -> f64 {
    let middle = median(values.iter().map(|value| value.raw)).unwrap_or(0.0);
    let near = values.iter().map(|value| value.raw).filter(|raw| (raw - middle).abs() < NEAR);
    let mut near: Vec<f64> = near.collect();
    near.sort_unstable_by(f64::total_cmp);
    let steps = near.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    steps.reduce(f64::min).unwrap_or(0.0)
}

/// Replaces the median of each round of at least `least` values by that of its pass: what all pairs
/// of a round have in common blames nobody.
fn centre_rounds(values: &mut [Value], least: usize, first: &Fit) {
    let residual = |value: &Value| value.value - first.expected(value.from, value.to);
    debug_assert!(values.is_sorted_by_key(|value| (value.pass, value.round)));
    let mut scratch = Vec::new();
    for pass in values.chunk_by_mut(|a, b| a.pass == b.pass) {
        let middle = median(pass.iter().map(residual)).unwrap_or(0.0);
        for round in pass.chunk_by_mut(|a, b| a.round == b.round).filter(|round| round.len() >= least) {
            scratch.clear();
            scratch.extend(round.iter().map(residual));
            let shift = middle - median_of(&mut scratch).unwrap_or(middle);
            round.iter_mut().for_each(|value| value.value += shift);
        }
    }
}
