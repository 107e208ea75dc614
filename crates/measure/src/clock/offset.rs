//! Two clocks: when something that theirs stamped happened by ours, between which bounds, and no
//! guess beyond them.
//!
//! A message arrives after it was sent. So an exchange, there and back, says that our clock showed
//! at least `sent` when theirs showed `arrived`, and at most `returned` when it showed `answered`;
//! half the round trip bounds the error (Cristian, Probabilistic clock synchronization, Distributed
//! Computing 3, 1989). With a constant rate the pairs of offset and rate that meet all of it are a
//! convex polygon, whose corners belong to convex hulls of the stamps: the lines of Moon, Skelly
//! and Towsley (Estimation and removal of clock skew from network delay measurements, INFOCOM 1999)
//! and Zhang, Liu and Xia (Clock synchronization algorithms for network measurements, INFOCOM
//! 2002), who choose one of them. Here all are kept: a stamp becomes the interval of what any of
//! them makes of it. Nothing is assumed of the transit times but that none is negative, neither
//! symmetry nor a distribution.
//!
//! What is assumed is in [`Nominal`]: how far a rate may be from its nominal value, and how much it
//! may change while exchanges are made. The first matters little with exchanges before and after
//! what is measured, the second always. A change that contradicts the exchanges is found
//! ([`Reason`]); one that hides within the bounds is not.

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
/// A stamp of sending must be taken before the message can be seen, and one of arrival after it has
/// been: the processor may carry out `rdtsc` before a load that stands in front of it, and only a
/// fence ([`Clock::now_after_loads`]) or a system call between the two prevents that.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Exchange {
    /// Our clock, before the message was sent.
    pub sent: u64,
    /// Their clock, after it had arrived.
    pub arrived: u64,
    /// Their clock, before the answer was sent.
    pub answered: u64,
    /// Our clock, after the answer had arrived.
    pub returned: u64,
}

/// What is known of a clock's rate without comparing it. Both ends tell each other.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Nominal {
    /// Ticks in a second, in Hz.
    pub tick_hz: f64,
    /// How far the true rate may be from `tick_hz`, in ppm.
    pub drift_ppm: f64,
    /// How far the rate may be from its own mean while exchanges are made and between them, in ppm.
    pub wander_ppm: f64,
}

/// The readings of our clock that are possible at an instant, both ends included. It counts on from
/// the first exchange without a limit: below 0 before its start, and from 2^64 on where a counter
/// would start again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Interval {
    /// The least, in ticks of ours.
    pub least: i128,
    /// The largest, in ticks of ours.
    pub largest: i128,
}

/// The time from a stamp of ours to a stamp of theirs, as our clock alone would have measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// The middle of what is possible, in ns; negative where theirs came first.
    pub ns: f64,
    /// The truth is no further from it, in ns.
    pub bound_ns: f64,
}

/// How their clock relates to ours.
#[derive(Clone, Debug)]
pub struct Offset {
    lines: Lines,
    /// The first exchange's stamps of either clock, which the lines count from.
    zero: Point64,
    /// Nanoseconds in a tick of ours.
    ns_per_tick: f64,
    /// Ticks of ours in a tick of theirs, nominally.
    rate: f64,
    /// The readings of theirs between which there were exchanges, from zero.
    compared: (i128, i128),
    /// What wander can do between exchanges, in ticks of ours.
    slack: i128,
    /// What it can do beyond them, in ticks of ours per tick of theirs.
    slack_beyond: f64,
}

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
struct Point64 {
    theirs: u64,
    ours: u64,
}

impl Nominal {
    /// A clock of a computer: what calibration found, what crystals and the kernel may add, and
    /// what warmth changes.
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

    /// What is said of this clock that is true of none, in words that follow "its clock is said
    /// to"; none where it may be true.
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
    /// What these exchanges say, in any order. In O(n log n), and exactly but for rounding outwards
    /// to a tick.
    ///
    /// # Errors
    ///
    /// The reason for which there is no bound, and hence no number.
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

    /// What our clock can have shown when theirs showed `theirs`. Before, between and after the
    /// exchanges alike: it is the wider, the further away they are.
    pub fn interval(&self, theirs: u64) -> Interval {
        let zero = i128::from(self.zero.ours);
        let Interval { least, largest } = self.interval_from_zero(theirs);
        Interval { least: zero + least, largest: zero + largest }
    }

    /// The time from a stamp of ours to one of theirs.
    pub fn elapsed(&self, ours: u64, theirs: u64) -> Elapsed {
        let Interval { least, largest } = self.interval_from_zero(theirs);
        let ours = i128::from(ours.wrapping_sub(self.zero.ours).cast_signed());
        let ns = (least + largest - 2 * ours) as f64 / 2.0 * self.ns_per_tick;
        let half_ns = (largest - least) as f64 / 2.0 * self.ns_per_tick;
        // A few roundings of 2^-53 each.
        Elapsed { ns, bound_ns: half_ns + (half_ns + ns.abs()) * f64::EPSILON * 4.0 }
    }

    /// The largest bound, in ns, of a stamp of theirs from `first` to `last`: no
    /// [`Offset::interval`] there is wider than twice that. The width is a convex function, so it
    /// is largest at an end; two ticks are added for what rounding does.
    pub fn bound_ns(&self, first: u64, last: u64) -> f64 {
        let width = |theirs| self.interval(theirs).largest - self.interval(theirs).least;
        let ticks = width(first).max(width(last)) + WIDTH_ROUNDING;
        ticks as f64 / 2.0 * self.ns_per_tick * (1.0 + f64::EPSILON * 4.0)
    }

    /// By how much their clock runs faster than ours in relation to the nominal rates, at least and
    /// at most, in ppm.
    pub fn drift_ppm(&self) -> (f64, f64) {
        drift_ppm(&self.lines, self.rate)
    }

    /// As [`Offset::interval`], less our zero: counters count modulo 2^64.
    fn interval_from_zero(&self, theirs: u64) -> Interval {
        let x = i128::from(theirs.wrapping_sub(self.zero.theirs).cast_signed());
        let slack = self.slack_at(x);
        // Theirs shows x from x on until just before x + 1, and ours is rounded down as well.
        Interval { least: self.lines.least(x) - slack, largest: self.lines.largest(x + 1) - 1 + slack }
    }

    /// What wander can have done until `x`, in ticks of ours.
    fn slack_at(&self, x: i128) -> i128 {
        let beyond = (self.compared.0 - x).max(x + 1 - self.compared.1).max(0);
        self.slack + (self.slack_beyond * beyond as f64).ceil() as i128
    }
}

/// The points above which and below which their clock's line runs, x theirs and y ours. A clock
/// that shows n is between n and n + 1, so each is moved outwards by a tick.
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

/// Whether exchanges allow that both clocks are one, tick by tick, but for a constant shift of up
/// to `tolerance` ticks: read so, no message arrived before it was sent. It can refute that two
/// processes share a clock ([`super::Domain::shares_with`]), not prove it; none refutes nothing. In
/// O(n).
pub fn holds_one_clock(exchanges: &[Exchange], tolerance: u64) -> bool {
    let least = exchanges.iter().map(|stamps| stamps.sent.wrapping_sub(stamps.arrived).cast_signed()).max();
    let largest =
        exchanges.iter().map(|stamps| stamps.returned.wrapping_sub(stamps.answered).cast_signed()).min();
    let (Some(least), Some(largest)) = (least.map(i128::from), largest.map(i128::from)) else { return true };
    least <= largest && least <= i128::from(tolerance) && -i128::from(tolerance) <= largest
}

/// Time from the first stamp to the last, in ticks of ours.
fn span(lows: &[Point], highs: &[Point]) -> i128 {
    let ys = || lows.iter().chain(highs).map(|point| point.y);
    ys().max().unwrap_or(0) - ys().min().unwrap_or(0)
}

/// The least and the largest number of our ticks in one of theirs.
///
/// With rates within `wander` of their mean a straight line is nowhere further from their clock,
/// while exchanges last, than a quarter of `wander` times that span, and its slope is one of those
/// rates. (A function whose slope is at most w in magnitude: the best line leaves errors E, -E and
/// E in turn; with m its slope, 2 E / (w + m) + 2 E / (w - m) is the span at most, so E is largest
/// for m = 0, where it is w / 4 of the span.) Beyond the span they part by twice `wander`.
fn rates(ours: &Nominal, theirs: &Nominal, wander: f64) -> (f64, f64) {
    let rate = ours.tick_hz / theirs.tick_hz;
    let our_drift = ours.drift_ppm * 1e-6;
    let their_drift = theirs.drift_ppm * 1e-6;
    let least = rate * (1.0 - our_drift) / (1.0 + their_drift) * (1.0 - wander);
    let largest = rate * (1.0 + our_drift) / (1.0 - their_drift) * (1.0 + wander);
    (least * (1.0 - RATE_ROUNDING), largest * (1.0 + RATE_ROUNDING))
}

/// Whether another constant rate would have done.
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

/// What crystals of computers keep to, over temperature and age. Half of some 20,000 hosts that ran
/// NTP were within 78 ppm, some beyond 500 (Mills, Computer Network Time Synchronization, CRC
/// 2006): [`Reason::Drift`] where exchanges show it.
const CRYSTAL_PPM: f64 = 200.0;
/// What adjtimex(2) may make of the kernel's clock beside that: `MAXFREQ` in the kernel's
/// include/linux/timex.h. It counts for the time stamp counter too, which is calibrated against
/// that clock. adjtime(3) may add as much again and chronyd more, for a while, when they make up
/// for a large offset.
const SLEW_PPM: f64 = 500.0;
/// An oscillator's rate changes by a few ppm over a day, with the temperature (Mills, as above):
/// over the seconds to minutes of a point it is taken to keep within a tenth of a ppm of its mean.
const WANDER_PPM: f64 = 0.1;
/// What a clock that is kept in time changes its rate by at one correction. A choice, not a bound:
/// see the module.
const CORRECTION_PPM: f64 = 1.0;
/// A tenth: beyond that nothing slews a clock (adjtimex(2), `tick`).
const DRIFT_PPM_MAX: f64 = 100_000.0;
/// A hundredth of a percent: more is no constant rate, and squares of it do not matter beside
/// [`ROUNDING`].
const WANDER_PPM_MAX: f64 = 100.0;
/// Rates whose ratio is within what [`Slope`] takes.
const HZ: std::ops::RangeInclusive<f64> = 1e4..=1e12;
/// 36 years at 1 GHz, and room for what is done with them.
const SPAN_TICKS_MAX: u64 = 1 << 60;
/// Four numbers of a width are rounded: two by the lines, two by wander.
const WIDTH_ROUNDING: i128 = 4;
/// Makes up for second-order terms of the wander.
const ROUNDING: f64 = 1.001;
/// Makes up for roundings of 2^-53 in the limits of the rate.
const RATE_ROUNDING: f64 = 1e-12;
/// The same for a drift in ppm.
const PPM_ROUNDING: f64 = 1e-8;
