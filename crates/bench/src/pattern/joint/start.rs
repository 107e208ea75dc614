//! How ranks begin each call together.

use std::time::Duration;

use measure::clock::Ticks;

use super::choices::Start;
use super::pass::pass;
use crate::Error;
use crate::barrier::Barrier;
use crate::endpoint::collectives::Collectives;

/// What a rank does before each call.
pub(super) enum Starter {
    Library,
    At { first: u64, apart: u64, call: u64 },
    Nothing,
    Own(Barrier),
}

impl Starter {
    /// Agrees with the other ranks on how calls begin. A few calls are made for that, where the
    /// instants have to be as far apart as they take.
    ///
    /// # Errors
    /// [`Error::Impossible`] where the ranks cannot begin so; what the endpoint says.
    pub(super) fn new<E: Collectives>(
        start: Start,
        endpoint: &mut E,
        barrier: Option<Barrier>,
        has_one_clock: bool,
        ranks: u32,
        delays: [u64; 2],
    ) -> Result<Self, Error> {
        match (start, barrier) {
            (Start::Barrier, _) => Ok(Self::Library),
            (Start::None, _) => Ok(Self::Nothing),
            (Start::OwnBarrier, Some(barrier)) if barrier.members() == ranks as usize => {
                Ok(Self::Own(barrier))
            }
            (Start::OwnBarrier, _) => Err(Error::Impossible {
                reason: "ranks of several hosts share no memory for a barrier: start them by \"barrier\""
                    .to_owned(),
            }),
            // What one rank finds out, all have to know.
            (Start::Instant, _) if endpoint.largest(u64::from(!has_one_clock))? == 0 => {
                Self::instants(endpoint, delays)
            }
            (Start::Instant, _) => Err(Error::Impossible {
                reason: "ranks of several clocks know no common instant: start them by \"barrier\""
                    .to_owned(),
            }),
        }
    }

    /// Instants twice as far apart as the slowest of some calls, delays included.
    fn instants<E: Collectives>(endpoint: &mut E, delays: [u64; 2]) -> Result<Self, Error> {
        let clock = endpoint.clock();
        let mut longest = [0; PILOT];
        for ticks in &mut longest {
            endpoint.meet()?;
            *ticks = time_once(endpoint, delays)?;
        }
        longest.sort_unstable();
        let usual = endpoint.largest(longest[PILOT - 1 - PILOT / 100])?;
        let apart = 2 * usual + clock.ticks(APART_LEAST);
        let begin = clock.now().0 + clock.ticks(BEGIN_AFTER);
        let first = endpoint.hear(begin)?;
        Ok(Self::At { first, apart, call: 0 })
    }

    /// Waits until the next call begins; whether this rank came too late for it.
    #[inline]
    pub(super) fn wait<E: Collectives>(&mut self, endpoint: &mut E) -> Result<bool, Error> {
        match self {
            Self::Library => endpoint.meet().map(|()| false),
            Self::Nothing => Ok(false),
            Self::Own(barrier) => {
                barrier.pass(|| endpoint.idle_until(Ticks(0)))?;
                Ok(false)
            }
            Self::At { first, apart, call } => {
                let instant = *first + *call * *apart;
                *call += 1;
                let clock = endpoint.clock();
                let is_late = clock.now().0 > instant;
                while clock.now().0 < instant {
                    std::hint::spin_loop();
                }
                Ok(is_late)
            }
        }
    }
}

/// The time of one call and the delays before and within it, in ticks.
#[inline]
fn time_once<E: Collectives>(endpoint: &mut E, [before, within]: [u64; 2]) -> Result<u64, Error> {
    let clock = endpoint.clock();
    let begin = clock.now();
    pass(clock, before + within);
    endpoint.call()?;
    Ok(clock.now().since(begin))
}

/// Calls that tell how long one takes.
const PILOT: usize = 100;
/// Beside twice the time of a call: what a clock and a loop take.
const APART_LEAST: Duration = Duration::from_micros(10);
/// All ranks have heard of the first instant by then.
const BEGIN_AFTER: Duration = Duration::from_millis(2);
