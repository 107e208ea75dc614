//! The comparison: a row for each point.

use std::fmt::Write;

use anyhow::Result;

use super::plan::{Part, Point, Quantity, Tool};
use crate::stats::median;

/// The largest relative difference of runs, or of two programs, that agree.
const AGREES: f64 = 0.03;
/// The least rate of rdmascope, as a share of the other tool's rate.
const RATE_MIN: f64 = 0.98;
/// The rounding error of OSU and Intel benchmarks, which print hundredths of a microsecond.
const ROUNDED_NS: f64 = 5.0;
/// How many of a program's runs must agree for the program to be steady.
const BEST: usize = 3;

/// A point with the runs of both programs.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) point: Point,
    ours: Vec<f64>,
    theirs: Vec<f64>,
    failures: Vec<String>,
}

impl Row {
    pub(super) fn new(point: Point) -> Self {
        Self { point, ours: Vec::new(), theirs: Vec::new(), failures: Vec::new() }
    }

    /// The test and the program, for a message.
    pub(super) fn label(&self, is_ours: bool) -> String {
        let Point { service, size_bytes, .. } = self.point;
        let test = self.test();
        format!(
            "{test} {service} {size_bytes} B by {}:",
            if is_ours { "rdmascope" } else { "the other tool" }
        )
    }

    /// The other tool's name of the test.
    fn test(&self) -> String {
        format!("{}{}", self.point.test, if self.point.has_events { " -e" } else { "" })
    }

    /// Adds the result of a run.
    pub(super) fn add(&mut self, is_ours: bool, value: Result<f64>) {
        match value {
            Ok(value) if is_ours => self.ours.push(value),
            Ok(value) => self.theirs.push(value),
            Err(error) => self.failures.push(format!("{} {error:#}", self.label(is_ours))),
        }
    }

    /// Whether one of the programs has no number.
    pub(super) fn is_empty(&self) -> bool {
        self.ours.is_empty() || self.theirs.is_empty()
    }

    /// Whether the best runs of each program agree, so that more runs would change little.
    pub(super) fn is_steady(&self) -> bool {
        let is_rate = self.is_rate();
        [&self.ours, &self.theirs]
            .iter()
            .all(|runs| Summary::of(runs, is_rate).is_some_and(|of| of.is_steady()))
    }

    fn is_rate(&self) -> bool {
        self.point.quantity == Quantity::Rate
    }

    /// Compares both programs: their summaries, the ratio of their best runs, and the verdict.
    /// `None` if one of them has no runs.
    fn compared(&self) -> Option<Compared> {
        let is_rate = self.is_rate();
        let theirs = Summary::of(&self.theirs, is_rate)?;
        let ours = Summary::of(&self.ours, is_rate)?;
        if self.point.part == Part::Mpi {
            return Some(self.of_medians(theirs, ours));
        }
        let ratio = ours.best / theirs.best;
        let holds = match (self.point.part.is_of_device(), is_rate) {
            (true, true) => ratio >= RATE_MIN,
            (true, false) => (ratio - 1.0).abs() <= AGREES,
            // On softdev and over sockets, rdmascope must not be slower than the other tool.
            (false, true) => ratio >= 1.0,
            (false, false) => ratio <= 1.0,
        };
        let verdict = match (theirs.is_steady() && ours.is_steady(), holds) {
            _ if theirs.spread.and(ours.spread).is_none() => Verdict::TooFew,
            (false, _) => Verdict::Unsteady,
            (true, true) => Verdict::Agrees,
            (true, false) => Verdict::Differs,
        };
        Some(Compared { theirs, ours, ratio, verdict })
    }
}

impl Row {
    /// Compares the medians of MPI programs, with an allowance for rounding. The runs are steady if
    /// the middle half of each program's runs agrees: then a hypervisor has not moved the CPUs.
    fn of_medians(&self, theirs: Summary, ours: Summary) -> Compared {
        let ratio = ours.best / theirs.best;
        let rounds = !self.is_rate() && self.point.tool != Tool::Linked;
        let rounded = if rounds { ROUNDED_NS } else { 0.0 };
        let holds = (ours.median - theirs.median).abs() <= AGREES * theirs.median + rounded;
        let verdict = match (theirs.middle.max(ours.middle) <= AGREES, holds) {
            _ if theirs.spread.and(ours.spread).is_none() => Verdict::TooFew,
            (false, _) => Verdict::Unsteady,
            (true, true) => Verdict::Agrees,
            (true, false) => Verdict::Differs,
        };
        Compared { theirs, ours, ratio, verdict }
    }
}

/// A summary of a program's runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    runs: usize,
    median: f64,
    /// The second best run.
    best: f64,
    /// The range of the best three runs, as a share of their median. `None` for fewer runs.
    spread: Option<f64>,
    /// The range between the quartiles, as a share of the median.
    middle: f64,
}

impl Summary {
    /// `None` if there are no runs.
    fn of(runs: &[f64], is_rate: bool) -> Option<Self> {
        let mut sorted = runs.to_vec();
        let median = median(&mut sorted)?;
        let quarter = sorted.len() / 4;
        let middle = (sorted[sorted.len() - 1 - quarter] - sorted[quarter]) / median;
        if is_rate {
            sorted.reverse();
        }
        let of_best = &sorted[..sorted.len().min(BEST)];
        let best = of_best[of_best.len() / 2];
        let spread = (of_best.len() == BEST).then(|| (of_best[0] - of_best[BEST - 1]).abs() / best);
        Some(Self { runs: runs.len(), median, best, spread, middle })
    }

    fn is_steady(&self) -> bool {
        self.spread.is_some_and(|spread| spread <= AGREES)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Agrees,
    Differs,
    Unsteady,
    TooFew,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "DIFFERS",
            Self::Unsteady => "unsteady",
            Self::TooFew => "too few runs",
        }
    }
}

struct Compared {
    theirs: Summary,
    ours: Summary,
    ratio: f64,
    verdict: Verdict,
}

/// Formats the table and a summary.
pub(super) fn print(rows: &[Row]) -> String {
    let mut out = String::from(
        "# best: the second best of a program's runs; spread: the range of its best three runs\n\
         # latency in us (compared with perftest and sockperf: medians; with other tools: means), rate in 1000 \
         messages/s, CPU time of both ranks in us for 2^20 bytes\n\
         #                                         -------- other tool --------  -------- rdmascope ---------  --- ratio ---\n",
    );
    let head = ["median", "best", "spread"];
    let _ = writeln!(
        out,
        "{:<22} {:<2} {:>5} {:>4}  {:>10} {:>10} {:>7} {:>10} {:>10} {:>7} {:>7} {:>6}  verdict",
        "test", "", "bytes", "runs", head[0], head[1], head[2], head[0], head[1], head[2], head[0], head[1]
    );
    for row in rows {
        let Point { service, size_bytes, .. } = row.point;
        let _ = write!(out, "{:<22} {service:<2} {size_bytes:>5} ", row.test());
        let Some(Compared { theirs, ours, ratio, verdict }) = row.compared() else {
            let _ = writeln!(out, "FAILED");
            continue;
        };
        let cells = |Summary { median, best, spread, .. }: Summary| {
            let spread = spread.map_or("-".to_owned(), |spread| format!("{:.1} %", spread * 100.0));
            format!("{:>10.3} {:>10.3} {spread:>7}", median / 1e3, best / 1e3)
        };
        let _ = writeln!(
            out,
            "{:>4}  {} {} {:>7.3} {ratio:>6.3}  {}",
            theirs.runs.min(ours.runs),
            cells(theirs),
            cells(ours),
            ours.median / theirs.median,
            verdict.text()
        );
    }
    for failure in rows.iter().flat_map(|row| &row.failures) {
        let _ = writeln!(out, "# {failure}");
    }
    let verdicts: Vec<Option<Verdict>> =
        rows.iter().map(|row| row.compared().map(|compared| compared.verdict)).collect();
    let count = |verdict: Option<Verdict>| verdicts.iter().filter(|other| **other == verdict).count();
    let _ = write!(
        out,
        "# {} points: {} agree (latency within 3 %, rate at least 0.98; native, sockets: latency at most 1, rate at least 1; \
         mpi: medians within 3 % plus the rounding of the other tool), {} differ, {} unsteady (the best runs of a \
         program, in mpi the middle half of its runs, differ by more than 3 %), {} with too few runs, {} failed",
        rows.len(),
        count(Some(Verdict::Agrees)),
        count(Some(Verdict::Differs)),
        count(Some(Verdict::Unsteady)),
        count(Some(Verdict::TooFew)),
        count(None)
    );
    out
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Amount, Part, points};
    use super::*;

    fn row(quantity: Quantity, ours: &[f64], theirs: &[f64]) -> Row {
        let point = Point { quantity, ..points(Part::Counted, Amount::Quick, "")[0] };
        Row { ours: ours.to_vec(), theirs: theirs.to_vec(), ..Row::new(point) }
    }

    fn native(quantity: Quantity, ours: &[f64], theirs: &[f64]) -> Row {
        let mut row = row(quantity, ours, theirs);
        row.point.part = Part::Native;
        row
    }

    #[test]
    fn verdicts_follow_the_rule() {
        use Quantity::{Latency, Rate};
        let steady = [100.0, 101.0, 99.5, 300.0, 200.0];
        let unsteady = [100.0, 120.0, 80.0];
        let times = |factor: f64| steady.map(|value| value * factor);
        for (row, verdict) in [
            (row(Latency, &times(1.02), &steady), Some(Verdict::Agrees)),
            (row(Latency, &times(1.04), &steady), Some(Verdict::Differs)),
            (row(Latency, &times(0.96), &steady), Some(Verdict::Differs)),
            (row(Latency, &steady, &unsteady), Some(Verdict::Unsteady)),
            (row(Latency, &[100.0], &steady), Some(Verdict::TooFew)),
            (row(Rate, &steady[..3], &[99.0, 98.0, 99.0]), Some(Verdict::Agrees)),
            (row(Rate, &[97.0, 97.0, 97.0], &steady[..3]), Some(Verdict::Differs)),
            (row(Rate, &[], &steady), None),
            (native(Latency, &times(0.7), &steady), Some(Verdict::Agrees)),
            (native(Latency, &times(1.01), &steady), Some(Verdict::Differs)),
            (native(Rate, &times(1.3)[..3], &steady[..3]), Some(Verdict::Agrees)),
            (native(Rate, &times(0.99)[..3], &steady[..3]), Some(Verdict::Differs)),
        ] {
            assert_eq!(row.compared().map(|compared| compared.verdict), verdict, "{row:?}");
        }
    }

    #[test]
    fn of_mpi_the_medians_count() {
        let row = |tool, ours: &[f64]| {
            let mut row = row(Quantity::MeanLatency, ours, &[110.0, 110.0, 110.0]);
            (row.point.part, row.point.tool) = (Part::Mpi, tool);
            row.compared().map(|compared| compared.verdict)
        };
        let steady = |median| [60.0, median, median, median, 170.0];
        assert_eq!(row(Tool::Linked, &steady(113.0)), Some(Verdict::Agrees));
        assert_eq!(row(Tool::Linked, &steady(114.0)), Some(Verdict::Differs));
        assert_eq!(row(Tool::Osu, &steady(118.0)), Some(Verdict::Agrees), "OSU rounds its numbers");
        assert_eq!(row(Tool::Osu, &steady(119.0)), Some(Verdict::Differs));
        assert_eq!(row(Tool::Linked, &[60.0, 110.0, 150.0, 160.0]), Some(Verdict::Unsteady));
    }

    #[test]
    fn the_best_are_the_fastest() {
        let runs = [300.0, 50.0, 100.0, 101.0, 400.0];
        let summary = |best, spread| Some((5, 101.0, best, Some(spread), 2.0));
        let of = |is_rate| {
            let Summary { runs, median, best, spread, middle } = Summary::of(&runs, is_rate)?;
            Some((runs, median, best, spread, (middle * 101.0 / 100.0).round()))
        };
        assert_eq!(of(false), summary(100.0, 0.51));
        assert_eq!(of(true), summary(300.0, 299.0 / 300.0));
        assert_eq!(Summary::of(&runs[..2], false).map(|of| (of.median, of.spread)), Some((175.0, None)));
        assert_eq!(Summary::of(&[], true), None);
    }

    #[test]
    fn a_failure_is_told() {
        let mut row = row(Quantity::Rate, &[1.0], &[]);
        row.add(false, Err(anyhow::anyhow!("no route")));
        let text = print(&[row]);
        assert!(
            text.contains("FAILED")
                && text.contains("the other tool: no route")
                && text.ends_with(" 1 failed"),
            "{text}"
        );
    }
}
