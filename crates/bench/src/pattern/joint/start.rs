//! How ranks start each call together.

use std::time::Duration;

use measure::clock::Ticks;

use super::choices::Start;
use super::clocks::Exchanges;
use super::dissemination::Dissemination;
use super::instants::{Instants, PILOT, time_once};
use super::work::{Alone, Work};
use crate::Error;
use crate::barrier::Barrier;
use crate::endpoint::collectives::Collectives;

/// What a rank does before each call so that all ranks start together.
pub(super) struct Starter {
    way: Way,
    /// Present where the ranks have different clocks.
    exchanges: Option<Exchanges>,
    /// How often the clocks are compared between calls, unless instants determine it.
    pace: Pace,
    /// The point's time limit.
    limit: Duration,
}

enum Way {
    Library,
    At(Instants),
    Messages(Dissemination),
    Nothing,
    Own(Barrier),
}

/// Something that is due after every so many calls, the same number on all ranks.
struct Pace {
    every: u64,
    passed: u64,
}

impl Pace {
    const NEVER: Self = Self { every: u64::MAX, passed: 0 };

    /// A pace of about one second, determined by some calls. All ranks call this.
    fn of<E: Collectives, W: Work>(endpoint: &mut E, delays: [u64; 2], work: &mut W) -> Result<Self, Error> {
        let clock = endpoint.clock();
        let begin = clock.now();
        for _ in 0..PILOT {
            endpoint.meet()?;
            time_once(endpoint, delays, work)?;
        }
        let taken_ns = endpoint.largest(clock.ns(clock.now().since(begin)))?;
        let every_ns = COMPARED_EVERY.as_nanos() as u64;
        Ok(Self { every: (every_ns / (taken_ns / PILOT as u64).max(1)).max(1), passed: 0 })
    }

    /// Returns whether it is due before this call.
    #[inline]
    fn is_due(&mut self) -> bool {
        let is_due = self.passed == self.every;
        self.passed = if is_due { 1 } else { self.passed + 1 };
        is_due
    }
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
        let mut starter = Self { way, exchanges, pace: Pace::NEVER, limit };
        starter.compare_now_and_then(endpoint, delays, &mut Alone)?;
        Ok(starter)
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
        self.compare_now_and_then(endpoint, delays, work)
    }

    /// Has different clocks compared between calls, too: the farther away the next comparison is,
    /// the less is known of them.
    fn compare_now_and_then<E: Collectives, W: Work>(
        &mut self,
        endpoint: &mut E,
        delays: [u64; 2],
        work: &mut W,
    ) -> Result<(), Error> {
        if self.exchanges.is_some() && !matches!(self.way, Way::At(_)) {
            self.pace = Pace::of(endpoint, delays, work)?;
        }
        Ok(())
    }

    /// Waits until the next call starts; returns whether this rank is late for it.
    #[inline]
    pub(super) fn wait<E: Collectives>(&mut self, endpoint: &mut E) -> Result<bool, Error> {
        if self.pace.is_due()
            && let Some(exchanges) = &mut self.exchanges
        {
            exchanges.make(endpoint)?;
        }
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
                until(endpoint, instant)
            }
        }
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

/// Waits until the clock shows `instant`; returns whether the instant had passed before. Until
/// shortly before, other ranks of this CPU and the library may run, and the time limit holds.
#[inline]
fn until<E: Collectives>(endpoint: &mut E, instant: u64) -> Result<bool, Error> {
    let clock = endpoint.clock();
    let is_late = clock.now().0 > instant;
    let idle_until = instant.saturating_sub(clock.ticks(SPIN));
    while clock.now().0 < idle_until {
        endpoint.idle_until(Ticks(idle_until))?;
    }
    while clock.now().0 < instant {
        std::hint::spin_loop();
    }
    Ok(is_late)
}

/// Within this time, two clocks drift apart by less than a microsecond.
const COMPARED_EVERY: Duration = Duration::from_secs(1);
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
        for (has_one_clock, rounds) in [(true, 0), (false, 4)] {
            let [mut wire, _] = Wire::pair(&[], |_| {});
            let limit = Duration::from_secs(60);
            let among = Among { rank: 0, ranks: 2, barrier: None, has_one_clock, limit };
            let mut starter = Starter::new(Start::None, &mut wire, among, [0, 0]).unwrap();
            let every = starter.pace.every;
            assert!(every > 1000, "a call of nothing: {every}");
            // Before the third call and the fifth.
            starter.pace.every = starter.pace.every.min(if has_one_clock { u64::MAX } else { 2 });
            for _ in 0..6 {
                starter.wait(&mut wire).unwrap();
            }
            assert_eq!(starter.end(&mut wire).unwrap().len(), rounds * 2 * ROUND);
        }
    }

    #[test]
    fn who_waits_for_an_instant_is_idle_until_shortly_before() {
        let [mut wire, _] = Wire::pair(&[], |_| {});
        let clock = wire.clock();
        let instant = clock.now().0 + clock.ticks(Duration::from_millis(20));
        assert!(!until(&mut wire, instant).unwrap());
        assert!(wire.sleeps() > 0 && clock.now().0 >= instant);
        assert!(until(&mut wire, instant).unwrap(), "it is over");
    }

    #[test]
    fn who_waits_for_an_instant_waits_no_longer_than_the_point_may_take() {
        let [mut wire, _] = Wire::pair(&[], |_| {});
        wire.end_now();
        assert!(matches!(until(&mut wire, u64::MAX), Err(Error::Deadline { .. })));
    }
}
