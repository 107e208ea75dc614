//! The confidence interval of a mean.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of independent numbers with its 95 % confidence interval: t s / sqrt(n), where t is the
/// 97.5th percentile of Student's distribution with n - 1 degrees of freedom (Montgomery and
/// Runger, Applied Statistics and Probability for Engineers, 6th ed., section 8-2). netperf's `-I`
/// narrows this interval. Numbers of repetitions are as good as independent; messages of one run
/// are not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// Half of the width of the interval around it.
    pub half: f64,
}

impl MeanInterval {
    /// The interval of these numbers; `None` for fewer than two.
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let n = numbers.len() as f64;
        let student = StudentsT::new(0.0, 1.0, n - 1.0).ok().filter(|_| numbers.len() > 1)?;
        let mean = numbers.iter().sum::<f64>() / n;
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0)).sqrt();
        Some(Self { mean, half: student.inverse_cdf(0.975) * deviation / n.sqrt() })
    }

    /// Half of its width as a share of the mean; infinite around zero.
    pub fn relative(self) -> f64 {
        if self.half == 0.0 { 0.0 } else { (self.half / self.mean).abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The percentiles are those of printed tables (Montgomery and Runger, table V); the variance
    /// of 1 to n is n (n + 1) / 12.
    #[test]
    fn intervals_are_those_of_the_printed_table() {
        for (n, t) in [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (30, 2.045)] {
            let numbers: Vec<f64> = (1..=n).map(f64::from).collect();
            let n = f64::from(n);
            let found = MeanInterval::of(&numbers).unwrap();
            let half = t * (n * (n + 1.0) / 12.0).sqrt() / n.sqrt();
            assert!((found.mean - f64::midpoint(1.0, n)).abs() < 1e-12, "{found:?}");
            assert!((found.half / half - 1.0).abs() < 3e-4, "{n}: {found:?}, not {half}");
            assert!((found.relative() - found.half / found.mean).abs() < 1e-12);
        }
        assert_eq!(MeanInterval::of(&[1.0]), None);
        assert_eq!(MeanInterval::of(&[]), None);
        let same = MeanInterval::of(&[4.0, 4.0, 4.0]).unwrap();
        assert_eq!((same.half, same.relative()), (0.0, 0.0));
        assert_eq!(MeanInterval::of(&[-1.0, 1.0]).unwrap().relative(), f64::INFINITY);
    }
}
