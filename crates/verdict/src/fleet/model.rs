//! One quantity after the screening: its cells, its effects and its thresholds.

use super::baseline::Baseline;
use super::cells::Cell;
use super::distance::Distances;
use super::examined::{Effects, Judged, Place, Reason, Way};
use super::fit::Fit;
use super::hosts::Hosts;
use super::options::{Level, Options};
use super::probe::Measured;
use super::robust::median;
use super::scales::{Known, Scales};
use super::screening::{Screening, Table, directed};

/// A quantity with its model.
pub(super) struct Model {
    /// The index of the quantity.
    pub(super) quantity: usize,
    /// Whether a pair has two values.
    pub(super) directed: bool,
    /// The stated expectation of each host.
    floor: Option<Vec<f64>>,
    /// The number of hosts.
    pub(super) count: usize,
    pub(super) table: Table,
    pub(super) fit: Fit,
    /// The scales, or why nothing can be decided.
    pub(super) scales: Result<Scales, Reason>,
    pub(super) level: Level,
    baseline: Option<Baseline>,
}

impl Model {
    /// The model of one quantity. The median of a round's values moves with the number of slow
    /// hosts and of distant pairs in it. So a first model, of values as they are, gives the effects
    /// without which rounds are compared, and a second one is fitted to what is then left.
    pub(super) fn of(index: usize, hosts: &Hosts, options: &Options, screening: &Screening) -> Self {
        let count = hosts.count;
        let quantity = &options.quantities[index];
        let distances = || Distances::of(hosts);
        let earlier = |cells: &Vec<Cell>| Baseline::of(count, distances(), cells, quantity.directed);
        let baseline = quantity.baseline.as_ref().map(earlier);
        let polish = if quantity.directed { Fit::of } else { Fit::symmetric };
        let fit = |table: &Table| polish(count, distances(), &table.fitted);
        let first = fit(&screening.table(index, quantity.directed, baseline.as_ref(), None));
        let table = screening.table(index, quantity.directed, baseline.as_ref(), Some(&first));
        let fit = fit(&table);
        let known = Known {
            directed: quantity.directed,
            passes: screening.passes,
            differences: &table.differences,
            has_baseline: baseline.is_some(),
        };
        let level = options.level(table.step);
        let scales = match options.schedule.no_blame {
            Some(_) => Err(Reason::Schedule),
            None => Scales::of(&fit, known, level),
        };
        let floor = quantity.floor.clone();
        Self {
            quantity: index,
            directed: quantity.directed,
            floor,
            count,
            table,
            fit,
            scales,
            level,
            baseline,
        }
    }

    /// What a measurement of a pair gave from one of its hosts to the other.
    pub(super) fn raw(&self, pair: [usize; 2], measured: &Measured, from: usize) -> Option<f64> {
        directed(*measured.get(self.quantity)?, self.directed, from == pair[1])
    }

    /// The same without the baseline.
    pub(super) fn value(&self, pair: [usize; 2], measured: &Measured, from: usize) -> Option<f64> {
        let to = if from == pair[0] { pair[1] } else { pair[0] };
        let was = self.baseline.as_ref().map_or(Some(0.0), |baseline| baseline.value(from, to));
        Some(self.raw(pair, measured, from)? - was?)
    }

    /// How far a value of a pair is above the stated expectation; `None` without one.
    pub(super) fn above(&self, pair: [usize; 2], value: f64) -> Option<f64> {
        let of = self.floor.as_ref()?;
        Some(value - pair.map(|host| of[host]).into_iter().fold(f64::INFINITY, f64::min))
    }

    /// By how much all hosts together are slower than in the baseline, as a negative logarithm;
    /// `None` if it is less than the least deficit.
    pub(super) fn behind_baseline(&self) -> Option<f64> {
        (self.baseline.is_some() && self.fit.level <= -self.level.least).then_some(self.fit.level)
    }

    /// What a later examination compares with ([`lasting`](super::lasting)).
    pub(super) fn lasting(&self) -> Vec<Cell> {
        let expected = |cell: &Cell, best: f64| best.min(self.fit.expected(cell.from, cell.to));
        let cells = || self.table.fitted.iter().zip(self.table.best.iter().copied());
        // Lowered cells must not look as if the whole fleet had been slower.
        let lowered = median(cells().map(|(cell, best)| expected(cell, best) - cell.value)).unwrap_or(0.0);
        let lasting = cells().filter(|(cell, _)| self.directed || cell.from < cell.to);
        let lasting = lasting.filter_map(|(cell, best)| {
            let was = |baseline: &Baseline| baseline.value(cell.from as usize, cell.to as usize);
            let was = self.baseline.as_ref().map_or(Some(0.0), was)?;
            Some(Cell { value: was + expected(cell, best) - lowered, ..*cell })
        });
        lasting.collect()
    }

    /// Whether there is a stated expectation.
    pub(super) fn has_floor(&self) -> bool {
        self.floor.is_some()
    }

    /// From how far below the expectation on a place is named; 0 if nothing tells the noise.
    pub(super) fn margin(&self, place: Place) -> f64 {
        let cells = match place {
            Place::Fleet | Place::Network(_) => self.table.fitted.len(),
            _ => 1,
        };
        self.scales.map_or(0.0, |scales| scales.noise(cells))
    }

    /// The effect of a host.
    pub(super) fn effect(&self, host: usize, way: Way) -> f64 {
        match way {
            Way::Send => self.fit.send[host],
            Way::Receive => self.fit.receive[host],
        }
    }

    /// The number of a host's cells.
    pub(super) fn cells_of(&self, host: usize, way: Way) -> usize {
        match way {
            Way::Send => self.fit.sent[host],
            Way::Receive => self.fit.received[host],
        }
    }

    /// The effect below which a host is named; `None` if that cannot be decided.
    pub(super) fn host_bound(&self, host: usize, way: Way) -> Option<f64> {
        let scales = self.scales.ok()?;
        let cells = self.cells_of(host, way);
        (2 * cells > scales.cells).then(|| -scales.host(cells))
    }

    /// The effect below which a pair is named; `None` if that cannot be decided.
    pub(super) fn pair_bound(&self) -> Option<f64> {
        self.scales.ok().map(|scales| -scales.pair())
    }

    /// The residual of a cell; `None` if it was not measured.
    pub(super) fn residual(&self, from: usize, to: usize) -> Option<f64> {
        self.cell(from, to).map(|index| self.fit.residuals[index])
    }

    /// The first round of a cell; `None` if it was not measured.
    pub(super) fn round(&self, from: usize, to: usize) -> Option<u32> {
        self.cell(from, to).map(|index| self.table.rounds[index])
    }

    fn cell(&self, from: usize, to: usize) -> Option<usize> {
        let key = (from as u32, to as u32);
        self.table.fitted.binary_search_by_key(&key, |cell| (cell.from, cell.to)).ok()
    }

    /// How far a host is from the others: the larger of its effects, in units of the threshold.
    pub(super) fn deviation(&self, host: usize) -> f64 {
        let unit = self.scales.map_or(self.level.least, |scales| scales.host(scales.cells));
        self.fit.send[host].abs().max(self.fit.receive[host].abs()) / unit
    }

    /// What a report needs.
    pub(super) fn judged(self, name: &str) -> Judged {
        let values =
            self.table.fitted.iter().zip(&self.table.raw).map(|(cell, &value)| Cell { value, ..*cell });
        let cells = values.filter(|cell| self.directed || cell.from < cell.to).collect();
        let known = |effects: Vec<f64>, cells: &[usize]| {
            effects.into_iter().zip(cells).map(|(effect, &cells)| (cells > 0).then_some(effect)).collect()
        };
        let effects = (!self.table.fitted.is_empty()).then(|| Effects {
            level: self.fit.level,
            send: known(self.fit.send, &self.fit.sent),
            receive: known(self.fit.receive, &self.fit.received),
        });
        let thresholds = self.scales.ok().map(|scales| scales.thresholds());
        Judged { name: name.to_owned(), directed: self.directed, cells, effects, thresholds }
    }
}
