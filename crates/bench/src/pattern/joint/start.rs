//! How ranks start each call together.

use std::time::Duration;

use measure::clock::Ticks;

use super::choices::Start;
use super::clocks::Exchanges;
use super::dissemination::Dissemination;
use super::instants::Instants;
use super::work::{Alone, Work};
use crate::Error;
use crate::barrier::Barrier;
use crate::cut;
use crate::endpoint::collectives::Collectives;

/// What a rank does before each call so that all ranks start together.
pub(super) struct Starter {
    way: Way,
    /// Present where the ranks have different clocks.
    exchanges: Option<Exchanges>,
    /// When the ranks agree whether to go on, and compare their clocks; instants determine it where
    /// calls start at them.
    pace: Pace,
    /// The point's time limit.
    limit: Duration,
}

/// How a call begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Beginning {
    InTime,
    /// This rank is late for it.
    Late,
    /// It does not begin: the point is cut, and no rank makes this call or a later one.
    Cut,
}

enum Way {
    Library,
    At(Instants),
    Messages(Dissemination),
    Nothing,
    Own(Barrier),
}

/// Before which calls the ranks agree whether to go on: the same calls on all ranks, about a second
/// apart after the first few. The ranks learn of a signal at different times.
struct Pace {
    every: u64,
    passed: u64,
    /// The time of the last agreement.
    since: Ticks,
}

impl Pace {
    const NEVER: Self = Self { every: u64::MAX, passed: 0, since: Ticks(0) };

    fn from(now: Ticks) -> Self {
        Self { every: 1, passed: 0, since: now }
    }

    /// Returns whether the ranks agree before this call.
    #[inline]
    fn is_due(&mut self) -> bool {
        let is_due = self.passed == self.every;
        self.passed = if is_due { 1 } else { self.passed + 1 };
        is_due
    }

    /// Agrees whether the ranks go on, and before which call they agree again. A rank for which the
    /// point is cut ends it for all.
    fn goes_on<E: Collectives>(&mut self, endpoint: &mut E, is_cut: bool) -> Result<bool, Error> {
        let clock = endpoint.clock();
        let own_ns = if is_cut { CUT } else { clock.ns(clock.now().since(self.since)) };
        let taken_ns = endpoint.largest(own_ns)?;
        self.every = further(self.every, taken_ns);
        self.since = clock.now();
        Ok(taken_ns != CUT)
    }
}

/// Returns the number of calls until the next agreement, after `every` calls that took `taken_ns`:
/// at most twice as many, for about a second.
fn further(every: u64, taken_ns: u64) -> u64 {
    let in_time = u128::from(every) * AGREED_EVERY.as_nanos() / u128::from(taken_ns.max(1));
    u64::try_from(in_time).unwrap_or(u64::MAX).min(every.saturating_mul(2)).max(1)
}

/// What a rank knows about the ranks that start together.
pub(super) struct Among {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) barrier: Option<Barrier>,
    pub(super) has_one_clock: bool,
    /// The point's time limit.
    pub(super) limit: Duration,
}

impl Starter {
    /// Agrees with the other ranks on how calls start. For instants, the ranks make some calls,
    /// whose time determines how far apart the instants are.
    ///
    /// # Errors
    /// The errors of the endpoint; [`Error::Clocks`] where the clocks of ranks cannot be compared.
    pub(super) fn new<E: Collectives>(
        start: Start,
        endpoint: &mut E,
        among: Among,
        delays: [u64; 2],
    ) -> Result<Self, Error> {
        let Among { rank, ranks, barrier, has_one_clock, limit } = among;
        // All ranks must know what one of them finds out.
        let mut exchanges = None;
        if endpoint.largest(u64::from(!has_one_clock))? > 0 {
            let mut several = Exchanges::new(endpoint, rank, ranks)?;
            several.make(endpoint)?;
            exchanges = Some(several);
        }
        let way = match (start, barrier) {
            (Start::Barrier, _) => Way::Library,
            (Start::None, _) => Way::Nothing,
            (Start::Instant, _) => {
                let has_several = exchanges.is_some();
                Way::At(Instants::new(endpoint, delays, &mut Alone, has_several, limit)?)
            }
            (Start::OwnBarrier, Some(barrier)) if barrier.members() == ranks as usize => Way::Own(barrier),
            (Start::OwnBarrier, _) => Way::Messages(Dissemination { rank, ranks }),
        };
        let pace = if matches!(way, Way::At(_)) { Pace::NEVER } else { Pace::from(endpoint.clock().now()) };
        Ok(Self { way, exchanges, pace, limit })
    }

    /// Agrees again, for work that takes longer.
    ///
    /// # Errors
    /// The errors of the endpoint.
    pub(super) fn prepare<E: Collectives, W: Work>(
        &mut self,
        endpoint: &mut E,
        delays: [u64; 2],
        work: &mut W,
    ) -> Result<(), Error> {
        if let Way::At(instants) = &mut self.way {
            *instants = Instants::new(endpoint, delays, work, self.exchanges.is_some(), self.limit)?;
        }
        Ok(())
    }

    /// Waits until the next call begins.
    #[inline]
    pub(super) fn wait<E: Collectives>(&mut self, endpoint: &mut E) -> Result<Beginning, Error> {
        if self.pace.is_due() && !self.goes_on(endpoint)? {
            return Ok(Beginning::Cut);
        }
        match &mut self.way {
            Way::Library => endpoint.meet()?,
            Way::Nothing => {}
            Way::Own(barrier) => barrier.pass(|| endpoint.idle_until(Ticks(0)))?,
            Way::Messages(barrier) => barrier.pass(endpoint)?,
            Way::At(instants) => {
                return match instants.next(endpoint, self.exchanges.as_mut())? {
                    Some(instant) => until(endpoint, instant),
                    None => Ok(Beginning::Cut),
                };
            }
        }
        Ok(Beginning::InTime)
    }

    /// Compares the clocks where there are several, because the farther away the next comparison
    /// is, the less is known of them; returns whether the ranks go on.
    #[cold]
    fn goes_on<E: Collectives>(&mut self, endpoint: &mut E) -> Result<bool, Error> {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.make(endpoint)?;
        }
        self.pace.goes_on(endpoint, cut::is_requested())
    }

    /// Compares the clocks once more, where there are several; returns the stamps of this rank for
    /// that.
    ///
    /// # Errors
    /// The errors of the endpoint.
    pub(super) fn end<E: Collectives>(self, endpoint: &mut E) -> Result<Vec<u64>, Error> {
        let Some(mut exchanges) = self.exchanges else { return Ok(Vec::new()) };
        exchanges.make(endpoint)?;
        Ok(exchanges.into_stamps())
    }
}

/// Waits until the clock shows `instant`; a rank is late if the instant had passed before. Until
/// shortly before, other ranks of this CPU and the library may run, and the time limit holds.
#[inline]
fn until<E: Collectives>(endpoint: &mut E, instant: u64) -> Result<Beginning, Error> {
    let clock = endpoint.clock();
    let is_late = clock.now().0 > instant;
    let idle_until = instant.saturating_sub(clock.ticks(SPIN));
    while clock.now().0 < idle_until {
        endpoint.idle_until(Ticks(idle_until))?;
    }
    while clock.now().0 < instant {
        std::hint::spin_loop();
    }
    Ok(if is_late { Beginning::Late } else { Beginning::InTime })
}

/// Rare enough not to disturb the calls, and far below the time that a cut point has left. Within
/// this time, two clocks drift apart by less than a microsecond.
const AGREED_EVERY: Duration = Duration::from_secs(1);
/// The time that a rank tells the others if the point is cut for it.
const CUT: u64 = u64::MAX;
/// The time that an endpoint may need to return from idling.
const SPIN: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use super::super::clocks::ROUND;
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::endpoint::wire::Wire;

    #[test]
    fn several_clocks_are_compared_between_calls_and_one_is_not() {
        for (has_one_clock, rounds) in [(true, 0), (false, 5)] {
            let [mut wire, _] = Wire::pair(&[], |_| {});
            let limit = Duration::from_secs(60);
            let among = Among { rank: 0, ranks: 2, barrier: None, has_one_clock, limit };
            let mut starter = Starter::new(Start::None, &mut wire, among, [0, 0]).unwrap();
            // Before the second, fourth and eighth call.
            for _ in 0..8 {
                assert_eq!(starter.wait(&mut wire).unwrap(), Beginning::InTime);
            }
            // More often if this process was preempted for long.
            let stamps = starter.end(&mut wire).unwrap().len();
            assert!(stamps >= rounds * 2 * ROUND && (stamps > 0) == (rounds > 0), "{stamps}");
        }
    }

    #[test]
    fn the_ranks_agree_about_once_a_second_however_long_a_call_takes() {
        let agreed = |call_ns: u64| {
            let mut every = 1;
            (0..40).for_each(|_| every = further(every, every.saturating_mul(call_ns)));
            every
        };
        assert_eq!([1_000, 1_000_000, 400_000_000, 5_000_000_000].map(agreed), [1_000_000, 1000, 2, 1]);
        assert_eq!(further(1000, 1_000_000), 2000, "twice as many");
        assert_eq!(further(1000, 4_000_000_000), 250, "calls that have become slower");
        assert_eq!([further(1 << 63, 0), further(7, u64::MAX)], [u64::MAX, 1]);
    }

    #[test]
    fn a_rank_for_which_the_point_is_cut_ends_it_for_all() {
        let [mut wire, _] = Wire::pair(&[], |_| {});
        let mut pace = Pace::from(wire.clock().now());
        assert!(pace.goes_on(&mut wire, false).unwrap());
        assert!(wire.largest_told() < CUT);
        assert!(!pace.goes_on(&mut wire, true).unwrap());
        assert_eq!(wire.largest_told(), CUT);
    }

    #[test]
    fn who_waits_for_an_instant_is_idle_until_shortly_before() {
        let [mut wire, _] = Wire::pair(&[], |_| {});
        let clock = wire.clock();
        let instant = clock.now().0 + clock.ticks(Duration::from_millis(20));
        assert_eq!(until(&mut wire, instant).unwrap(), Beginning::InTime);
        assert!(wire.sleeps() > 0 && clock.now().0 >= instant);
        assert_eq!(until(&mut wire, instant).unwrap(), Beginning::Late, "it is over");
    }

    #[test]
    fn who_waits_for_an_instant_waits_no_longer_than_the_point_may_take() {
        let [mut wire, _] = Wire::pair(&[], |_| {});
        wire.end_now();
        assert!(matches!(until(&mut wire, u64::MAX), Err(Error::Deadline { .. })));
    }
}
