//! A tick counter and its rate.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::monotonic::monotonic_ns;
use super::{calibration, tsc};
use crate::record::Scale;

/// A reading of a [`Clock`]. Only differences between readings of one clock mean anything.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Ticks from `earlier` to this reading; 0 where the counter went back because the thread moved
    /// to another processor.
    #[inline(always)]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The kinds of clock.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// The time stamp counter: the same for all processes of a kernel that offers it as a clock
    /// source, whatever their namespaces.
    Tsc,
    /// `CLOCK_MONOTONIC`: the same for all processes of a time namespace.
    ClockMonotonic,
    /// The virtual time of a simulation: the same for the ranks that a process simulates.
    Simulated,
}

/// Where the ticks of a clock come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// The time stamp counter.
    Tsc,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic,
    /// A simulation, which sets its time.
    Simulated(fn() -> Ticks),
}

impl Source {
    /// Reads a counter that is slower than the time stamp counter. It is a separate function, so
    /// that hot loops hold only the code of the time stamp counter.
    #[cold]
    #[inline(never)]
    fn read(self) -> Ticks {
        match self {
            Self::Tsc => Ticks(tsc::read()),
            Self::Monotonic => Ticks(monotonic_ns()),
            Self::Simulated(now) => now(),
        }
    }
}

/// A tick counter and its rate. Copy it to where it is used.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// Nanoseconds per tick are `mult / 2^shift`, with `mult` in [2^62, 2^63).
    mult: u64,
    shift: u32,
    tick_hz: f64,
    tick_error_ppm: f64,
}

impl Clock {
    /// The best clock of this machine, calibrated against `CLOCK_MONOTONIC` in about 50 ms.
    pub fn calibrate() -> Self {
        if tsc::unusable().is_some() {
            return Self::monotonic();
        }
        match calibration::tsc_rate() {
            Some(rate) => Self::with_rate(Source::Tsc, rate.tick_hz, rate.error_ppm),
            None => Self::monotonic(),
        }
    }

    /// Why [`Clock::calibrate`] does not use the time stamp counter here; `None` where it does,
    /// provided that its rate is steady.
    pub fn why_not_tsc() -> Option<&'static str> {
        tsc::unusable()
    }

    /// `CLOCK_MONOTONIC`, whose ticks are nanoseconds. Needs no calibration.
    pub fn monotonic() -> Self {
        Self::with_rate(Source::Monotonic, 1e9, 0.0)
    }

    /// The virtual time of a simulation. `now` returns the time of the rank that the calling thread
    /// runs. It is a function and not a value, so that the clock of a simulated endpoint has the
    /// same type and measuring code is compiled once.
    pub fn simulated(now: fn() -> Ticks, tick_hz: f64) -> Self {
        Self::with_rate(Source::Simulated(now), tick_hz, 0.0)
    }

    /// Reads the clock.
    #[inline(always)]
    pub fn now(&self) -> Ticks {
        match self.source {
            Source::Tsc => Ticks(tsc::read()),
            source => source.read(),
        }
    }

    /// Reads the clock after all earlier loads: a processor may otherwise read the time stamp
    /// counter before a load that precedes it. Takes some ns longer.
    #[inline(always)]
    pub fn now_after_loads(&self) -> Ticks {
        match self.source {
            Source::Tsc => Ticks(tsc::read_after_loads()),
            source => source.read(),
        }
    }

    /// Nanoseconds in `ticks`, rounded to the nearest; `u64::MAX` when there are more.
    #[inline(always)]
    pub fn ns(&self, ticks: u64) -> u64 {
        self.ns_scaled(ticks, Scale::Whole)
    }

    /// Nanoseconds in `ticks`, or in half of them, rounded once, after the scaling.
    #[inline(always)]
    pub fn ns_scaled(&self, ticks: u64, scale: Scale) -> u64 {
        let shift = self.shift + scale.shift();
        let product = u128::from(ticks) * u128::from(self.mult);
        u64::try_from((product + (1 << (shift - 1))) >> shift).unwrap_or(u64::MAX)
    }

    /// Nanoseconds in `ticks`.
    pub fn ns_f64(&self, ticks: u64) -> f64 {
        ticks as f64 * (1e9 / self.tick_hz)
    }

    /// Ticks in a duration, rounded to the nearest; `u64::MAX` when there are more.
    pub fn ticks(&self, duration: Duration) -> u64 {
        let whole = duration.as_secs() as f64 * self.tick_hz;
        let part = f64::from(duration.subsec_nanos()) * (self.tick_hz / 1e9);
        (whole + part).round() as u64
    }

    /// `tsc`, `clock_monotonic` or `simulated`, as the record has it.
    pub fn name(&self) -> &'static str {
        match self.source {
            Source::Tsc => "tsc",
            Source::Monotonic => "clock_monotonic",
            Source::Simulated(_) => "simulated",
        }
    }

    /// The kind of clock.
    pub fn kind(&self) -> ClockKind {
        match self.source {
            Source::Tsc => ClockKind::Tsc,
            Source::Monotonic => ClockKind::ClockMonotonic,
            Source::Simulated(_) => ClockKind::Simulated,
        }
    }

    /// Nanoseconds of the clock that defines a second here: `CLOCK_MONOTONIC`, or the time of the
    /// simulation.
    pub fn reference_ns(&self) -> u64 {
        match self.source {
            Source::Simulated(now) => self.ns(now().0),
            Source::Tsc | Source::Monotonic => monotonic_ns(),
        }
    }

    /// Frequency of the ticks, in Hz.
    pub fn tick_hz(&self) -> f64 {
        self.tick_hz
    }

    /// Bound on the error of [`Clock::tick_hz`], in parts per million; 0 when the ticks are
    /// nanoseconds by definition.
    pub fn tick_error_ppm(&self) -> f64 {
        self.tick_error_ppm
    }

    pub(super) fn with_rate(source: Source, tick_hz: f64, tick_error_ppm: f64) -> Self {
        assert!((1.0..1e12).contains(&tick_hz), "a tick rate of {tick_hz} Hz is a defect of the calibration");
        let ns_per_tick = 1e9 / tick_hz;
        let shift = 62 - ns_per_tick.log2().floor() as i32;
        let mult = (ns_per_tick * 2f64.powi(shift)).round() as u64;
        Self { source, mult, shift: shift as u32, tick_hz, tick_error_ppm }
    }
}
