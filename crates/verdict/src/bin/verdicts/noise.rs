//! Noise of simulated measurements.

use std::sync::LazyLock;

use measure::random::Random;
use measure::stats::spread;
use verdict::regime;

/// From a median absolute deviation to the standard deviation of normal numbers.
const SCALE_OF_MAD: f64 = 1.4826;
/// A series with a smaller scale is a row of clock steps, whose residuals have no shape.
const LEAST_SCALE: f64 = 1e-3;

/// How measurements vary beside what is true of hosts and pairs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Noise {
    /// Residuals of a recorded series, in their order: most are near, some are far slower.
    Recorded,
    /// Normal, and one measurement in ten is slower by a lognormal time.
    SlowTail,
    /// As recorded, and each host is 8 % slower for one twentieth of the time.
    Flips,
}

/// All kinds.
pub(crate) const NOISES: [Noise; 3] = [Noise::Recorded, Noise::SlowTail, Noise::Flips];

/// One series of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// What was measured.
    pub(crate) name: &'static str,
    /// Logarithms of the numbers, larger is better, in the order of time.
    pub(crate) y: Vec<f64>,
    /// The core-to-core latency around each number, in ns.
    pub(crate) placements: Vec<Option<f64>>,
    /// The numbers of the most frequent regime of placement about their median, in units of their
    /// scale.
    residuals: Vec<f64>,
    /// That scale: a share of the numbers.
    pub(crate) scale: f64,
}

/// The recording (`cargo xtask verdicts --record`), without series that are rows of clock steps.
pub(crate) static RECORDED: LazyLock<Vec<Series>> = LazyLock::new(|| {
    let mut all: Vec<(&str, Vec<[f64; 2]>)> = Vec::new();
    for line in include_str!("noise/recorded.txt").lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix("series "), line.split_once(' '), all.last_mut()) {
            (Some(name), _, _) => all.push((name, Vec::new())),
            (None, Some((number, placement)), Some((_, numbers))) => {
                numbers.push([number, placement].map(|number| number.parse().expect("a recorded number")));
            }
            _ => panic!("a line of the recording is neither a series nor two numbers: {line}"),
        }
    }
    all.into_iter().filter_map(|(name, numbers)| Series::new(name, &numbers)).collect()
});

impl Series {
    fn new(name: &'static str, numbers: &[[f64; 2]]) -> Option<Self> {
        let y: Vec<f64> = numbers.iter().map(|[number, _]| number.ln()).collect();
        let placements: Vec<Option<f64>> = numbers.iter().map(|[_, placement]| Some(*placement)).collect();
        let kept = regime::most_frequent(&placements);
        let mut residuals: Vec<f64> = y.iter().zip(kept).filter_map(|(y, kept)| kept.then_some(*y)).collect();
        let median = spread(&residuals)?.median;
        residuals.iter_mut().for_each(|residual| *residual -= median);
        let deviations: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
        let scale = SCALE_OF_MAD * spread(&deviations)?.median;
        residuals.iter_mut().for_each(|residual| *residual /= scale);
        (scale >= LEAST_SCALE).then_some(Self { name, y, placements, residuals, scale })
    }

    /// The number of residuals.
    pub(crate) fn len(&self) -> usize {
        self.residuals.len()
    }

    /// A residual, in units of the scale of the series.
    pub(crate) fn residual(&self, index: u64) -> f64 {
        self.residuals[(index % self.residuals.len() as u64) as usize]
    }

    /// A line that says what it is.
    pub(crate) fn line(&self) -> String {
        let Self { name, y, residuals, scale, .. } = self;
        let percent = 100.0 * scale;
        let [runs, near] = [y.len(), residuals.len()];
        format!("recorded: {name:<24} {runs:>4} runs, {near:>4} of one placement, scale {percent:5.2} %")
    }

    /// A series that a number chooses.
    pub(crate) fn drawn(number: u64) -> &'static Self {
        &RECORDED[(number % RECORDED.len() as u64) as usize]
    }
}

impl Noise {
    /// A letter for tables.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Recorded => 'A',
            Self::SlowTail => 'B',
            Self::Flips => 'C',
        }
    }

    /// The deviation of one measurement, in units of the scale. A stream is one direction of one
    /// pair; its measurements at successive times are neighbours of the recorded series.
    pub(crate) fn deviation(self, series: &Series, stream: u64, time: u64) -> f64 {
        match self {
            Self::Recorded | Self::Flips => series.residual(stream.wrapping_add(time)),
            Self::SlowTail => {
                let mut random = Random(stream.wrapping_add(time.wrapping_mul(0xd134_2543_de82_ef95)));
                let late = if random.fraction() < 0.1 { 5.0 * (0.8 * random.normal()).exp() } else { 0.0 };
                random.normal() - late
            }
        }
    }
}

/// A number from several, the same in every run: a seed of independent random numbers.
pub(crate) fn mixed(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |mixed, &part| Random(mixed ^ part).bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_have_a_median_of_0_and_a_scale_of_1() {
        assert!(RECORDED.len() >= 8, "{} series", RECORDED.len());
        for Series { name, residuals, .. } in RECORDED.iter() {
            assert!(residuals.len() >= 70, "{name}: {} residuals", residuals.len());
            assert!(spread(residuals).unwrap().median.abs() < 1e-9, "{name}");
            let deviations: Vec<f64> = residuals.iter().map(|value| value.abs()).collect();
            assert!((SCALE_OF_MAD * spread(&deviations).unwrap().median - 1.0).abs() < 1e-9, "{name}");
        }
    }
}
