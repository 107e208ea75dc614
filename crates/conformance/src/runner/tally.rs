//! What has become of the cases so far, as a value that one process can hand to the next.

use std::fmt;
use std::time::Duration;

/// What has become of a case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// A departure: not run, or run and found to be one still.
    Skipped,
    /// A departure that did not show in this run, and need not.
    Spared,
    /// It is on the list of departures, yet the device keeps it.
    Kept,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Skipped => "departs, as is known",
            Self::Spared => "ok this time",
            Self::Kept => "NO LONGER DEPARTS",
        })
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Tally {
    passed: usize,
    skipped: usize,
    failed: Vec<String>,
    kept: Vec<String>,
    /// Of the processes before this one.
    earlier: Duration,
}

impl Tally {
    pub(super) fn add(&mut self, name: &str, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Skipped | Outcome::Spared => self.skipped += 1,
            Outcome::Failed => self.failed.push(name.to_owned()),
            Outcome::Kept => self.kept.push(name.to_owned()),
        }
    }

    /// How many cases there have been.
    pub(super) fn done(&self) -> usize {
        self.passed + self.skipped + self.failed.len() + self.kept.len()
    }

    pub(super) fn is_good(&self) -> bool {
        self.failed.is_empty() && self.kept.is_empty()
    }

    /// For the next process, after this one has taken `time`.
    pub(super) fn so_far(&self, time: Duration) -> String {
        let failed = self.failed.join(",");
        let kept = self.kept.join(",");
        format!("{} {} [{failed}] [{kept}] {}", self.passed, self.skipped, (self.earlier + time).as_millis())
    }

    /// Reads what [`Tally::so_far`] wrote.
    pub(super) fn resumed(text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let [passed, skipped, failed, kept, earlier] = words[..] else { panic!("five words, not `{text}`") };
        let number = |word: &str| word.parse().expect("a number");
        let names = |word: &str| {
            let names = word.trim_matches(['[', ']']).split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        Self {
            passed: number(passed) as usize,
            skipped: number(skipped) as usize,
            failed: names(failed),
            kept: names(kept),
            earlier: Duration::from_millis(number(earlier)),
        }
    }

    /// The last lines, as the standard harness writes them.
    pub(super) fn report(&self, time: Duration) -> String {
        let mut lines: Vec<String> = self.failed.iter().map(|name| format!("failed: {name}")).collect();
        lines.extend(self.kept.iter().map(|name| format!("to be removed from the departures: {name}")));
        lines.push(format!(
            "\ntest result: {}. {} passed; {} failed; {} skipped; finished in {:.2?}\n",
            if self.is_good() { "ok" } else { "FAILED" },
            self.passed + self.kept.len(),
            self.failed.len(),
            self.skipped,
            self.earlier + time
        ));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Tally {
        let mut tally = Tally::default();
        for (name, outcome) in [
            ("a::first", Outcome::Passed),
            ("a::second", Outcome::Failed),
            ("b::third", Outcome::Skipped),
            ("b::fourth", Outcome::Kept),
            ("b::fifth", Outcome::Failed),
            ("b::sixth", Outcome::Spared),
        ] {
            tally.add(name, outcome);
        }
        tally
    }

    #[test]
    fn the_next_process_reads_what_the_last_one_wrote() {
        for tally in [Tally::default(), some()] {
            let written = tally.so_far(Duration::from_millis(1500));
            let expected = Tally { earlier: Duration::from_millis(1500), ..tally };
            assert_eq!(Tally::resumed(&written), expected, "{written}");
            assert_eq!(expected.so_far(Duration::ZERO), written);
        }
        assert_eq!(some().done(), 6);
    }

    #[test]
    fn every_bad_case_is_named() {
        let report = some().report(Duration::from_secs(2));
        let expected = "failed: a::second\nfailed: b::fifth\nto be removed from the departures: b::fourth\n\
            \ntest result: FAILED. 2 passed; 2 failed; 2 skipped; finished in 2.00s\n";
        assert_eq!(report, expected);
        assert!(!some().is_good() && Tally::default().is_good());
        let mut kept = Tally::default();
        kept.add("a::b", Outcome::Kept);
        assert!(!kept.is_good(), "an entry that is wrong is noticed");
    }
}
