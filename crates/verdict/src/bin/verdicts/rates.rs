//! Rates of errors, with exact intervals.

use statrs::distribution::{Beta, ContinuousCDF};

/// The confidence of an interval.
const CONFIDENCE: f64 = 0.95;

/// How often a procedure erred, and how often it may.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    /// What was simulated.
    pub(crate) name: String,
    /// Wrong answers.
    pub(crate) errors: u64,
    /// Trials that count.
    pub(crate) trials: u64,
    /// Trials about which the procedure promises nothing.
    pub(crate) not_promised: u64,
    /// The largest share of errors that the procedure promises; `None`: a number to know, not a
    /// promise.
    pub(crate) bar: Option<f64>,
    /// One trial that erred: what was true and what was said.
    pub(crate) example: Option<String>,
    /// Why nothing can be said here: then the row is neither held nor missed.
    pub(crate) not_measured: Option<String>,
}

impl Rate {
    /// The share of errors.
    pub(crate) fn share(&self) -> f64 {
        self.errors as f64 / self.trials.max(1) as f64
    }

    /// The exact interval of the share (Clopper and Pearson, Biometrika 26, 1934, 404-413).
    pub(crate) fn interval(&self) -> [f64; 2] {
        let [errors, rest] = [self.errors as f64, (self.trials - self.errors) as f64];
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let quantile = |a: f64, b: f64, share: f64| match Beta::new(a, b) {
            Ok(beta) => beta.inverse_cdf(share),
            Err(_) => f64::NAN,
        };
        let lower = if self.errors == 0 { 0.0 } else { quantile(errors, rest + 1.0, tail) };
        let upper = if self.errors == self.trials { 1.0 } else { quantile(errors + 1.0, rest, 1.0 - tail) };
        [lower, upper]
    }

    /// Whether the errors are surely more than promised.
    pub(crate) fn is_missed(&self) -> bool {
        self.not_measured.is_none() && self.bar.is_some_and(|bar| self.interval()[0] > bar)
    }

    /// Whether the errors are surely no more than promised.
    pub(crate) fn is_proven(&self) -> bool {
        self.bar.is_some_and(|bar| self.interval()[1] <= bar)
    }

    /// A line of the table.
    pub(crate) fn line(&self) -> String {
        if let Some(why) = &self.not_measured {
            return format!("{:<40} not measured: {why}", self.name);
        }
        let [lower, upper] = self.interval().map(|share| 100.0 * share);
        let word = match self.bar {
            None => String::new(),
            Some(bar) => {
                let word = if self.trials == 0 {
                    "not judged"
                } else if self.is_missed() {
                    "MISSED"
                } else if self.is_proven() {
                    "proven"
                } else {
                    "held"
                };
                format!("  bar {:.1} %  {word}", 100.0 * bar)
            }
        };
        let more = match self.not_promised {
            0 => String::new(),
            count => format!("  ({count} more without a promise)"),
        };
        let example = self.example.as_ref().map(|text| format!("  {text}")).unwrap_or_default();
        let share = 100.0 * self.share();
        let Self { name, errors, trials, .. } = self;
        format!(
            "{name:<40} {errors:>5} of {trials:<6} {share:6.2} % [{lower:.2}, {upper:.2}]{word}{more}{example}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(errors: u64, trials: u64) -> Rate {
        Rate {
            name: "row".to_owned(),
            errors,
            trials,
            not_promised: 0,
            bar: Some(0.01),
            example: None,
            not_measured: None,
        }
    }

    /// The numbers of scipy 1.17: `binomtest(errors, trials).proportion_ci(method='exact')`.
    #[test]
    fn intervals_are_those_of_clopper_and_pearson() {
        for (errors, trials, lower, upper) in [
            (0, 299, 0.0, 0.012261595907536983),
            (1, 500, 5.0634334007487e-05, 0.011092476899002649),
            (3, 775, 0.0007989991318424589, 0.011270586499994227),
            (10, 1700, 0.0028243134947105756, 0.010791168443753078),
            (5, 5, 0.47817624989501856, 1.0),
        ] {
            let found = rate(errors, trials).interval();
            assert!(
                (found[0] - lower).abs() < 1e-7 && (found[1] - upper).abs() < 1e-7,
                "{errors}: {found:?}"
            );
        }
    }

    #[test]
    fn a_bar_is_missed_only_if_the_interval_is_above_it() {
        let rate = |errors| rate(errors, 1000);
        assert!(!rate(10).is_missed() && !rate(10).is_proven());
        assert!(!rate(16).is_missed());
        assert!(rate(18).is_missed());
        assert!(rate(3).is_proven());
    }

    #[test]
    fn a_rate_without_a_trial_is_not_judged() {
        assert!(rate(0, 0).line().ends_with(" bar 1.0 %  not judged"), "{}", rate(0, 0).line());
    }

    #[test]
    fn what_is_not_measured_is_neither_held_nor_missed() {
        let not_measured = Some("no namespaces".to_owned());
        let rate = Rate { not_measured, ..rate(5, 5) };
        assert!(!rate.is_missed());
        assert_eq!(rate.line(), format!("{:<40} not measured: no namespaces", "row"));
    }
}
