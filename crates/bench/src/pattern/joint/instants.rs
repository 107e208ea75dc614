//! Common instants at which ranks begin their calls.

use std::time::Duration;

use super::clocks::Exchanges;
use super::pass::pass;
use super::work::Work;
use crate::Error;
use crate::endpoint::collectives::Collectives;

/// Instants that are twice as far apart as a call takes.
pub(super) struct Instants {
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
    /// Agrees on how far apart they are: some calls are made for that.
    ///
    /// # Errors
    /// What the endpoint says.
    pub(super) fn new<E: Collectives, W: Work>(
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
    ///
    /// # Errors
    /// What the endpoint says; [`Error::Clocks`] where clocks of ranks cannot be compared.
    #[inline]
    pub(super) fn next<E: Collectives>(
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
