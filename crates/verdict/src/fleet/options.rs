//! What is asked of an examination.

use super::cells::Cell;
use super::schedule::{Amounts, Schedule};

/// What is measured, and how a verdict is reached.
#[derive(Clone, Debug)]
pub struct Options {
    /// The quantities of a pair. Each is judged alone; the level of false alarms is for all.
    pub quantities: Vec<Quantity>,
    /// Which pairs are measured at the same time.
    pub schedule: &'static Schedule,
    /// How much of the schedule.
    pub amounts: Amounts,
    /// How often the schedule is measured; `None`: as its row says.
    pub passes: Option<usize>,
    /// The least deficit worth saying, as a share of the others' value (`--least`).
    pub least: f64,
    /// The natural difference between healthy hosts, as a share (`--tolerance`).
    pub tolerance: f64,
    /// The share of healthy fleets in which something may be named.
    pub alpha: f64,
    /// For the schedules that draw pairs at random.
    pub seed: u64,
}

/// A quantity that is measured of each pair.
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    /// Its path in a record, or any name.
    pub name: String,
    /// Whether the two directions of a pair differ, as for a throughput. The latency of a round
    /// trip has none.
    pub directed: bool,
    /// The least value that is expected of each host (`--at-least`), as a logarithm. Of a pair,
    /// the lesser one of both hosts is expected.
    pub floor: Option<Vec<f64>>,
    /// What lasts of an earlier examination of the same hosts ([`lasting()`](super::lasting());
    /// `--baseline`). With it, the question is which host or pair changed.
    pub baseline: Option<Vec<Cell>>,
}

/// What the thresholds of one quantity follow from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// The least deficit worth saying, as a logarithm.
    pub(super) least: f64,
    /// The natural difference between healthy hosts.
    pub(super) tolerance: f64,
    /// The share of false alarms of this quantity.
    pub(super) alpha: f64,
}

impl Options {
    /// The defaults for these quantities and this schedule.
    pub fn new(quantities: Vec<Quantity>, schedule: &'static Schedule) -> Self {
        Self {
            quantities,
            schedule,
            amounts: Amounts::default(),
            passes: None,
            least: 0.05,
            tolerance: 0.01,
            alpha: 0.01,
            seed: 1,
        }
    }

    /// How often the schedule is measured.
    pub fn passes(&self) -> usize {
        self.passes.unwrap_or(self.schedule.passes).max(1)
    }

    /// The level of each quantity: the false alarms of all together stay below `alpha`. A
    /// difference of one step of its values is rounding.
    pub(super) fn level(&self, step: f64) -> Level {
        Level {
            least: (-(1.0 - self.least).ln()).max(2.0 * step),
            tolerance: self.tolerance,
            alpha: self.alpha / self.quantities.len().max(1) as f64,
        }
    }
}

impl Quantity {
    /// A quantity of each direction, such as a throughput.
    pub fn directed(name: &str) -> Self {
        Self { name: name.to_owned(), directed: true, ..Self::default() }
    }

    /// A quantity without direction, such as the latency of a round trip.
    pub fn symmetric(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}
