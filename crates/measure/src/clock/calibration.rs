//! The rate of the time stamp counter, found by reading it and `CLOCK_MONOTONIC` together.
//!
//! Two reads of the counter bracket each reading of the system's clock. The system's clock was read
//! somewhere between them, so the middle of the bracket is off by at most half its width. A line
//! through the narrow pairs gives the rate. The widths give a bound on its error that assumes no
//! distribution.

use std::thread;
use std::time::Duration;

use super::monotonic::monotonic_ns;
use super::tsc;

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Middle of the bracket, in ticks of the counter.
    pub(super) ticks: u64,
    /// Width of the bracket, in ticks.
    pub(super) width: u64,
    /// The system's clock, in ns.
    pub(super) ns: u64,
}

/// A rate and its uncertainty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) tick_hz: f64,
    pub(super) error_ppm: f64,
}

/// The counter's rate; `None` when it does not advance evenly with the system's clock.
pub(super) fn tsc_rate() -> Option<Rate> {
    let usable = |rate: &Rate| rate.error_ppm <= ERROR_PPM_MAX && PLAUSIBLE_HZ.contains(&rate.tick_hz);
    (0..ATTEMPTS).find_map(|_| fit(&observe()).filter(usable))
}

/// Pairs spread over the calibration, the narrowest of each burst.
fn observe() -> Vec<Pair> {
    let mut pairs = Vec::with_capacity(BURSTS);
    for burst in 0..BURSTS {
        if burst > 0 {
            thread::sleep(PAUSE);
        }
        pairs.extend((0..BURST_PAIRS).map(|_| pair()).min_by_key(|pair| pair.width));
    }
    pairs
}

fn pair() -> Pair {
    let before = tsc::read();
    let ns = monotonic_ns();
    let width = tsc::read().wrapping_sub(before);
    Pair { ticks: before.wrapping_add(width / 2), width, ns }
}

/// Least-squares line through the narrow pairs. With `e` the largest error of a pair, in ns, the
/// slope is off by `e * sum |x - mean x| / sum (x - mean x)^2` at most. `e` is half the widest
/// bracket kept plus the clock's quantum, or the largest residual where that is larger (then the
/// counter and the clock do not run evenly).
pub(super) fn fit(pairs: &[Pair]) -> Option<Rate> {
    let first = pairs.first()?;
    let narrowest = pairs.iter().map(|pair| pair.width).min()?;
    let kept: Vec<&Pair> = pairs.iter().filter(|pair| pair.width <= narrowest.saturating_mul(2)).collect();
    let x: Vec<f64> = kept.iter().map(|pair| pair.ticks.wrapping_sub(first.ticks) as i64 as f64).collect();
    let y: Vec<f64> = kept.iter().map(|pair| pair.ns.wrapping_sub(first.ns) as i64 as f64).collect();

    let mean_x = mean(&x);
    let mean_y = mean(&y);
    let moment = |values: &[f64], center: f64| -> f64 {
        x.iter().zip(values).map(|(x, value)| (x - mean_x) * (value - center)).sum()
    };
    let square = moment(&x, mean_x);
    let ns_per_tick = moment(&y, mean_y) / square;
    if kept.len() < PAIRS_MIN || !(ns_per_tick.is_finite() && ns_per_tick > 0.0) {
        return None;
    }

    let residual = |(x, y): (&f64, &f64)| ((y - mean_y) - ns_per_tick * (x - mean_x)).abs();
    let residual_ns = x.iter().zip(&y).map(residual).fold(0.0, f64::max);
    let widest = kept.iter().map(|pair| pair.width).max()?;
    let bracket_ns = widest as f64 / 2.0 * ns_per_tick + CLOCK_QUANTUM_NS;
    let leverage: f64 = x.iter().map(|x| (x - mean_x).abs()).sum::<f64>() / square;
    let error_ppm = residual_ns.max(bracket_ns) * leverage / ns_per_tick * 1e6;
    Some(Rate { tick_hz: 1e9 / ns_per_tick, error_ppm })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The number of bursts; with the pauses between them they take about 50 ms.
const BURSTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(1);
/// Enough that at least one of them escapes interrupts.
const BURST_PAIRS: usize = 16;
/// With fewer narrow pairs the residuals say little.
const PAIRS_MIN: usize = 8;
/// Number of attempts: a machine that loses CPU time for 50 ms may be quiet in the next 50.
const ATTEMPTS: usize = 3;
/// A worse clock is not used: 100 ppm is 0.1 ns in a microsecond. On a quiet machine about 1 ppm is
/// seen.
const ERROR_PPM_MAX: f64 = 100.0;
/// Counters run at 24 MHz to some GHz; any other rate is a defect of the machine.
const PLAUSIBLE_HZ: std::ops::Range<f64> = 1e6..1e11;
/// `CLOCK_MONOTONIC` is read in whole nanoseconds.
const CLOCK_QUANTUM_NS: f64 = 1.0;
