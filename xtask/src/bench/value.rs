//! The result of a measurement, and its unit.

use anyhow::{Result, ensure};

use crate::stats::median;

/// The quantity that a row measures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    /// ns; lower is better.
    Latency,
    /// Bytes per second.
    Bandwidth,
    /// Messages per second.
    Rate,
}

/// A median, a mean or both, as a tool prints them. A median is never compared with a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Value {
    pub(super) median: Option<f64>,
    pub(super) mean: Option<f64>,
}

impl Value {
    pub(super) fn mean(mean: f64) -> Self {
        Self { mean: Some(mean), median: None }
    }

    /// Summarises parts of a run that took equally long or had equally many messages.
    pub(super) fn of_parts(mut parts: Vec<f64>) -> Result<Self> {
        ensure!(parts.iter().all(|part| part.is_finite() && *part > 0.0), "impossible numbers: {parts:?}");
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        let median = median(&mut parts);
        ensure!(median.is_some(), "the program printed no number");
        Ok(Self { median, mean: Some(mean) })
    }

    /// The median over several short runs, of their medians and of their means.
    pub(super) fn of_runs(runs: &[Self]) -> Self {
        let middle =
            |pick: fn(&Self) -> Option<f64>| median(&mut runs.iter().filter_map(pick).collect::<Vec<_>>());
        Self { median: middle(|run| run.median), mean: middle(|run| run.mean) }
    }

    /// The median if it is known, or else the mean.
    pub(super) fn shown(&self) -> Option<f64> {
        self.median.or(self.mean)
    }

    /// The ratio to another value: of the medians if both have one, or else of the means.
    pub(super) fn over(&self, other: &Self) -> Option<f64> {
        let ratio = |own: Option<f64>, other: Option<f64>| Some(own? / other?);
        ratio(self.median, other.median).or_else(|| ratio(self.mean, other.mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_like_is_compared_with_like() {
        let both = Value { median: Some(2.0), mean: Some(10.0) };
        assert_eq!(both.over(&Value { median: Some(4.0), mean: Some(5.0) }), Some(0.5));
        assert_eq!(both.over(&Value::mean(5.0)), Some(2.0));
        assert_eq!(Value::mean(5.0).over(&Value { median: Some(1.0), mean: None }), None);
    }

    #[test]
    fn parts_and_runs_have_medians() {
        let parts = Value::of_parts(vec![3.0, 1.0, 8.0]).unwrap();
        assert_eq!(parts, Value { median: Some(3.0), mean: Some(4.0) });
        let runs = [parts, Value::mean(6.0), Value { median: Some(5.0), mean: None }];
        assert_eq!(Value::of_runs(&runs), Value { median: Some(4.0), mean: Some(5.0) });
        assert!(Value::of_parts(Vec::new()).is_err() && Value::of_parts(vec![0.0]).is_err());
    }
}
