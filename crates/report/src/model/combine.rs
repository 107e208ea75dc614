//! Sums of numbers that were measured apart, with the interval that follows from theirs.

use measure::stats::NORMAL_97_5;
use measure::stats::shape::Estimate;

/// A constant and numbers, each times a factor. The interval is of 95 % where those of the numbers
/// are and no number depends on another (the method of variance estimates recovery: Zou, Huang and
/// Zhang 2009, Computational Statistics and Data Analysis 53, 3755-3764).
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

/// The standard deviation of a median over its value, from its 95 % interval.
pub(super) fn relative(of: Estimate) -> f64 {
    (of.high - of.low) / (2.0 * NORMAL_97_5 * of.value)
}

/// What an error of a model counts as, in standard deviations of the number that it is the error
/// of. No number counts as known better than [`SCATTER`], so that those with the most samples do
/// not decide alone.
pub(super) fn residual(model: f64, measured: Estimate) -> f64 {
    (model.ln() - measured.value.ln()) / relative(measured).hypot(SCATTER)
}

/// What points scatter by from one set-up to the next, whatever their number of samples.
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
