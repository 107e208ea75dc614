//! Rates of errors, with exact intervals.

use statrs::distribution::{Beta, ContinuousCDF};

use crate::Answer;

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
    /// The number of the first trial that erred, from 0 on.
    pub(crate) first_error: Option<u64>,
    /// What was true in it, and what was said; empty if it was tried before.
    pub(crate) example: String,
    /// Why nothing can be said here: then the row is neither held nor missed.
    pub(crate) not_measured: Option<String>,
}

impl Rate {
    /// The rate of a row without a trial.
    pub(crate) fn none(name: &str, bar: Option<f64>) -> Self {
        Self {
            name: name.to_owned(),
            errors: 0,
            trials: 0,
            not_promised: 0,
            bar,
            first_error: None,
            example: String::new(),
            not_measured: None,
        }
    }

    /// Counts one more trial.
    pub(crate) fn add(&mut self, trial: u64, answer: Answer) {
        match answer {
            Answer::NotMeasured(why) => self.not_measured = Some(why),
            Answer::NotPromised => self.not_promised += 1,
            Answer::Right => self.trials += 1,
            Answer::Wrong(text) => {
                self.trials += 1;
                self.errors += 1;
                if self.first_error.is_none() {
                    self.first_error = Some(trial);
                    self.example = text;
                }
            }
        }
    }

    /// The trials that have been tried.
    pub(crate) fn tried(&self) -> u64 {
        self.trials + self.not_promised
    }

    /// This rate with earlier trials of the same row.
    pub(crate) fn after(self, earlier: &Self) -> Self {
        Self {
            errors: earlier.errors + self.errors,
            trials: earlier.trials + self.trials,
            not_promised: earlier.not_promised + self.not_promised,
            first_error: earlier.first_error.or(self.first_error),
            ..self
        }
    }

    /// Whether a rate of the same trials, or of more, has another first error.
    pub(crate) fn differs(&self, longer: &Self) -> bool {
        self.first_error != longer.first_error.filter(|trial| *trial < self.tried())
    }

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
        let share = 100.0 * self.share();
        let Self { name, errors, trials, example, .. } = self;
        let line = format!(
            "{name:<40} {errors:>5} of {trials:<6} {share:6.2} % [{lower:.2}, {upper:.2}]{word}{more}  {example}"
        );
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(errors: u64, trials: u64) -> Rate {
        Rate { errors, trials, ..Rate::none("row", Some(0.01)) }
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
    fn fewer_trials_differ_if_another_one_is_the_first_to_err() {
        let first = |first_error, trials| Rate { first_error, ..rate(0, trials) };
        let longer = first(Some(50), 1000);
        assert!(!first(Some(50), 100).differs(&longer) && !first(None, 50).differs(&longer));
        assert!(first(None, 51).differs(&longer) && first(Some(7), 100).differs(&longer));
        assert!(first(Some(7), 100).differs(&first(None, 1000)));
    }

    #[test]
    fn later_trials_go_on_from_earlier_ones() {
        let part = |trials: std::ops::Range<u64>| {
            let mut rate = Rate::none("row", Some(0.01));
            trials.for_each(|trial| match trial % 4 {
                0 => rate.add(trial, Answer::NotPromised),
                1 => rate.add(trial, Answer::Wrong(trial.to_string())),
                _ => rate.add(trial, Answer::Right),
            });
            rate
        };
        let counts = |rate: &Rate| (rate.errors, rate.trials, rate.not_promised, rate.first_error);
        let earlier = part(0..6);
        assert_eq!((counts(&earlier), earlier.tried()), ((2, 4, 2, Some(1)), 6));
        assert_eq!(counts(&part(6..16).after(&earlier)), counts(&part(0..16)));
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
