//! Noise of simulated measurements.

use std::sync::LazyLock;

use measure::random::Random;

/// How measurements vary beside what is true of hosts and pairs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Noise {
    /// Residuals of a recorded series, in their order: most are near, some are far slower.
    Recorded,
    /// Normal, and one measurement in ten is slower by a lognormal time.
    SlowTail,
    /// As recorded, and each host is 8 % slower for one twentieth of the time.
    Flips,
}

/// All kinds.
pub const NOISES: [Noise; 3] = [Noise::Recorded, Noise::SlowTail, Noise::Flips];

/// The recorded residuals.
pub static RESIDUALS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let lines = include_str!("noise/residuals.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.trim().parse().ok()).collect()
});

impl Noise {
    /// A letter for tables.
    pub fn letter(self) -> char {
        match self {
            Self::Recorded => 'A',
            Self::SlowTail => 'B',
            Self::Flips => 'C',
        }
    }

    /// The deviation of one measurement, in units of the scale. A stream is one direction of one
    /// pair; its measurements at successive times are neighbours of the recorded series.
    pub fn deviation(self, stream: u64, time: u64) -> f64 {
        match self {
            Self::Recorded | Self::Flips => {
                let index = stream.wrapping_add(time) % RESIDUALS.len() as u64;
                RESIDUALS[index as usize]
            }
            Self::SlowTail => {
                let mut random = Random(stream.wrapping_add(time.wrapping_mul(0xd134_2543_de82_ef95)));
                let late = if random.fraction() < 0.1 { 5.0 * (0.8 * random.normal()).exp() } else { 0.0 };
                random.normal() - late
            }
        }
    }
}

/// A number from several, the same in every run: a seed of independent random numbers.
pub fn mixed(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |mixed, &part| Random(mixed ^ part).bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_have_a_median_of_0_and_a_scale_of_1() {
        let mut sorted = RESIDUALS.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.len() >= 100, "{} residuals", sorted.len());
        assert!(sorted[sorted.len() / 2].abs() < 0.05);
        let mut deviations: Vec<f64> = sorted.iter().map(|value| value.abs()).collect();
        deviations.sort_by(f64::total_cmp);
        assert!((1.4826 * deviations[sorted.len() / 2] - 1.0).abs() < 0.1);
    }
}
