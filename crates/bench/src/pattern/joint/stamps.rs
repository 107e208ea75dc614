//! What a rank tells of its calls.

use measure::clock::Domain;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pattern::outcome::Told;
use crate::rank_clock::RankClock;

/// When a rank began and ended each call, in ticks of its clock.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallStamps {
    /// Which clock it is, and how many ticks it has in a second.
    pub(crate) clock: Domain,
    pub(crate) tick_hz: f64,
    /// How many calls there are, and how many this rank came to late. The columns travel behind the
    /// message, in this order.
    calls: usize,
    lates: usize,
    #[serde(skip)]
    pub(crate) begun: Vec<u64>,
    #[serde(skip)]
    pub(crate) ended: Vec<u64>,
    /// Numbers of calls.
    #[serde(skip)]
    pub(crate) late: Vec<u64>,
}

impl CallStamps {
    pub(super) fn new(rank_clock: &RankClock, begun: Vec<u64>, ended: Vec<u64>, late: Vec<u64>) -> Self {
        Self {
            clock: rank_clock.domain.clone(),
            tick_hz: rank_clock.clock.tick_hz(),
            calls: begun.len(),
            lates: late.len(),
            begun: rank_clock.shows(begun),
            ended: rank_clock.shows(ended),
            late,
        }
    }
}

impl Told for CallStamps {
    fn take_columns(&mut self) -> Vec<u64> {
        let columns = [&mut self.begun, &mut self.ended, &mut self.late];
        columns.into_iter().flat_map(std::mem::take).collect()
    }

    fn put_columns(&mut self, columns: &mut Vec<u64>) -> Result<(), Error> {
        let mut take = |length: usize| {
            let start = columns.len().checked_sub(length).ok_or_else(|| Error::BrokenFrame {
                reason: format!("{} stamps are left for a column of {length}", columns.len()),
            })?;
            Ok::<_, Error>(columns.split_off(start))
        };
        self.late = take(self.lates)?;
        self.ended = take(self.calls)?;
        self.begun = take(self.calls)?;
        Ok(())
    }
}
