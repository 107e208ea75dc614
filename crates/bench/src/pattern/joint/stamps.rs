//! What a rank reports of its calls.

use measure::clock::{Domain, Nominal};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pattern::outcome::Told;
use crate::rank_clock::RankClock;

/// When a rank started and ended each call, in ticks of its clock.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallStamps {
    /// The clock, and its nominal rate.
    pub(crate) clock: Domain,
    pub(crate) nominal: Nominal,
    /// The number of calls, and the number for which this rank was late. The columns follow the
    /// message in this order.
    calls: usize,
    lates: usize,
    exchange_stamps: usize,
    /// The times of its calls and of the computation that overlaps with them, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) overlap: Option<OverlapTimes>,
    #[serde(skip)]
    pub(crate) begun: Vec<u64>,
    #[serde(skip)]
    pub(crate) ended: Vec<u64>,
    /// The numbers of the calls for which this rank was late.
    #[serde(skip)]
    pub(crate) late: Vec<u64>,
    /// The stamps that compare clocks; empty where the ranks have one clock.
    #[serde(skip)]
    pub(crate) exchanged: Vec<u64>,
}

impl CallStamps {
    pub(super) fn new(
        rank_clock: &RankClock,
        [begun, ended]: [Vec<u64>; 2],
        late: Vec<u64>,
        exchanged: Vec<u64>,
    ) -> Self {
        Self {
            clock: rank_clock.domain.clone(),
            nominal: Nominal::of(&rank_clock.clock),
            calls: begun.len(),
            lates: late.len(),
            exchange_stamps: exchanged.len(),
            overlap: None,
            begun: rank_clock.shows(begun),
            ended: rank_clock.shows(ended),
            late,
            exchanged: rank_clock.shows(exchanged),
        }
    }

    /// Adds the times of overlapped calls.
    pub(super) fn with(self, overlap: Option<OverlapTimes>) -> Self {
        Self { overlap, ..self }
    }
}

/// Medians over the calls of a rank, in ns.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverlapTimes {
    /// The call without a computation.
    pub(crate) pure_ns: f64,
    /// The computation within the call.
    pub(crate) calculated_ns: f64,
    /// The call with the computation.
    pub(crate) overlapped_ns: f64,
}

impl Told for CallStamps {
    fn take_columns(&mut self) -> Vec<u64> {
        let columns = [&mut self.begun, &mut self.ended, &mut self.late, &mut self.exchanged];
        columns.into_iter().flat_map(std::mem::take).collect()
    }

    fn put_columns(&mut self, columns: &mut Vec<u64>) -> Result<(), Error> {
        let mut take = |length: usize| {
            let start = columns.len().checked_sub(length).ok_or_else(|| Error::BrokenFrame {
                reason: format!("{} stamps are left for a column of {length}", columns.len()),
            })?;
            Ok::<_, Error>(columns.split_off(start))
        };
        self.exchanged = take(self.exchange_stamps)?;
        self.late = take(self.lates)?;
        self.ended = take(self.calls)?;
        self.begun = take(self.calls)?;
        let broken = |reason: String| Err(Error::BrokenFrame { reason });
        if !columns.is_empty() {
            return broken(format!("{} stamps are left that belong to no column", columns.len()));
        }
        if let Some(call) = self.late.iter().find(|call| **call >= self.calls as u64) {
            return broken(format!("a rank was late for call {call} of {}", self.calls));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use measure::clock::Clock;

    use super::*;

    fn told() -> CallStamps {
        let clock = RankClock::new(Clock::monotonic(), None);
        CallStamps::new(&clock, [vec![1, 3], vec![2, 4]], vec![1], vec![5, 6])
    }

    #[test]
    fn columns_are_put_back_as_they_were() {
        let mut one = told();
        let mut columns = one.take_columns();
        one.put_columns(&mut columns).unwrap();
        assert_eq!(one, told());
    }

    #[test]
    fn columns_of_something_else_are_refused() {
        let mut columns = told().take_columns();
        columns.insert(0, 9);
        let too_many = told().put_columns(&mut columns).unwrap_err().to_string();
        assert!(too_many.contains("1 stamps are left that belong to no column"), "{too_many}");
        let mut columns = told().take_columns();
        columns.remove(0);
        assert!(told().put_columns(&mut columns).is_err());
        let mut columns = told().take_columns();
        columns[4] = 2;
        let no_call = told().put_columns(&mut columns).unwrap_err().to_string();
        assert!(no_call.contains("was late for call 2 of 2"), "{no_call}");
    }
}
