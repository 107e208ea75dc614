//! Common instants at which ranks start their calls.
//!
//! Ranks agree on instants for some time, and then whether to go on, and on the next instants.
//! Ranks with different clocks agree for a millisecond at first, and then for longer and longer:
//! the first exchanges follow each other so closely that they tell little of the drift.

use std::time::Duration;

use super::clocks::Exchanges;
use super::pass::pass;
use super::work::Work;
use crate::Error;
use crate::cut;
use crate::endpoint::collectives::Collectives;

/// Instants that are about twice the time of a call apart.
pub(super) struct Instants {
    apart_ns: u64,
    /// The first instant and the time from each to the next, in ticks of this rank's clock.
    first: u64,
    apart: Ratio,
    call: u64,
    /// The time, in ns, for which the ranks agree on instants next, and the largest such time.
    span_ns: u64,
    span_most_ns: u64,
    /// The point's time limit, in ticks: no instant is farther ahead.
    limit: u64,
}

/// A number of ticks for a number of calls: whole ticks per call would not be exact enough.
struct Ratio {
    ticks: u64,
    calls: u64,
}

impl Instants {
    /// Agrees on the time between instants. For that the ranks make some calls, which together may
    /// take as long as the point's time limit.
    ///
    /// # Errors
    /// The errors of the endpoint; [`Error::Clocks`] where a rank's calls take longer.
    pub(super) fn new<E: Collectives, W: Work>(
        endpoint: &mut E,
        delays: [u64; 2],
        work: &mut W,
        has_several_clocks: bool,
        limit: Duration,
    ) -> Result<Self, Error> {
        let clock = endpoint.clock();
        let mut longest = [0; PILOT];
        for ticks in &mut longest {
            endpoint.meet()?;
            *ticks = time_once(endpoint, delays, work)?;
        }
        longest.sort_unstable();
        let usual_ns = endpoint.largest(clock.ns(longest[PILOT - 1 - PILOT / 100]))?;
        let apart_ns = apart_ns(usual_ns, limit)?;
        // Far below the time limit, which no instant may pass.
        let span_one_ns = SPAN_ONE.min(limit / 4).as_nanos() as u64;
        let [span_ns, span_most_ns] =
            if has_several_clocks { [SPAN_FIRST_NS, SPAN_MOST_NS] } else { [span_one_ns; 2] };
        Ok(Self {
            apart_ns,
            first: 0,
            apart: Ratio { ticks: 0, calls: 1 },
            call: 0,
            span_ns,
            span_most_ns,
            limit: clock.ticks(limit),
        })
    }

    /// Returns the next instant, by this rank's clock; none where the point is cut, on all ranks.
    ///
    /// # Errors
    /// The errors of the endpoint; [`Error::Clocks`] where the clocks cannot be compared, or an
    /// instant is after the point's time limit.
    #[inline]
    pub(super) fn next<E: Collectives>(
        &mut self,
        endpoint: &mut E,
        exchanges: Option<&mut Exchanges>,
    ) -> Result<Option<u64>, Error> {
        if (self.apart.ticks == 0 || self.call == self.apart.calls) && !self.agree(endpoint, exchanges)? {
            return Ok(None);
        }
        let ticks = self.call.checked_mul(self.apart.ticks).map(|ticks| ticks / self.apart.calls);
        let instant = ticks.and_then(|ticks| self.first.checked_add(ticks)).ok_or_else(too_late)?;
        self.call += 1;
        Ok(Some(instant))
    }

    /// Agrees whether the ranks go on, and on the next instants. Rank 0 chooses them by its clock.
    #[cold]
    fn agree<E: Collectives>(
        &mut self,
        endpoint: &mut E,
        exchanges: Option<&mut Exchanges>,
    ) -> Result<bool, Error> {
        let clock = endpoint.clock();
        let calls = (self.span_ns / self.apart_ns).max(1);
        self.span_ns = (2 * self.span_ns).min(self.span_most_ns);
        let ticks = clock.ticks(Duration::from_nanos(self.apart_ns.saturating_mul(calls)));
        self.call = 0;
        let agreed = match exchanges {
            None => Ok([endpoint.hear(clock.now().0 + clock.ticks(BEGIN_AFTER))?, ticks]),
            Some(exchanges) => {
                exchanges.make(endpoint)?;
                let first = endpoint.hear(clock.now().0 + clock.ticks(BEGIN_AFTER))?;
                let last = endpoint.hear(first.wrapping_add(ticks))?;
                let both = exchanges.ours_at(first).and_then(|first| Ok([first, exchanges.ours_at(last)?]));
                both.map(|[first, last]| [first, last.saturating_sub(first).max(1)])
            }
        };
        let last_allowed = clock.now().0.saturating_add(self.limit);
        let agreed = agreed.and_then(|[first, ticks]| {
            let last = first.checked_add(ticks).filter(|last| *last <= last_allowed);
            last.map(|_| [first, ticks]).ok_or_else(too_late)
        });
        // All ranks stop together: a rank that continued would wait for a rank that cannot.
        let own = if agreed.is_err() { HAS_FAILED } else { u64::from(cut::is_requested()) };
        let worst = endpoint.largest(own)?;
        let [first, ticks] = agreed?;
        if worst >= HAS_FAILED {
            let reason = "another rank cannot compute common instants by its clock".to_owned();
            return Err(Error::Clocks { reason });
        }
        self.first = first;
        self.apart = Ratio { ticks, calls };
        Ok(worst == 0)
    }
}

/// Returns twice the time of the slowest rank's calls, and the time of a clock and a loop.
fn apart_ns(usual_ns: u64, limit: Duration) -> Result<u64, Error> {
    if u128::from(usual_ns) > limit.as_nanos() {
        let reason =
            format!("a rank reports that one call takes {usual_ns} ns, longer than the point's time limit");
        return Err(Error::Clocks { reason });
    }
    Ok(usual_ns.saturating_mul(2).saturating_add(APART_LEAST.as_nanos() as u64))
}

#[cold]
fn too_late() -> Error {
    Error::Clocks { reason: "a call would start after the point's time limit".to_owned() }
}

/// Returns the time of one call and of the delays before and within it, in ticks.
#[inline]
pub(super) fn time_once<E: Collectives, W: Work>(
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

/// The number of calls that determine how long a call takes.
const PILOT: usize = 100;
/// Added to twice the time of a call: what a clock and a loop take.
const APART_LEAST: Duration = Duration::from_micros(10);
/// All ranks have received the first instant by then.
const BEGIN_AFTER: Duration = Duration::from_millis(2);
/// The time until the clocks are compared again, in ns: the first, and the largest. Within the
/// largest, two clocks drift apart by less than a microsecond.
const SPAN_FIRST_NS: u64 = 1_000_000;
const SPAN_MOST_NS: u64 = 50_000_000;
/// The same for ranks with one clock.
const SPAN_ONE: Duration = Duration::from_secs(1);
/// What a rank without common instants tells the others; 1 tells them that the point is cut.
const HAS_FAILED: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::wire::Wire;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn calls_that_take_longer_than_the_point_are_not_believed() {
        assert_eq!(apart_ns(1000, LIMIT).unwrap(), 12_000);
        for usual_ns in [(1 << 63) - 5000, u64::MAX, 60_000_000_001] {
            let error = apart_ns(usual_ns, LIMIT).unwrap_err();
            assert!(matches!(&error, Error::Clocks { reason } if reason.contains("time limit")), "{error}");
        }
    }

    /// Instants from a first one on, as if agreed.
    fn from(first: u64, ticks: u64, call: u64) -> Instants {
        Instants {
            apart_ns: 12_000,
            first,
            apart: Ratio { ticks, calls: 10 },
            call,
            span_ns: SPAN_FIRST_NS,
            span_most_ns: SPAN_MOST_NS,
            limit: 60_000_000_000,
        }
    }

    #[test]
    fn an_instant_that_no_clock_shows_is_refused() {
        let [mut wire, _] = Wire::pair(&[], |_| {});
        assert_eq!(from(7, 30, 2).next(&mut wire, None).unwrap(), Some(13));
        for (first, ticks, call) in [(7, u64::MAX / 2, 3), (u64::MAX - 1, 20, 1)] {
            let refused = from(first, ticks, call).next(&mut wire, None);
            assert!(matches!(refused, Err(Error::Clocks { .. })), "{first} {ticks} {call}");
        }
    }

    #[test]
    fn an_instant_behind_the_time_limit_is_refused_by_all() {
        // What the other rank has sent.
        for (told, is_refused) in [(1 << 62, true), (u64::MAX, true), (0, false)] {
            let [mut wire, _] = Wire::pair(&[], |_| {});
            wire.hears(told);
            let agreed = from(0, 0, 0).next(&mut wire, None);
            assert_eq!(matches!(agreed, Err(Error::Clocks { .. })), is_refused, "{told}: {agreed:?}");
            assert_eq!(wire.largest_told(), if is_refused { HAS_FAILED } else { 0 });
        }
    }

    #[test]
    fn ranks_look_ahead_for_ever_longer() {
        let mut spans = Vec::new();
        let mut instants = from(0, 0, 0);
        for _ in 0..8 {
            let [mut wire, _] = Wire::pair(&[], |_| {});
            instants.call = instants.apart.calls;
            instants.next(&mut wire, None).unwrap();
            spans.push(instants.apart.calls * instants.apart_ns / 1_000_000);
        }
        assert_eq!(spans, [0, 1, 3, 7, 15, 31, 49, 49]);
    }
}
