//! Comparison of the clocks of ranks that do not share one: rank 0 exchanges messages with each
//! other rank before, between and after the calls. They tell what a rank's clock shows when rank
//! 0's clock shows a given time, and how large the error is.

use measure::clock::{Clock, Exchange, Nominal, Offset};

use crate::Error;
use crate::endpoint::collectives::Collectives;
use crate::point::RAW_SAMPLES_MAX;

/// The exchanges that a rank has taken part in.
pub(super) struct Exchanges {
    rank: u32,
    ranks: u32,
    ours: Clock,
    /// The nominal rate of rank 0's clock.
    leading: Nominal,
    /// Two stamps of this rank for each exchange. In each round, those of rank 0 are in the order
    /// of the other ranks.
    stamps: Vec<u64>,
    /// What rank 0 stamped in the exchanges with this rank.
    told: Vec<u64>,
}

impl Exchanges {
    /// Receives the nominal rate of rank 0's clock. All ranks call this.
    ///
    /// # Errors
    /// The errors of the endpoint.
    pub(super) fn new<E: Collectives>(endpoint: &mut E, rank: u32, ranks: u32) -> Result<Self, Error> {
        let ours = endpoint.clock();
        let own = Nominal::of(&ours);
        let mut hear = |number: f64| endpoint.hear(number.to_bits()).map(f64::from_bits);
        let tick_hz = hear(own.tick_hz)?;
        let drift_ppm = hear(own.drift_ppm)?;
        let wander_ppm = hear(own.wander_ppm)?;
        let leading = Nominal { tick_hz, drift_ppm, wander_ppm };
        Ok(Self { rank, ranks, ours, leading, stamps: Vec::new(), told: Vec::new() })
    }

    /// Makes a round of exchanges. All ranks call this.
    ///
    /// # Errors
    /// The errors of the endpoint.
    pub(super) fn make<E: Collectives>(&mut self, endpoint: &mut E) -> Result<(), Error> {
        self.exchange(endpoint)?;
        let others = (self.ranks as usize).saturating_sub(1).max(1);
        let own_others = if self.rank == 0 { others } else { 1 };
        // All ranks forget the same rounds.
        if self.told_rounds(own_others) > (STAMPS_MOST / (2 * ROUND * others)).max(2 * ROUNDS_USED) {
            forget(&mut self.stamps, 2 * ROUND * own_others);
            forget(&mut self.told, 2 * ROUND);
        }
        Ok(())
    }

    /// The number of stored rounds, where this rank exchanges messages with `others` ranks.
    fn told_rounds(&self, others: usize) -> usize {
        self.stamps.len() / (2 * ROUND * others)
    }

    fn exchange<E: Collectives>(&mut self, endpoint: &mut E) -> Result<(), Error> {
        if self.rank == 0 {
            return (1..self.ranks).try_for_each(|other| self.lead(endpoint, other));
        }
        for _ in 0..ROUND {
            endpoint.take(0)?;
            let arrived = self.ours.now_after_loads().0;
            let answered = self.ours.now().0;
            endpoint.give(0, answered)?;
            self.stamps.extend([arrived, answered]);
        }
        for _ in 0..2 * ROUND {
            self.told.push(endpoint.take(0)?);
        }
        Ok(())
    }

    /// Rank 0's side of a round with another rank, to which it then sends all its stamps.
    fn lead<E: Collectives>(&mut self, endpoint: &mut E, other: u32) -> Result<(), Error> {
        let first = self.stamps.len();
        for _ in 0..ROUND {
            let sent = self.ours.now().0;
            endpoint.give(other, sent)?;
            endpoint.take(other)?;
            self.stamps.extend([sent, self.ours.now_after_loads().0]);
        }
        self.stamps[first..].iter().try_for_each(|stamp| endpoint.give(other, *stamp))
    }

    /// Returns what this rank's clock shows when rank 0's clock shows `leading`, by the last
    /// rounds.
    ///
    /// # Errors
    /// [`Error::Clocks`] where the exchanges contradict each other.
    pub(super) fn ours_at(&self, leading: u64) -> Result<u64, Error> {
        if self.rank == 0 {
            return Ok(leading);
        }
        let rounds = self.stamps.len().min(2 * ROUND * ROUNDS_USED);
        let exchanges =
            paired(&self.told[self.told.len() - rounds..], &self.stamps[self.stamps.len() - rounds..]);
        let own = Nominal::of(&self.ours);
        let offset = Offset::of(&exchanges, self.leading, own);
        let offset = offset.map_err(|reason| Error::Clocks { reason: reason.to_string() })?;
        Ok(shown_at(&offset, own.tick_hz / self.leading.tick_hz, &exchanges, leading))
    }

    /// All stamps of this rank.
    pub(super) fn into_stamps(self) -> Vec<u64> {
        self.stamps
    }
}

/// Keeps every second round of stamps, and the last.
fn forget(stamps: &mut Vec<u64>, round: usize) {
    let last = (stamps.len() / round).saturating_sub(1);
    let kept = stamps.chunks(round).enumerate().filter(|(index, _)| index % 2 == 0 || *index == last);
    *stamps = kept.flat_map(|(_, stamps)| stamps).copied().collect();
}

/// The exchanges of rank 0 with a rank, from the stamps of both.
fn paired(leading: &[u64], other: &[u64]) -> Vec<Exchange> {
    let both = leading.chunks_exact(2).zip(other.chunks_exact(2));
    both.map(|(leading, other)| Exchange {
        sent: leading[0],
        arrived: other[0],
        answered: other[1],
        returned: leading[1],
    })
    .collect()
}

/// The exchanges with a rank, from all stamps of rank 0 and of that rank.
pub(super) fn of_rank(rank: usize, ranks: usize, leading: &[u64], other: &[u64]) -> Vec<Exchange> {
    let with_it = leading.chunks_exact(2 * ROUND).skip(rank.saturating_sub(1)).step_by((ranks - 1).max(1));
    let leading: Vec<u64> = with_it.flatten().copied().collect();
    paired(&leading, other)
}

/// Returns what the other clock shows when the leading one shows `leading`: the middle of the
/// range.
fn shown_at(offset: &Offset, rate: f64, exchanges: &[Exchange], leading: u64) -> u64 {
    let mut shown = exchanges.last().map_or(0, |last| last.answered);
    // The error of the first step is the drift, that of the second its square.
    for _ in 0..STEPS {
        let interval = offset.interval(shown);
        let off = i128::from(leading) - (interval.least + interval.largest) / 2;
        shown = shown.wrapping_add_signed((off as f64 * rate).round() as i64);
    }
    shown
}

/// Exchanges of a round: enough that an interrupt does not delay all of them.
pub(super) const ROUND: usize = 16;
/// Rounds from which the next instants follow. A clock that is being corrected keeps no constant
/// rate for long.
const ROUNDS_USED: usize = 4;
const STEPS: usize = 3;
/// The largest number of stamps of a rank: it reports them with those of its calls.
const STAMPS_MOST: usize = RAW_SAMPLES_MAX as usize / 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::wire::Wire;

    /// Exchanges of two clocks of which the second is ahead and faster.
    fn exchanges(rounds: u64) -> (Vec<u64>, Vec<u64>) {
        let other = |true_ns: u64| 7_000_000 + true_ns + true_ns / 20_000;
        let mut stamps = (Vec::new(), Vec::new());
        for at in (0..rounds * ROUND as u64).map(|number| 1_000_000 + number * 3000) {
            stamps.0.extend([at, at + 2000]);
            stamps.1.extend([other(at + 900), other(at + 1000)]);
        }
        stamps
    }

    const NOMINAL: Nominal = Nominal { tick_hz: 1e9, drift_ppm: 200.0, wander_ppm: 0.1 };

    #[test]
    fn an_instant_is_found_on_the_other_clock() {
        let (leading, other) = exchanges(4);
        let exchanges = paired(&leading, &other);
        let offset = Offset::of(&exchanges, NOMINAL, NOMINAL).unwrap();
        let instant = *leading.last().unwrap() + 100_000;
        let shown = shown_at(&offset, 1.0, &exchanges, instant);
        let right = 7_000_000 + instant + instant / 20_000;
        assert!(shown.abs_diff(right) < 1000, "{shown} is not {right}");
        // What is found is where the middle of the interval says so.
        let interval = offset.interval(shown);
        assert!(((interval.least + interval.largest) / 2 - i128::from(instant)).abs() <= 1);
    }

    #[test]
    fn of_more_rounds_than_a_rank_can_tell_every_second_is_forgotten() {
        let mut stamps: Vec<u64> = (0..12).collect();
        forget(&mut stamps, 2);
        assert_eq!(stamps, [0, 1, 4, 5, 8, 9, 10, 11]);
        let [mut wire, _] = Wire::pair(&[], |_| {});
        let mut of = [0, 1].map(|rank| Exchanges::new(&mut wire, rank, 1024).unwrap());
        for _ in 0..200 {
            for exchanges in &mut of {
                exchanges.make(&mut wire).unwrap();
                assert!(exchanges.stamps.len() <= STAMPS_MOST);
            }
            assert_eq!(of[0].told_rounds(1023), of[1].told_rounds(1));
            assert_eq!(of[1].stamps.len(), of[1].told.len());
        }
    }

    #[test]
    fn stamps_of_rank_0_are_told_apart_by_rank() {
        // Two rounds with each of two ranks.
        let round = |first: u64| (0..2 * ROUND as u64).map(move |at| first + at);
        let leading: Vec<u64> = [0, 1000, 2000, 3000].into_iter().flat_map(round).collect();
        let other: Vec<u64> = [10_000, 20_000].into_iter().flat_map(round).collect();
        for (rank, firsts) in [(1, [0, 2000]), (2, [1000, 3000])] {
            let found = of_rank(rank, 3, &leading, &other);
            assert_eq!(found.len(), 2 * ROUND);
            let first =
                Exchange { sent: firsts[0], arrived: 10_000, answered: 10_001, returned: firsts[0] + 1 };
            assert_eq!(found[0], first);
            assert_eq!((found[ROUND].sent, found[ROUND].arrived), (firsts[1], 20_000));
        }
    }
}
