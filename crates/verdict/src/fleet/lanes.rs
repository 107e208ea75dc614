//! Measurements outside the schedule: almost nothing else runs beside them.

use std::collections::BTreeSet;

use super::examined::Measurements;
use super::probe::{AnyProbe, Measured, Purpose, Round, Stopped, is_missing};

/// Measurements of one pair after the other.
pub(super) type Steps = Vec<[usize; 2]>;

/// Measures several series of steps. Each series is in order, and at most `at_once` disjoint pairs,
/// of different series, are measured at the same time. Returns what each step gave.
pub(super) fn run(
    probe: &mut AnyProbe<'_>,
    series: &[Steps],
    at_once: usize,
    purpose: Purpose,
    counts: &mut Measurements,
) -> Result<Vec<Vec<Measured>>, Stopped> {
    let mut given: Vec<Vec<Measured>> = series.iter().map(|_| Vec::new()).collect();
    for chosen in Rounds::of(series, at_once) {
        let pairs: Steps = chosen.iter().map(|&one| series[one][given[one].len()]).collect();
        let measured = probe.round(&Round { purpose, pairs })?;
        for (&one, measured) in chosen.iter().zip(measured) {
            counts.missing += usize::from(is_missing(&measured));
            given[one].push(measured);
        }
        match purpose {
            Purpose::Again { .. } => counts.again += chosen.len(),
            _ => counts.confirmation += chosen.len(),
        }
    }
    Ok(given)
}

/// The number of rounds in which [`run`] measures these series.
pub(super) fn rounds(series: &[Steps], at_once: usize) -> usize {
    Rounds::of(series, at_once).count()
}

/// The rounds of several series: in each, the next steps of the series of these indices.
struct Rounds<'a> {
    series: &'a [Steps],
    at_once: usize,
    /// How many steps of each series are done.
    done: Vec<usize>,
    /// The series that have begun and are not done.
    open: Vec<usize>,
    /// The first series that has not begun.
    waiting: usize,
}

impl<'a> Rounds<'a> {
    fn of(series: &'a [Steps], at_once: usize) -> Self {
        Self { series, at_once, done: vec![0; series.len()], open: Vec::new(), waiting: 0 }
    }
}

impl Iterator for Rounds<'_> {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let Self { series, at_once, done, open, waiting } = self;
        open.retain(|&one| done[one] < series[one].len());
        while open.len() < 2 * *at_once && *waiting < series.len() {
            open.extend((!series[*waiting].is_empty()).then_some(*waiting));
            *waiting += 1;
        }
        let chosen = disjoint(open, *at_once, |one| series[one][done[one]]);
        chosen.iter().for_each(|&one| done[one] += 1);
        (!chosen.is_empty()).then_some(chosen)
    }
}

/// The first series whose next pairs are disjoint.
fn disjoint(open: &[usize], at_once: usize, next: impl Fn(usize) -> [usize; 2]) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut busy = BTreeSet::new();
    for &one in open {
        if chosen.len() == at_once {
            break;
        }
        let pair = next(one);
        if !pair.iter().any(|host| busy.contains(host)) {
            chosen.push(one);
            busy.extend(pair);
        }
    }
    chosen
}
