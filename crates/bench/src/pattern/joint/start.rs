//! How ranks begin each call together.

use std::time::Duration;

use measure::clock::Ticks;

use super::choices::Start;
use super::clocks::Exchanges;
use super::dissemination::Dissemination;
use super::instants::Instants;
use super::work::{Alone, Work};
use crate::Error;
use crate::barrier::Barrier;
use crate::endpoint::collectives::Collectives;

/// What a rank does before each call.
pub(super) struct Starter {
    way: Way,
    /// Where the ranks have several clocks.
    exchanges: Option<Exchanges>,
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

/// What a rank is among those that begin together.
pub(super) struct Among {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) barrier: Option<Barrier>,
    pub(super) has_one_clock: bool,
    /// The point's time limit.
    pub(super) limit: Duration,
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
        let Among { rank, ranks, barrier, has_one_clock, limit } = among;
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
            (Start::Instant, _) => {
                let has_several = exchanges.is_some();
                Way::At(Instants::new(endpoint, delays, &mut Alone, has_several, limit)?)
            }
            (Start::OwnBarrier, Some(barrier)) if barrier.members() == ranks as usize => Way::Own(barrier),
            (Start::OwnBarrier, _) => Way::Messages(Dissemination { rank, ranks }),
        };
        Ok(Self { way, exchanges, limit })
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
            *instants = Instants::new(endpoint, delays, work, self.exchanges.is_some(), self.limit)?;
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
                until(endpoint, instant)
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

/// Waits until the clock shows something; whether it has shown more before. Until shortly before
/// that, other ranks of this CPU and the library go on, and the point's time limit holds.
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

/// What an endpoint may take to come back from being idle.
const SPIN: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::endpoint::wire::Wire;

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
