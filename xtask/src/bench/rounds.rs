//! The rounds: each item once, with the core-to-core latency before and after it.

use std::path::Path;

use anyhow::Result;

use super::plan::{Item, Row, Way};
use super::value::{Unit, Value};
use super::{fabric, mpi, ours, place, ucx};
use crate::shell;

/// How often a measurement is tried in a round until the placement is stable.
const ATTEMPTS: usize = 3;
/// The number of short runs, of which the median counts, for tools that print only a mean.
const RUNS: usize = 3;

/// A measurement during which the placement was stable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) round: usize,
    pub(super) line_ns: f64,
    pub(super) value: Value,
}

/// The results of an item.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) item: Item,
    pub(super) samples: Vec<Sample>,
    /// Measurements that do not count, because the core-to-core latency changed during them or
    /// rdmascope marked them as unstable.
    pub(super) unstable: usize,
    pub(super) failures: Vec<String>,
    /// The item cannot be measured here.
    pub(super) is_missing: bool,
}

/// A row and the results of its items.
pub(super) type Measured = (Row, Vec<Outcome>);

/// Where and how rows are measured.
pub(super) struct Bench<'a> {
    pub(super) cpus: &'a [String; 2],
    pub(super) scratch: &'a Path,
    pub(super) is_verbose: bool,
}

impl Bench<'_> {
    /// Measures all rows in a number of rounds.
    ///
    /// # Errors
    /// If the core-to-core latency cannot be measured; other failures are in the outcomes.
    pub(super) fn run(&self, rows: Vec<Row>, rounds: usize) -> Result<Vec<Measured>> {
        let mut measured: Vec<Measured> = rows.into_iter().map(|row| (row.clone(), outcomes(&row))).collect();
        let program = self.scratch.join("pingpong");
        let of_mpi = measured.iter_mut().flat_map(|(_, outcomes)| outcomes);
        let of_mpi =
            of_mpi.filter(|of| matches!(of.item.way, Way::Mpi(_) | Way::MpiOnSoftdev(_)) && !of.is_missing);
        let of_mpi: Vec<&mut Outcome> = of_mpi.collect();
        if !of_mpi.is_empty()
            && let Err(error) = mpi::build(&program)
        {
            of_mpi.into_iter().for_each(|of| of.miss(format!("{error:#}")));
        }
        for round in 0..rounds {
            eprintln!("xtask: bench: round {} of {rounds}", round + 1);
            for (row, outcomes) in &mut measured {
                let mut line_ns = place::line_ns(self.cpus)?;
                // An item inherits caches and placement from the item before it.
                let mut order: Vec<&mut Outcome> = outcomes.iter_mut().collect();
                if round % 2 == 1 {
                    order.reverse();
                }
                for outcome in order {
                    self.take(outcome, row, round, &mut line_ns, &program)?;
                }
            }
        }
        Ok(measured)
    }

    /// Measures an item until the placement is stable during the measurement.
    fn take(
        &self,
        outcome: &mut Outcome,
        row: &Row,
        round: usize,
        line_ns: &mut f64,
        program: &Path,
    ) -> Result<()> {
        if outcome.is_missing {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            let value = self.measure(&outcome.item, row.unit, program);
            let before = std::mem::replace(line_ns, place::line_ns(self.cpus)?);
            if self.is_verbose {
                let name = outcome.item.name;
                let after = *line_ns;
                eprintln!("{} {name}: line {before:.1} and {after:.1} ns: {value:?}", row.name);
            }
            match value {
                Err(error) => {
                    outcome.failures.push(format!("{error:#}"));
                    return Ok(());
                }
                Ok(value) if value.shown().is_some() && place::is_same(before, *line_ns) => {
                    outcome.samples.push(Sample { round, line_ns: before.midpoint(*line_ns), value });
                    return Ok(());
                }
                Ok(_) => outcome.unstable += 1,
            }
        }
        Ok(())
    }

    fn measure(&self, item: &Item, unit: Unit, program: &Path) -> Result<Value> {
        let cpus = self.cpus;
        let repeat = |measure: &dyn Fn() -> Result<Value>| {
            let runs = (0..RUNS).map(|_| measure()).collect::<Result<Vec<_>>>()?;
            Ok(Value::of_runs(&runs))
        };
        match &item.way {
            // The plan has repetitions.
            Way::Rdmascope(experiment) => ours::measure(experiment, unit, cpus, self.scratch),
            Way::Baseline(what) => repeat(&|| ours::raw(what, unit, cpus)),
            Way::Ucx(test) => repeat(&|| ucx::measure(test, unit, cpus)),
            Way::Fabric => repeat(&|| fabric::measure(cpus)),
            Way::Mpi(test) => mpi::measure(program, test, mpi::Over::SharedMemory, cpus),
            Way::MpiOnSoftdev(test) => mpi::measure(program, test, mpi::Over::Softdev, cpus),
        }
    }
}

impl Outcome {
    fn new(item: Item) -> Self {
        let samples = Vec::new();
        let failures = Vec::new();
        Self { item, samples, unstable: 0, failures, is_missing: false }
    }

    /// Marks the item as impossible to measure here.
    fn miss(&mut self, reason: String) {
        self.failures.push(reason);
        self.is_missing = true;
    }
}

fn outcomes(row: &Row) -> Vec<Outcome> {
    let of = |item: &Item| {
        let mut outcome = Outcome::new(*item);
        let (programs, packages) = item.way.needs();
        if !programs.iter().all(|program| shell::is_there(program)) {
            outcome.miss(format!("install {packages}"));
        }
        outcome
    };
    row.items.iter().map(of).collect()
}
