//! The stamps that a rank sends to the coordinator, which merges those of both ranks.

use std::collections::BTreeMap;

use measure::clock::{Domain, Nominal};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pattern::outcome::Told;
use crate::pattern::{Watch, Watched};
use crate::rank_clock::RankClock;

/// The stamps of a rank, in ticks of its clock.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stamped {
    /// The clock that stamped.
    pub domain: Domain,
    /// The nominal rate of the clock.
    pub clock: Nominal,
    /// The preemptions that the rank noticed; absent where it slept.
    pub watched: Option<Watched>,
    /// The length of each column. The columns follow the message, in this order.
    lengths: BTreeMap<Column, usize>,
    #[serde(skip)]
    columns: BTreeMap<Column, Vec<u64>>,
}

/// What a list of stamps is of.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Column {
    /// By burst: rank 1 was about to answer it, or rank 0 had the answer.
    Answered,
    /// By message: rank 0 learnt that it was sent.
    Completed,
    /// By sample of a pipeline that was generated: when it was due.
    Due,
    /// Of exchanges before and after the messages, two stamps each: sent and returned (rank 0),
    /// arrived and answered (rank 1).
    Exchanged,
    /// Start and end of each preemption, in order.
    Gaps,
    /// By message: rank 1 received it.
    Received,
    /// By message: the stamp that it carried, by rank 0's clock.
    Sent,
    /// By message: rank 0 was about to post it. By sample of a pipeline that the endpoint took:
    /// when it was generated.
    Submitted,
}

impl Stamped {
    /// Stamps by a clock.
    pub(crate) fn new(
        domain: Domain,
        clock: Nominal,
        watched: Option<Watched>,
        columns: BTreeMap<Column, Vec<u64>>,
    ) -> Self {
        let lengths = columns.iter().map(|(column, stamps)| (*column, stamps.len())).collect();
        Self { domain, clock, watched, lengths, columns }
    }

    /// The stamps of a rank, with the preemptions that it noticed where it did not sleep.
    pub(crate) fn by(
        rank_clock: &RankClock,
        watch: Option<Watch>,
        columns: impl IntoIterator<Item = (Column, Vec<u64>)>,
    ) -> Self {
        let watched = watch.as_ref().map(Watch::seen);
        let gaps = watch.map(|watch| (Column::Gaps, watch.into_gaps()));
        let columns = columns.into_iter().chain(gaps);
        let columns = columns.map(|(column, stamps)| (column, rank_clock.shows(stamps))).collect();
        Self::new(rank_clock.domain.clone(), Nominal::of(&rank_clock.clock), watched, columns)
    }

    /// A column; empty where there are no such stamps.
    pub(crate) fn column(&self, column: Column) -> &[u64] {
        self.columns.get(&column).map_or(&[], Vec::as_slice)
    }
}

impl Told for Stamped {
    /// The columns in the order of [`Column`].
    fn take_columns(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.columns).into_values().flatten().collect()
    }

    fn put_columns(&mut self, samples: &mut Vec<u64>) -> Result<(), Error> {
        for (column, length) in self.lengths.iter().rev() {
            let start = samples.len().checked_sub(*length).ok_or_else(|| Error::BrokenFrame {
                reason: format!("{} stamps are left for a column of {length}", samples.len()),
            })?;
            self.columns.insert(*column, samples.split_off(start));
        }
        Ok(())
    }
}
