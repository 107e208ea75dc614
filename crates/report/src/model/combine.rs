//! Sums of numbers that were measured separately, with their interval.

use measure::stats::NORMAL_97_5;
use measure::stats::shape::Estimate;

/// Adds a constant and numbers, each times a factor. The result has a 95 % interval if the numbers
/// have one and are independent (the method of variance estimates recovery: Zou, Huang and Zhang
/// 2009, Computational Statistics and Data Analysis 53, 3755-3764).
pub(super) fn sum(constant: f64, terms: &[(f64, Estimate)]) -> Estimate {
    let value = constant + terms.iter().map(|(factor, term)| factor * term.value).sum::<f64>();
    let reach = |is_up: bool| {
        let reach = |(factor, term): &(f64, Estimate)| {
            let end = if (*factor > 0.0) == is_up { term.high } else { term.low };
            (factor * (end - term.value)).powi(2)
        };
        terms.iter().map(reach).sum::<f64>().sqrt()
    };
    Estimate { value, low: value - reach(false), high: value + reach(true) }
}

/// The standard deviation of a median relative to its value, from its 95 % interval.
pub(super) fn relative(of: Estimate) -> f64 {
    (of.high - of.low) / (2.0 * NORMAL_97_5 * of.value)
}

/// The weight of a model's error, in standard deviations of the measured number. No number counts
/// as known better than [`SCATTER`], so that numbers with the most samples do not decide alone.
pub(super) fn residual(model: f64, measured: Estimate) -> f64 {
    (model.ln() - measured.value.ln()) / relative(measured).hypot(SCATTER)
}

/// The scatter of points between set-ups, whatever their number of samples.
const SCATTER: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_reached_by_the_ends_that_move_it_there() {
        let one = Estimate { value: 3.0, low: 2.0, high: 5.0 };
        let other = Estimate { value: 1.0, low: 0.0, high: 3.0 };
        let sum = sum(1.0, &[(2.0, one), (-1.0, other)]);
        assert_eq!(sum.value, 6.0);
        assert!((6.0 - sum.low - 8f64.sqrt()).abs() < 1e-12 && (sum.high - 6.0 - 17f64.sqrt()).abs() < 1e-12);
    }
}
