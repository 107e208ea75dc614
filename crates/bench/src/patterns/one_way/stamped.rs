//! What a rank stamped, on its way to who puts the stamps of both ranks together.

use std::collections::BTreeMap;

use measure::clock::{Domain, Nominal};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pattern::outcome::Told;
use crate::pattern::{Watch, Watched};
use crate::rank_clock::RankClock;

/// What a rank stamped, in ticks of its clock.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stamped {
    /// Which clock it is.
    pub domain: Domain,
    /// Its rate.
    pub clock: Nominal,
    /// Gaps in its time; absent where it slept.
    pub watched: Option<Watched>,
    /// How long each column is. Columns travel behind the message, in this order.
    lengths: BTreeMap<Column, usize>,
    #[serde(skip)]
    columns: BTreeMap<Column, Vec<u64>>,
}

/// Stamps of one sort.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Column {
    /// By burst: rank 1 was about to answer it, or rank 0 had the answer.
    Answered,
    /// By message: it was known to be sent.
    Completed,
    /// By sample of a pipeline: it was due, and it was generated.
    Due,
    /// Of exchanges before and after the messages, two stamps each: sent and returned (rank 0),
    /// arrived and answered (rank 1).
    Exchanged,
    /// Beginning and end of each gap in turn.
    Gaps,
    /// By message: it was seen.
    Received,
    /// By message: the stamp that it carried, of rank 0's clock.
    Sent,
    /// By message: it was about to be posted; of a pipeline, when it was generated, if its node
    /// took it.
    Submitted,
}

impl Stamped {
    /// What was stamped by a clock.
    pub(crate) fn new(
        domain: Domain,
        clock: Nominal,
        watched: Option<Watched>,
        columns: BTreeMap<Column, Vec<u64>>,
    ) -> Self {
        let lengths = columns.iter().map(|(column, stamps)| (*column, stamps.len())).collect();
        Self { domain, clock, watched, lengths, columns }
    }

    /// What a rank stamped, and the gaps that it saw where it did not sleep.
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

    /// A column; empty where it was not stamped.
    pub(crate) fn column(&self, column: Column) -> &[u64] {
        self.columns.get(&column).map_or(&[], Vec::as_slice)
    }
}

impl Told for Stamped {
    /// As they travel: in the order of [`Column`].
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
