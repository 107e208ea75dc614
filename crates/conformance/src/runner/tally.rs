//! The outcomes of the cases so far, as a value that one process can pass to the next.

use std::fmt;
use std::time::Duration;

/// The outcome of a case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// A known departure: the case was skipped, or it was run and failed.
    Skipped,
    /// A departure that does not occur in every run, and did not occur in this one.
    Spared,
    /// The case is on the list of departures, but it passed.
    Kept,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Skipped => "fails, a known departure",
            Self::Spared => "ok in this run",
            Self::Kept => "NO LONGER A DEPARTURE",
        })
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Tally {
    passed: usize,
    skipped: usize,
    failed: Vec<String>,
    kept: Vec<String>,
    /// The time of the processes before this one.
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

    /// Returns the number of cases so far.
    pub(super) fn done(&self) -> usize {
        self.passed + self.skipped + self.failed.len() + self.kept.len()
    }

    pub(super) fn is_good(&self) -> bool {
        self.failed.is_empty() && self.kept.is_empty()
    }

    /// Returns the outcomes as text for the next process. `time` is the time of this process.
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

    /// Returns the last lines, in the format of the standard test harness.
    pub(super) fn report(&self, time: Duration) -> String {
        let mut lines: Vec<String> = self.failed.iter().map(|name| format!("failed: {name}")).collect();
        lines.extend(self.kept.iter().map(|name| format!("remove from the departures: {name}")));
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
        let expected = "failed: a::second\nfailed: b::fifth\nremove from the departures: b::fourth\n\
            \ntest result: FAILED. 2 passed; 2 failed; 2 skipped; finished in 2.00s\n";
        assert_eq!(report, expected);
        assert!(!some().is_good() && Tally::default().is_good());
        let mut kept = Tally::default();
        kept.add("a::b", Outcome::Kept);
        assert!(!kept.is_good(), "a wrong entry of the departures fails the run");
    }
}
