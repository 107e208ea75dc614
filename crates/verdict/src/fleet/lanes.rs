//! Measurements outside the schedule: almost nothing else runs beside them.

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
    let mut waiting = (0..series.len()).filter(|&one| !series[one].is_empty());
    let mut open: Vec<usize> = Vec::new();
    loop {
        open.retain(|&one| given[one].len() < series[one].len());
        open.extend(waiting.by_ref().take((2 * at_once).saturating_sub(open.len())));
        let chosen = disjoint(&open, at_once, |one| series[one][given[one].len()]);
        if chosen.is_empty() {
            return Ok(given);
        }
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
}

/// The first series whose next pairs are disjoint.
fn disjoint(open: &[usize], at_once: usize, next: impl Fn(usize) -> [usize; 2]) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut busy: Vec<usize> = Vec::new();
    for &one in open {
        let pair = next(one);
        if chosen.len() < at_once && !pair.iter().any(|host| busy.contains(host)) {
            chosen.push(one);
            busy.extend(pair);
        }
    }
    chosen
}
