//! Medians and scales that single wild values do not move.

use statrs::distribution::{ContinuousCDF, Normal};

/// The median absolute deviation of a normal distribution, times this, is its standard deviation.
const NORMAL_MAD: f64 = 1.4826;

/// The median: of an even number, the mean of the middle two. `None` without values.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    median_of(&mut values.into_iter().collect::<Vec<f64>>())
}

/// The same, in time proportional to the number of values; reorders them.
pub(super) fn median_of(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let is_even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match is_even {
        true => below.iter().copied().max_by(f64::total_cmp).map(|lower| f64::midpoint(lower, upper)),
        false => Some(upper),
    }
}

/// The scale of values: 1.4826 times the median absolute deviation from their median, 0 without
/// values.
pub(super) fn scale(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    let Some(middle) = median_of(&mut values) else { return 0.0 };
    values.iter_mut().for_each(|value| *value = (*value - middle).abs());
    NORMAL_MAD * median_of(&mut values).unwrap_or(0.0)
}

/// The root mean square of deviations from 0, each limited to three scales.
pub(super) fn winsorised_rms(values: &[f64]) -> f64 {
    let limit = 3.0 * NORMAL_MAD * median(values.iter().map(|value| value.abs())).unwrap_or(0.0);
    let squares = values.iter().map(|value| value.abs().min(limit).powi(2)).sum::<f64>();
    (squares / values.len().max(1) as f64).sqrt()
}

/// The quantile of the standard normal distribution.
pub(super) fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}
