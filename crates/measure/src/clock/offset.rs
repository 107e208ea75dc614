//! Compares two clocks: bounds the local time of an event that the remote clock stamped, without
//! a guess within the bounds.
//!
//! A message arrives after it was sent. So an exchange, a message and its answer, shows that the
//! local clock read at least `sent` when the remote clock read `arrived`, and at most `returned`
//! when the remote clock read `answered`. Half the round trip bounds the error (Cristian,
//! Probabilistic clock synchronization, Distributed Computing 3, 1989). With a constant rate, the
//! pairs of offset and rate that satisfy all exchanges form a convex polygon. Its corners belong to
//! convex hulls of the stamps: the lines of Moon, Skelly and Towsley (Estimation and removal of
//! clock skew from network delay measurements, INFOCOM 1999) and Zhang, Liu and Xia (Clock
//! synchronization algorithms for network measurements, INFOCOM 2002), who choose one of them.
//! This module keeps all of them: a stamp becomes the interval of the values that any of them
//! gives. It assumes no distribution of the transit times and no symmetry, only that none is
//! negative.
//!
//! [`Nominal`] holds the two assumptions: how far a rate may be from its nominal value, and how
//! much it may change during the exchanges. The first matters little with exchanges before and
//! after the measurement, the second always. A change that contradicts the exchanges is detected
//! ([`Reason`]); a change within the bounds is not.

use serde::{Deserialize, Serialize};

use super::{Clock, ClockKind};

mod lines;
mod reason;
#[cfg(test)]
mod tests;

use lines::{Lines, Point, Slope};
pub use reason::Reason;

/// The four stamps of a message and its answer, in ticks.
///
/// A sending stamp must be taken before the message can be seen, and an arrival stamp after it has
/// been seen. The processor may execute `rdtsc` before a load that precedes it; only a fence
/// ([`Clock::now_after_loads`]) or a system call between the two prevents that.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Exchange {
    /// Local clock, before the message was sent.
    pub sent: u64,
    /// Remote clock, after the message had arrived.
    pub arrived: u64,
    /// Remote clock, before the answer was sent.
    pub answered: u64,
    /// Local clock, after the answer had arrived.
    pub returned: u64,
}

/// The assumptions about a clock's rate, without comparing it. The ranks tell each other theirs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Nominal {
    /// Ticks in a second, in Hz.
    pub tick_hz: f64,
    /// How far the true rate may be from `tick_hz`, in ppm.
    pub drift_ppm: f64,
    /// How far the rate may be from its own mean while exchanges are made and between them, in ppm.
    pub wander_ppm: f64,
}

/// The possible readings of the local clock at an instant, both bounds included. They count on from
/// the first exchange without a limit: below 0 before the clock's start, and from 2^64 on where a
/// counter would start again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Interval {
    /// The smallest, in local ticks.
    pub least: i128,
    /// The largest, in local ticks.
    pub largest: i128,
}

/// The time from a local stamp to a remote stamp, as the local clock alone would have measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// The middle of the possible values, in ns; negative where the remote stamp came first.
    pub ns: f64,
    /// The largest distance of the true value from `ns`, in ns.
    pub bound_ns: f64,
}

/// The relation of the remote clock to the local clock.
#[derive(Clone, Debug)]
pub struct Offset {
    lines: Lines,
    /// The first exchange's stamps of both clocks, which the lines count from.
    zero: Point64,
    /// Nanoseconds in a local tick.
    ns_per_tick: f64,
    /// Local ticks in a remote tick, nominally.
    rate: f64,
    /// The remote readings between which there were exchanges, from zero.
    compared: (i128, i128),
    /// What wander can add between exchanges, in local ticks.
    slack: i128,
    /// What wander can add beyond them, in local ticks per remote tick.
    slack_beyond: f64,
}

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
struct Point64 {
    theirs: u64,
    ours: u64,
}

impl Nominal {
    /// The assumptions about a computer's clock: the error of its calibration, what crystals and
    /// the kernel may add, and what temperature changes.
    pub fn of(clock: &Clock) -> Self {
        Self {
            tick_hz: clock.tick_hz(),
            drift_ppm: clock.tick_error_ppm() + CRYSTAL_PPM + SLEW_PPM,
            wander_ppm: match clock.kind() {
                ClockKind::Tsc => WANDER_PPM,
                ClockKind::ClockMonotonic => WANDER_PPM + CORRECTION_PPM,
                ClockKind::Simulated => 0.0,
            },
        }
    }

    /// Names a claim about this clock that is true of no clock, in words that follow "its clock is
    /// said to"; `None` if there is no such claim.
    pub fn fault(&self) -> Option<String> {
        if !HZ.contains(&self.tick_hz) {
            return Some(format!("run at {} Hz", self.tick_hz));
        }
        if !(0.0..=DRIFT_PPM_MAX).contains(&self.drift_ppm) {
            return Some(format!("drift by up to {} ppm", self.drift_ppm));
        }
        if !(0.0..=WANDER_PPM_MAX).contains(&self.wander_ppm) {
            return Some(format!("wander by up to {} ppm", self.wander_ppm));
        }
        None
    }

    fn check(&self, whose: &'static str) -> Result<(), Reason> {
        self.fault().map_or(Ok(()), |claim| Err(Reason::Nominal { whose, claim }))
    }
}

impl Offset {
    /// Computes the relation from exchanges in any order, in O(n log n), exactly but for rounding
    /// outwards to a tick.
    ///
    /// # Errors
    ///
    /// The reason for which there is no bound.
    pub fn of(exchanges: &[Exchange], ours: Nominal, theirs: Nominal) -> Result<Self, Reason> {
        ours.check("our")?;
        theirs.check("their")?;
        let zero = exchanges.first().ok_or(Reason::NoExchange)?;
        let zero = Point64 { theirs: zero.arrived, ours: zero.sent };
        let (mut lows, mut highs) = constraints(exchanges, zero)?;

        let wander = (ours.wander_ppm + theirs.wander_ppm) * 1e-6 * ROUNDING;
        let slack = (wander / 4.0 * span(&lows, &highs) as f64).ceil() as i128;
        lows.iter_mut().for_each(|point| point.y -= slack);
        highs.iter_mut().for_each(|point| point.y += slack);

        let rate = ours.tick_hz / theirs.tick_hz;
        let limits = rates(&ours, &theirs, wander);
        let lines =
            Lines::between(lows.clone(), highs.clone(), Slope::at_most(limits.0), Slope::at_least(limits.1));
        let first = lows.iter().map(|point| point.x).min();
        let last = highs.iter().map(|point| point.x).max();
        Ok(Self {
            lines: lines.ok_or_else(|| why_none(lows, highs, rate, limits))?,
            zero,
            ns_per_tick: 1e9 / ours.tick_hz,
            rate,
            compared: (first.unwrap_or(0), last.unwrap_or(0)),
            slack,
            slack_beyond: 2.0 * wander * limits.1,
        })
    }

    /// The possible readings of the local clock when the remote clock showed `theirs`, before,
    /// between and after the exchanges. The interval is wider further away from them.
    pub fn interval(&self, theirs: u64) -> Interval {
        let zero = i128::from(self.zero.ours);
        let Interval { least, largest } = self.interval_from_zero(theirs);
        Interval { least: zero + least, largest: zero + largest }
    }

    /// The time from a local stamp to a remote one.
    pub fn elapsed(&self, ours: u64, theirs: u64) -> Elapsed {
        let Interval { least, largest } = self.interval_from_zero(theirs);
        let ours = i128::from(ours.wrapping_sub(self.zero.ours).cast_signed());
        let ns = (least + largest - 2 * ours) as f64 / 2.0 * self.ns_per_tick;
        let half_ns = (largest - least) as f64 / 2.0 * self.ns_per_tick;
        // A few roundings of 2^-53 each.
        Elapsed { ns, bound_ns: half_ns + (half_ns + ns.abs()) * f64::EPSILON * 4.0 }
    }

    /// The largest bound, in ns, of a remote stamp from `first` to `last`: no
    /// [`Offset::interval`] there is wider than twice that. The width is a convex function, so it
    /// is largest at `first` or `last`; two ticks are added for rounding.
    pub fn bound_ns(&self, first: u64, last: u64) -> f64 {
        let width = |theirs| self.interval(theirs).largest - self.interval(theirs).least;
        let ticks = width(first).max(width(last)) + WIDTH_ROUNDING;
        ticks as f64 / 2.0 * self.ns_per_tick * (1.0 + f64::EPSILON * 4.0)
    }

    /// By how much the remote clock runs faster than the local one, relative to the nominal rates:
    /// the smallest and the largest possible value, in ppm.
    pub fn drift_ppm(&self) -> (f64, f64) {
        drift_ppm(&self.lines, self.rate)
    }

    /// As [`Offset::interval`], minus the local zero: counters count modulo 2^64.
    fn interval_from_zero(&self, theirs: u64) -> Interval {
        let x = i128::from(theirs.wrapping_sub(self.zero.theirs).cast_signed());
        let slack = self.slack_at(x);
        // The remote clock shows x from x until just before x + 1, and the local clock rounds down,
        // too.
        Interval { least: self.lines.least(x) - slack, largest: self.lines.largest(x + 1) - 1 + slack }
    }

    /// What wander can have added until `x`, in local ticks.
    fn slack_at(&self, x: i128) -> i128 {
        let beyond = (self.compared.0 - x).max(x + 1 - self.compared.1).max(0);
        self.slack + (self.slack_beyond * beyond as f64).ceil() as i128
    }
}

/// The points above which and below which the line of the remote clock runs, with remote x and
/// local y. A clock that shows n is between n and n + 1, so each point is moved outwards by a tick.
fn constraints(exchanges: &[Exchange], zero: Point64) -> Result<(Vec<Point>, Vec<Point>), Reason> {
    let distance = |ticks: u64, zero: u64, whose| {
        let distance = ticks.wrapping_sub(zero).cast_signed();
        let fits = distance.unsigned_abs() <= SPAN_TICKS_MAX;
        fits.then_some(i128::from(distance)).ok_or(Reason::TooFarApart { whose })
    };
    let mut lows = Vec::with_capacity(exchanges.len());
    let mut highs = Vec::with_capacity(exchanges.len());
    for (exchange, stamps) in (1..).zip(exchanges) {
        let sent = distance(stamps.sent, zero.ours, "our")?;
        let returned = distance(stamps.returned, zero.ours, "our")?;
        let arrived = distance(stamps.arrived, zero.theirs, "their")?;
        let answered = distance(stamps.answered, zero.theirs, "their")?;
        for (from, to, whose) in [(sent, returned, "our"), (arrived, answered, "their")] {
            if to < from {
                return Err(Reason::WentBack { whose, exchange });
            }
        }
        lows.push(Point { x: arrived + 1, y: sent });
        highs.push(Point { x: answered, y: returned + 1 });
    }
    Ok((lows, highs))
}

/// Whether exchanges allow both clocks to be one, tick by tick, with a constant shift of up to
/// `tolerance` ticks: read so, no message arrived before it was sent. This can refute that two
/// processes share a clock ([`super::Domain::shares_with`]), not prove it. Without
/// exchanges nothing is refuted. In O(n).
pub fn holds_one_clock(exchanges: &[Exchange], tolerance: u64) -> bool {
    let least = exchanges.iter().map(|stamps| stamps.sent.wrapping_sub(stamps.arrived).cast_signed()).max();
    let largest =
        exchanges.iter().map(|stamps| stamps.returned.wrapping_sub(stamps.answered).cast_signed()).min();
    let (Some(least), Some(largest)) = (least.map(i128::from), largest.map(i128::from)) else { return true };
    least <= largest && least <= i128::from(tolerance) && -i128::from(tolerance) <= largest
}

/// Time from the first stamp to the last, in local ticks.
fn span(lows: &[Point], highs: &[Point]) -> i128 {
    let ys = || lows.iter().chain(highs).map(|point| point.y);
    ys().max().unwrap_or(0) - ys().min().unwrap_or(0)
}

/// The smallest and the largest number of local ticks in a remote tick.
///
/// With rates within `wander` of their mean, a straight line is never further from the remote clock
/// during the exchanges than a quarter of `wander` times their span, and its slope is one of those
/// rates. (For a function whose slope is at most w in magnitude, the best line leaves errors E, -E
/// and E in turn. With m its slope, 2 E / (w + m) + 2 E / (w - m) is at most the span, so E is
/// largest for m = 0, where it is w / 4 of the span.) Beyond the span they part by twice `wander`.
fn rates(ours: &Nominal, theirs: &Nominal, wander: f64) -> (f64, f64) {
    let rate = ours.tick_hz / theirs.tick_hz;
    let our_drift = ours.drift_ppm * 1e-6;
    let their_drift = theirs.drift_ppm * 1e-6;
    let least = rate * (1.0 - our_drift) / (1.0 + their_drift) * (1.0 - wander);
    let largest = rate * (1.0 + our_drift) / (1.0 - their_drift) * (1.0 + wander);
    (least * (1.0 - RATE_ROUNDING), largest * (1.0 + RATE_ROUNDING))
}

/// The reason why no lines fit: checks whether another constant rate would have fitted.
fn why_none(lows: Vec<Point>, highs: Vec<Point>, rate: f64, limits: (f64, f64)) -> Reason {
    let exchanges = lows.len();
    let any = Lines::between(lows, highs, Slope::at_most(rate / 2.0), Slope::at_least(rate * 2.0));
    any.map_or(Reason::NotConstant { exchanges }, |lines| {
        let (least_ppm, largest_ppm) = drift_ppm(&lines, rate);
        let limit_ppm = (rate / limits.0 - 1.0) * 1e6;
        Reason::Drift { least_ppm, largest_ppm, limit_ppm }
    })
}

fn drift_ppm(lines: &Lines, rate: f64) -> (f64, f64) {
    let (flattest, steepest) = lines.slopes();
    let faster = |slope: Slope| (rate / slope.to_f64() - 1.0) * 1e6;
    (faster(steepest) - PPM_ROUNDING, faster(flattest) + PPM_ROUNDING)
}

/// The tolerance of computers' crystals, over temperature and age. Half of some 20,000 hosts that
/// ran NTP were within 78 ppm, some beyond 500 (Mills, Computer Network Time Synchronization, CRC
/// 2006): [`Reason::Drift`] if exchanges show that.
const CRYSTAL_PPM: f64 = 200.0;
/// What adjtimex(2) may add for the kernel's clock: `MAXFREQ` in the kernel's
/// include/linux/timex.h. It counts for the time stamp counter too, which is calibrated against
/// that clock. adjtime(3) may add as much again, and chronyd more, for a while, when they correct a
/// large offset.
const SLEW_PPM: f64 = 500.0;
/// An oscillator's rate changes by a few ppm over a day, with the temperature (Mills, as above).
/// Over the seconds to minutes of a point it is assumed to stay within a tenth of a ppm of its
/// mean.
const WANDER_PPM: f64 = 0.1;
/// The change of rate by one correction of a disciplined clock. A choice, not a bound: see the
/// module.
const CORRECTION_PPM: f64 = 1.0;
/// A tenth: no clock is slewed by more (adjtimex(2), `tick`).
const DRIFT_PPM_MAX: f64 = 100_000.0;
/// A hundredth of a percent: with more, a rate is not constant. Squares of it are negligible beside
/// [`ROUNDING`].
const WANDER_PPM_MAX: f64 = 100.0;
/// Rates whose ratio is within the range of [`Slope`].
const HZ: std::ops::RangeInclusive<f64> = 1e4..=1e12;
/// 36 years at 1 GHz, with room for the arithmetic.
const SPAN_TICKS_MAX: u64 = 1 << 60;
/// Four numbers of a width are rounded: two by the lines, two by wander.
const WIDTH_ROUNDING: i128 = 4;
/// Covers second-order terms of the wander.
const ROUNDING: f64 = 1.001;
/// Covers roundings of 2^-53 in the limits of the rate.
const RATE_ROUNDING: f64 = 1e-12;
/// The same for a drift in ppm.
const PPM_ROUNDING: f64 = 1e-8;
