//! The values of samples.

use std::f64::consts::TAU;

use measure::random::Random;

use crate::patterns::pipeline::steps::Values;
use crate::point::Signal;

/// Generates the values of each step, in order.
#[derive(Debug)]
pub(super) struct Signals {
    signals: Box<[Kind]>,
    /// The last value of each signal, from which random walks continue.
    values: Box<[f64]>,
    random: Random,
    rate_hz: f64,
}

/// The signal of one value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Counter,
    Ramp,
    Random,
    Sine,
    Square,
    Triangle,
}

/// The order of mixed signals.
const MIXED: [Kind; 6] = [Kind::Random, Kind::Sine, Kind::Square, Kind::Triangle, Kind::Ramp, Kind::Counter];
/// The frequency of periodic signals, in Hz.
const FREQUENCY_HZ: f64 = 1.0;
/// The standard deviation of the steps of a random walk: VILLASnode's default.
const STEP: f64 = 0.2;
/// The seed of random walks: the same in every run.
const SEED: u64 = 0x5eed;

impl Signals {
    /// Signals for samples of `values` values, at `rate_hz` samples per second.
    pub(super) fn new(signal: Signal, values: u32, rate_hz: f64) -> Self {
        let one = |index: usize| match signal {
            Signal::Counter => Kind::Counter,
            Signal::Mixed => MIXED[index % MIXED.len()],
            Signal::Random => Kind::Random,
            Signal::Sine => Kind::Sine,
        };
        let signals: Box<[_]> = (0..values as usize).map(one).collect();
        let values = vec![0.0; signals.len()].into();
        Self { signals, values, random: Random(SEED), rate_hz }
    }
}

impl Values for Signals {
    /// The values do not depend on missed steps, except those of random walks.
    #[inline]
    fn at(&mut self, step: u64) -> &[f64] {
        let running_s = step as f64 / self.rate_hz;
        let turn = (running_s * FREQUENCY_HZ).fract();
        for (value, signal) in self.values.iter_mut().zip(&self.signals) {
            *value = match signal {
                Kind::Counter => step as f64,
                Kind::Ramp => turn,
                Kind::Random => *value + STEP * normal(&mut self.random),
                Kind::Sine => (TAU * turn).sin(),
                Kind::Square => 1.0_f64.copysign(turn - 0.5),
                Kind::Triangle => 4.0 * ((turn - 0.5).abs() - 0.25),
            };
        }
        &self.values
    }
}

/// A standard normal number, exact to about a hundredth and never beyond 6: the sum of twelve
/// uniform numbers of 16 bits (Irwin 1927, Hall 1927). It costs a tenth of an exact one, which
/// takes too long for a step of a microsecond.
#[inline]
fn normal(random: &mut Random) -> f64 {
    let sum_of_four = |bits: u64| (0..4).map(|part| bits >> (16 * part) & 0xffff).sum::<u64>();
    let sum = sum_of_four(random.bits()) + sum_of_four(random.bits()) + sum_of_four(random.bits());
    // Each number stands for the middle of its interval.
    (sum as f64 + 6.0) / 65_536.0 - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_walk_takes_normal_steps() {
        let mut signals = Signals::new(Signal::Random, 2, 1000.0);
        let mut steps = Vec::new();
        let mut before = [0.0; 2];
        for step in 0..100_000 {
            let values = signals.at(step);
            steps.extend(values.iter().zip(before).map(|(now, before)| now - before));
            before = [values[0], values[1]];
        }
        let count = steps.len() as f64;
        let moment = |power: i32| steps.iter().map(|step| (step / STEP).powi(power)).sum::<f64>() / count;
        // Standard errors of the first four moments of so many normal numbers: 0.0022, 0.0032,
        // 0.0087, 0.022; the fourth of a sum of twelve is 3 - 6/5/12 = 2.9.
        assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.015, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 0.04 && (moment(4) - 2.9).abs() < 0.1, "{} {}", moment(3), moment(4));
        // The values are not correlated.
        let together = steps.chunks_exact(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / count * 2.0;
        assert!(together.abs() < 0.02 * STEP * STEP, "{together}");
    }

    #[test]
    fn what_repeats_itself_does_so_once_a_second() {
        let mut signals = Signals::new(Signal::Mixed, 6, 1000.0);
        let mut at = |step: u64| signals.at(step)[1..].to_vec();
        let near = |values: &[f64], expected: &[f64]| {
            values.iter().zip(expected).all(|(value, expected)| (value - expected).abs() < 1e-9)
        };
        // Sine, square, triangle, ramp, counter.
        for second in [0, 7000] {
            let counter = second as f64;
            assert!(near(&at(second), &[0.0, -1.0, 1.0, 0.0, counter]), "{:?}", at(second));
            assert!(near(&at(second + 250), &[1.0, -1.0, 0.0, 0.25, counter + 250.0]));
            assert!(near(&at(second + 750), &[-1.0, 1.0, 0.0, 0.75, counter + 750.0]));
        }
        assert_eq!(Signals::new(Signal::Sine, 1, 8.0).at(2), [1.0]);
        assert_eq!(Signals::new(Signal::Counter, 2, 8.0).at(5), [5.0, 5.0]);
    }
}
