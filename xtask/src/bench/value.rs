//! What a measurement gives, and in which unit.

use anyhow::{Result, ensure};

use crate::stats::median;

/// What is measured in a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    /// ns; the less the better.
    Latency,
    /// Bytes per second.
    Bandwidth,
    /// Messages per second.
    Rate,
}

/// A tool knows a median, a mean or both. The two are never compared with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Value {
    pub(super) median: Option<f64>,
    pub(super) mean: Option<f64>,
}

impl Value {
    pub(super) fn mean(mean: f64) -> Self {
        Self { mean: Some(mean), median: None }
    }

    /// Of the parts of a run that took equally long or did equally much.
    pub(super) fn of_parts(mut parts: Vec<f64>) -> Result<Self> {
        ensure!(
            parts.iter().all(|part| part.is_finite() && *part > 0.0),
            "a number that cannot be: {parts:?}"
        );
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        let median = median(&mut parts);
        ensure!(median.is_some(), "it printed no number");
        Ok(Self { median, mean: Some(mean) })
    }

    /// The medians of several short runs.
    pub(super) fn of_runs(runs: &[Self]) -> Self {
        let middle =
            |pick: fn(&Self) -> Option<f64>| median(&mut runs.iter().filter_map(pick).collect::<Vec<_>>());
        Self { median: middle(|run| run.median), mean: middle(|run| run.mean) }
    }

    /// The median, where it is known.
    pub(super) fn shown(&self) -> Option<f64> {
        self.median.or(self.mean)
    }

    /// The ratio to another, of what both know.
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
