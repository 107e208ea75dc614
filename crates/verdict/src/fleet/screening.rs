//! The rounds of a schedule, and the cells that they give.

use std::collections::{BTreeMap, BTreeSet};

use super::baseline::Baseline;
use super::cells::Cell;
use super::examined::Measurements;
use super::fit::Fit;
use super::hosts::Hosts;
use super::lanes::{self, Steps};
use super::options::{Options, Quantity};
use super::probe::{AnyProbe, Measured, Purpose, Reading, Round, Stopped, is_missing};
use super::robust::{median, median_of};

/// A round with fewer cells has no median of its own.
const CELLS_OF_ROUND: usize = 8;
/// The step of values shows in those that are as near to the median as this logarithm.
const NEAR: f64 = 0.1;
/// A value with at most this share of those near the median does not show the step.
const RARE: f64 = 0.01;
/// The pass of values that were measured after the passes.
const AFTERWARDS: u32 = u32::MAX;

/// All values of the screening.
pub(super) struct Screening {
    /// The values of each quantity, in the order in which they were measured.
    values: Vec<Vec<Value>>,
    /// What gave no value, in the same order: a quantity of a pair in one direction.
    none: Vec<Asked>,
    /// Complete passes.
    pub(super) passes: usize,
}

/// A quantity of a pair, in one direction, that a round asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Asked {
    pub(super) quantity: usize,
    /// The pair, as the round has it.
    pub(super) pair: [usize; 2],
    is_back: bool,
    round: u32,
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
    /// The best of the passes, as it is fitted.
    pub(super) best: Vec<f64>,
    /// The first round of each cell.
    pub(super) rounds: Vec<u32>,
    /// Differences between passes of one cell.
    pub(super) differences: Vec<f64>,
    /// The step of the measured values, such as that of the clock as a share of a latency.
    pub(super) step: f64,
}

impl Screening {
    /// Measures the passes over the schedule, as far as time allows.
    pub(super) fn run(
        hosts: &Hosts,
        options: &Options,
        probe: &mut AnyProbe<'_>,
        counts: &mut Measurements,
    ) -> Result<Self, Stopped> {
        let values = vec![Vec::new(); options.quantities.len()];
        let mut screening = Self { values, none: Vec::new(), passes: 0 };
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
                    screening.add(options, *pair, measured, [pass as u32, round as u32]);
                }
            }
            screening.passes += 1;
        }
        Ok(screening)
    }

    fn add(&mut self, options: &Options, pair: [usize; 2], measured: &Measured, [pass, round]: [u32; 2]) {
        let quantities = options.quantities.iter().zip(measured).enumerate();
        for (index, (Quantity { directed: is_directed, .. }, reading)) in quantities {
            for is_back in [false, true] {
                let [from, to] = if is_back { [pair[1], pair[0]] } else { pair };
                // Messages of a fan go one way.
                let is_asked = !is_back || (*is_directed && !options.schedule.is_fan);
                match directed(*reading, *is_directed, is_back) {
                    Some(raw) => self.values[index].push(Value {
                        from: from as u32,
                        to: to as u32,
                        pass,
                        round,
                        raw,
                        value: raw,
                    }),
                    None if is_asked => self.none.push(Asked { quantity: index, pair, is_back, round }),
                    None => {}
                }
            }
        }
    }

    /// The quantities of pairs, in one direction, of which no round has given a value, in the order
    /// of their first rounds.
    pub(super) fn lost(&self) -> Vec<Asked> {
        if self.none.is_empty() {
            return Vec::new();
        }
        let known = |values: &Vec<Value>| {
            values.iter().map(|value| [value.from as usize, value.to as usize]).collect()
        };
        let known: Vec<BTreeSet<[usize; 2]>> = self.values.iter().map(known).collect();
        let mut lost: BTreeMap<(usize, [usize; 2]), Asked> = BTreeMap::new();
        for asked in &self.none {
            let [a, b] = asked.pair;
            let way = if asked.is_back { [b, a] } else { [a, b] };
            if !known[asked.quantity].contains(&way) {
                lost.entry((asked.quantity, way)).or_insert(*asked);
            }
        }
        let mut lost: Vec<Asked> = lost.into_values().collect();
        lost.sort_by_key(|asked| asked.round);
        lost
    }

    /// The pairs of which something is lost, each with its first round.
    pub(super) fn lost_pairs(&self) -> Vec<([usize; 2], u32)> {
        let mut seen = BTreeSet::new();
        let lost = self.lost().into_iter().filter(|asked| seen.insert(asked.pair));
        lost.map(|asked| (asked.pair, asked.round)).collect()
    }

    /// Measures lost pairs once more.
    pub(super) fn again(
        &mut self,
        pairs: &[([usize; 2], u32)],
        options: &Options,
        at_once: usize,
        probe: &mut AnyProbe<'_>,
        counts: &mut Measurements,
    ) -> Result<(), Stopped> {
        let series: Vec<Steps> = pairs.iter().map(|(pair, _)| vec![*pair]).collect();
        let given = lanes::run(probe, &series, at_once, Purpose::Again { repetition: 0 }, counts)?;
        for ((pair, round), measured) in pairs.iter().zip(given.concat()) {
            self.add(options, *pair, &measured, [AFTERWARDS, *round]);
        }
        Ok(())
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
        let mut table = Table { step: step(values.iter().map(|value| value.raw)), ..Table::default() };
        for cell in values.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
            let Value { from, to, round, .. } = cell[0];
            let value = chosen(cell.iter().map(|value| value.value), is_better_of_two);
            table.fitted.push(Cell { from, to, value });
            table.raw.push(chosen(cell.iter().map(|value| value.raw), is_better_of_two));
            table.best.push(cell.iter().map(|value| value.value).fold(f64::NEG_INFINITY, f64::max));
            table.rounds.push(round);
            for (index, value) in cell.iter().enumerate() {
                table.differences.extend(cell[..index].iter().map(|earlier| value.value - earlier.value));
            }
        }
        table
    }
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
/// different latencies. Where values repeat, only those count that are not [`RARE`]: one host with
/// another clock adds values between the steps. 0 if there is one value alone.
fn step(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let middle = median(values.clone()).unwrap_or(0.0);
    let mut near: Vec<f64> = values.filter(|raw| (raw - middle).abs() < NEAR).collect();
    near.sort_unstable_by(f64::total_cmp);
    let smallest = |values: &[f64]| {
        let steps = values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
        steps.reduce(f64::min)
    };
    let is_often = |same: &&[f64]| same.len() as f64 > RARE * near.len() as f64;
    let often: Vec<f64> = near.chunk_by(f64::eq).filter(is_often).map(|same| same[0]).collect();
    smallest(&often).or_else(|| smallest(&near)).unwrap_or(0.0)
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

#[cfg(test)]
mod tests {
    use super::step;

    /// 32 hosts with latencies of 740 ns in steps of 40 ns, of which one host has 780 ns and one
    /// pair 750 ns.
    #[test]
    fn one_value_off_the_steps_does_not_change_them() {
        let steps = [740.0_f64; 900].into_iter().chain([780.0; 31]).chain([700.0; 60]);
        let on_steps = step(steps.clone().map(|ns| -ns.ln()));
        assert!((on_steps - (780.0_f64 / 740.0).ln()).abs() < 1e-12, "{on_steps}");
        assert_eq!(step(steps.chain([750.0]).map(|ns| -ns.ln())), on_steps);
        // Values that never repeat have no step to speak of.
        assert!(step((0..1000_u32).map(|index| f64::from(index) * 1e-5)) < 2e-5);
        assert_eq!((step([0.5; 9].into_iter()), step(std::iter::empty())), (0.0, 0.0));
    }
}
