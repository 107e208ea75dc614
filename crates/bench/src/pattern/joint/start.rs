//! How ranks begin each call together.

use std::time::Duration;

use measure::clock::Ticks;

use super::choices::Start;
use super::clocks::Exchanges;
use super::pass::pass;
use super::work::{Alone, Work};
use crate::Error;
use crate::barrier::Barrier;
use crate::endpoint::collectives::Collectives;

/// What a rank does before each call.
pub(super) struct Starter {
    way: Way,
    /// Where the ranks have several clocks.
    exchanges: Option<Exchanges>,
}

enum Way {
    Library,
    At(Instants),
    Messages(Dissemination),
    Nothing,
    Own(Barrier),
}

/// What a rank is among those that begin together.
pub(super) struct Among {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) barrier: Option<Barrier>,
    pub(super) has_one_clock: bool,
}

impl Starter {
    /// Agrees with the other ranks on how calls begin. A few calls are made for that, where the
    /// instants have to be as far apart as they take.
    ///
    /// # Errors
    /// What the endpoint says; [`Error::Clocks`] where clocks of ranks cannot be compared.
    pub(super) fn new<E: Collectives>(
        start: Start,
        endpoint: &mut E,
        among: Among,
        delays: [u64; 2],
    ) -> Result<Self, Error> {
        let Among { rank, ranks, barrier, has_one_clock } = among;
        // What one rank finds out, all have to know.
        let mut exchanges = None;
        if endpoint.largest(u64::from(!has_one_clock))? > 0 {
            let mut several = Exchanges::new(endpoint, rank, ranks)?;
            several.make(endpoint)?;
            exchanges = Some(several);
        }
        let way = match (start, barrier) {
            (Start::Barrier, _) => Way::Library,
            (Start::None, _) => Way::Nothing,
            (Start::Instant, _) => Way::At(Instants::new(endpoint, delays, &mut Alone, exchanges.is_some())?),
            (Start::OwnBarrier, Some(barrier)) if barrier.members() == ranks as usize => Way::Own(barrier),
            (Start::OwnBarrier, _) => Way::Messages(Dissemination { rank, ranks }),
        };
        Ok(Self { way, exchanges })
    }

    /// Agrees once more, for work that takes longer.
    ///
    /// # Errors
    /// What the endpoint says.
    pub(super) fn prepare<E: Collectives, W: Work>(
        &mut self,
        endpoint: &mut E,
        delays: [u64; 2],
        work: &mut W,
    ) -> Result<(), Error> {
        if let Way::At(instants) = &mut self.way {
            *instants = Instants::new(endpoint, delays, work, self.exchanges.is_some())?;
        }
        Ok(())
    }

    /// Waits until the next call begins; whether this rank came too late for it.
    #[inline]
    pub(super) fn wait<E: Collectives>(&mut self, endpoint: &mut E) -> Result<bool, Error> {
        match &mut self.way {
            Way::Library => endpoint.meet().map(|()| false),
            Way::Nothing => Ok(false),
            Way::Own(barrier) => {
                barrier.pass(|| endpoint.idle_until(Ticks(0)))?;
                Ok(false)
            }
            Way::Messages(barrier) => barrier.pass(endpoint).map(|()| false),
            Way::At(instants) => {
                let instant = instants.next(endpoint, self.exchanges.as_mut())?;
                let clock = endpoint.clock();
                let is_late = clock.now().0 > instant;
                while clock.now().0 < instant {
                    std::hint::spin_loop();
                }
                Ok(is_late)
            }
        }
    }

    /// Compares the clocks once more, where there are several; gives what this rank has stamped for
    /// that.
    ///
    /// # Errors
    /// What the endpoint says.
    pub(super) fn end<E: Collectives>(self, endpoint: &mut E) -> Result<Vec<u64>, Error> {
        let Some(mut exchanges) = self.exchanges else { return Ok(Vec::new()) };
        exchanges.make(endpoint)?;
        Ok(exchanges.into_stamps())
    }
}

/// Instants that are twice as far apart as a call takes.
struct Instants {
    apart_ns: u64,
    /// The first of them and the time from each to the next, in ticks of this rank's clock.
    first: u64,
    apart: Ratio,
    call: u64,
    /// After so many the ranks compare their clocks and agree again; ranks of one clock agree once.
    calls: Option<u64>,
}

/// So many ticks for so many calls: a whole number of ticks for one is not exact enough.
struct Ratio {
    ticks: u64,
    calls: u64,
}

impl Instants {
    /// Agrees on how far apart they are.
    fn new<E: Collectives, W: Work>(
        endpoint: &mut E,
        delays: [u64; 2],
        work: &mut W,
        has_several_clocks: bool,
    ) -> Result<Self, Error> {
        let clock = endpoint.clock();
        let mut longest = [0; PILOT];
        for ticks in &mut longest {
            endpoint.meet()?;
            *ticks = time_once(endpoint, delays, work)?;
        }
        longest.sort_unstable();
        let usual_ns = endpoint.largest(clock.ns(longest[PILOT - 1 - PILOT / 100]))?;
        let apart_ns = 2 * usual_ns + APART_LEAST.as_nanos() as u64;
        let calls = has_several_clocks.then(|| (COMPARED_NS / apart_ns).max(1));
        Ok(Self { apart_ns, first: 0, apart: Ratio { ticks: 0, calls: 1 }, call: 0, calls })
    }

    /// The next instant, by this rank's clock.
    #[inline]
    fn next<E: Collectives>(
        &mut self,
        endpoint: &mut E,
        exchanges: Option<&mut Exchanges>,
    ) -> Result<u64, Error> {
        if self.apart.ticks == 0 || self.calls == Some(self.call) {
            self.agree(endpoint, exchanges)?;
        }
        let instant = self.first + self.call * self.apart.ticks / self.apart.calls;
        self.call += 1;
        Ok(instant)
    }

    /// Agrees on the next instants, which rank 0 chooses by its clock.
    #[cold]
    fn agree<E: Collectives>(
        &mut self,
        endpoint: &mut E,
        exchanges: Option<&mut Exchanges>,
    ) -> Result<(), Error> {
        let clock = endpoint.clock();
        let calls = self.calls.unwrap_or(1);
        let ticks = clock.ticks(Duration::from_nanos(self.apart_ns * calls));
        self.call = 0;
        let Some(exchanges) = exchanges else {
            self.first = endpoint.hear(clock.now().0 + clock.ticks(BEGIN_AFTER))?;
            self.apart = Ratio { ticks, calls };
            return Ok(());
        };
        exchanges.make(endpoint)?;
        let first = endpoint.hear(clock.now().0 + clock.ticks(BEGIN_AFTER))?;
        let last = endpoint.hear(first + ticks)?;
        self.first = exchanges.ours_at(first)?;
        self.apart = Ratio { ticks: exchanges.ours_at(last)?.saturating_sub(self.first).max(1), calls };
        Ok(())
    }
}

/// A barrier of empty messages: in each round a rank tells one that is twice as far away as in the
/// round before (Hensgen, Finkel and Manber 1988).
struct Dissemination {
    rank: u32,
    ranks: u32,
}

impl Dissemination {
    /// Whom a rank tells in each round, and whom it waits for.
    fn rounds(&self) -> impl Iterator<Item = [u32; 2]> + use<> {
        let Self { rank, ranks } = *self;
        let distances = std::iter::successors(Some(1_u32), |distance| distance.checked_mul(2));
        distances
            .take_while(move |distance| *distance < ranks)
            .map(move |distance| [(rank + distance) % ranks, (rank + ranks - distance) % ranks])
    }

    fn pass<E: Collectives>(&self, endpoint: &mut E) -> Result<(), Error> {
        self.rounds().try_for_each(|[to, from]| endpoint.swap(to, from))
    }
}

/// The time of one call and the delays before and within it, in ticks.
#[inline]
fn time_once<E: Collectives, W: Work>(
    endpoint: &mut E,
    [before, within]: [u64; 2],
    work: &mut W,
) -> Result<u64, Error> {
    let clock = endpoint.clock();
    let begin = clock.now();
    pass(clock, before + within);
    work.once(endpoint, None)?;
    Ok(clock.now().since(begin))
}

/// Calls that tell how long one takes.
const PILOT: usize = 100;
/// Beside twice the time of a call: what a clock and a loop take.
const APART_LEAST: Duration = Duration::from_micros(10);
/// All ranks have heard of the first instant by then.
const BEGIN_AFTER: Duration = Duration::from_millis(2);
/// Time until clocks are compared again, in ns: in that, two of them part by less than a
/// microsecond.
const COMPARED_NS: u64 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_rounds_of_a_dissemination_each_rank_has_heard_of_all() {
        for ranks in 1..=17 {
            let rounds = |rank| Dissemination { rank, ranks }.rounds();
            let mut heard: Vec<Vec<u32>> = (0..ranks).map(|rank| vec![rank]).collect();
            for round in 0..rounds(0).count() {
                let before = heard.clone();
                for rank in 0..ranks {
                    let [to, from] = rounds(rank).nth(round).unwrap();
                    assert_eq!(rounds(from).nth(round).unwrap()[0], rank, "whom it waits for tells it");
                    assert_eq!(rounds(to).nth(round).unwrap()[1], rank);
                    heard[rank as usize].extend(&before[from as usize]);
                }
            }
            for mut of_rank in heard {
                of_rank.sort_unstable();
                of_rank.dedup();
                assert_eq!(of_rank.len(), ranks as usize);
            }
        }
    }
}
