//! Merges the stamps of both ranks, and determines what became of each step.

use std::collections::BTreeMap;

use measure::record::LatencyKind;
use measure::samples::Stamps;

use crate::Error;
use crate::patterns::one_way::{Column, Joined, Messages, Stamped};
use crate::point::PointSpec;

/// Merges the stamps of rank 0 and rank 1.
///
/// # Errors
/// [`Error::Clocks`] where the two clocks cannot be compared; [`Error::NoSamples`] where nothing
/// arrived.
pub(crate) fn merge(spec: &PointSpec, source: &Stamped, target: &Stamped) -> Result<Joined, Error> {
    let fates = Fates::of(columns(source, target), usize::try_from(spec.warmup).unwrap_or(usize::MAX));
    fates.have_arrived()?;
    let mut messages = Messages::new(spec, source, target, LatencyKind::Arrival, Column::Due)?;
    let arrived = messages.arrived();
    let others = vec![
        (LatencyKind::OneWay, messages.since(Column::Submitted)),
        (LatencyKind::Lateness, messages.within(Column::Due, Column::Submitted)),
    ];
    messages.put_together(&arrived, others, fates.counters())
}

/// The counters of what became of the steps from `first` on, also where no sample arrived and
/// [`merge`] fails.
pub(crate) fn fates(first: usize, source: &Stamped, target: &Stamped) -> BTreeMap<String, u64> {
    Fates::of(columns(source, target), first).counters()
}

/// The stamps of both ranks for each step, in the order of [`Fates::of`].
fn columns<'a>(source: &'a Stamped, target: &'a Stamped) -> [&'a [u64]; 3] {
    [source.column(Column::Due), source.column(Column::Submitted), target.column(Column::Received)]
}

/// What became of the steps that count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Fates {
    /// No sample was generated.
    missed: u64,
    /// The endpoint had no room for the sample.
    refused: u64,
    /// The endpoint took the sample, but no sample had arrived yet, and this one did not.
    early: u64,
    /// The endpoint took the sample, an earlier one had arrived, and this one did not.
    lost: u64,
    received: u64,
}

impl Fates {
    /// Counts the steps by three lists of stamps: when each step was due, if a sample was
    /// generated; when it was generated, if the endpoint took it; when it arrived. Steps before
    /// `first` only tell whether a sample had arrived.
    fn of([due, submitted, received]: [&[u64]; 3], first: usize) -> Self {
        let is = |stamps: &[u64], step: usize| stamps.get(step).is_some_and(|stamp| *stamp != Stamps::NONE);
        let mut fates = Self::default();
        let mut has_arrived = false;
        for step in 0..due.len() {
            let fate = match (is(due, step), is(submitted, step), is(received, step)) {
                (.., true) => {
                    has_arrived = true;
                    &mut fates.received
                }
                (false, ..) => &mut fates.missed,
                (true, false, _) => &mut fates.refused,
                (true, true, _) if has_arrived => &mut fates.lost,
                (true, true, _) => &mut fates.early,
            };
            *fate += u64::from(step >= first);
        }
        fates
    }

    /// Fails where no sample arrived.
    fn have_arrived(&self) -> Result<(), Error> {
        let Self { missed, refused, early, lost, received } = *self;
        let unsent = refused + early + lost;
        if received > 0 { Ok(()) } else { Err(Error::NoSamples { steps: missed + unsent, missed, unsent }) }
    }

    fn counters(self) -> BTreeMap<String, u64> {
        let Self { missed, refused, early, lost, received } = self;
        let counters = [
            ("messages_lost", lost),
            ("messages_not_transmitted", refused + early),
            ("messages_received", received),
            ("messages_refused", refused),
            ("steps_missed", missed),
        ];
        counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_one_fate() {
        const NO: u64 = Stamps::NONE;
        //          early, missed, refused, come, refused, lost, come, missed, lost
        let due = [1, NO, 2, 3, 4, 5, 6, NO, 7];
        let submitted = [1, NO, NO, 3, NO, 5, 6, NO, 7];
        let received = [NO, NO, NO, 9, NO, NO, 9, NO, NO];
        let fates = Fates::of([&due, &submitted, &received], 0);
        assert_eq!(fates, Fates { missed: 2, refused: 2, early: 1, lost: 2, received: 2 });
        let fates = Fates::of([&due, &submitted, &received], 4);
        assert_eq!(fates, Fates { missed: 1, refused: 1, early: 0, lost: 2, received: 1 });
        assert_eq!(fates.counters()["messages_not_transmitted"], 1);
        assert!(fates.have_arrived().is_ok());
        let none = Fates::of([&due, &submitted, &received], 7).have_arrived().unwrap_err().to_string();
        let told = "no sample arrived: 1 of 2 steps missed, 1 samples unsent or lost: ";
        assert!(none.starts_with(told), "{none}");
    }
}
