//! The comparison: a row for each point.

use std::fmt::Write;

/// What is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quantity {
    /// Median latency in ns.
    Latency,
    /// Mean latency in ns, of a tool that knows no other.
    MeanLatency,
    /// Messages per second.
    Rate,
}

/// A point: what both said of it, round by round.
#[derive(Clone, Debug)]
pub(super) struct Row {
    test: &'static str,
    service: &'static str,
    size: u64,
    quantity: Quantity,
    pub(super) ours: Vec<f64>,
    pub(super) theirs: Vec<f64>,
    pub(super) failures: Vec<String>,
}

/// Repeated runs within this agree, and so do two programs.
const AGREES: f64 = 0.03;
/// The least bandwidth, as a share of theirs.
const RATE_MIN: f64 = 0.98;

impl Row {
    pub(super) fn new(test: &'static str, service: &'static str, size: u64, quantity: Quantity) -> Self {
        Self { test, service, size, quantity, ours: Vec::new(), theirs: Vec::new(), failures: Vec::new() }
    }

    pub(super) fn is(&self, test: &str, service: &str, size: u64) -> bool {
        self.test == test && self.service == service && self.size == size
    }

    /// Whether one of the two never gave a number.
    pub(super) fn is_empty(&self) -> bool {
        self.ours.is_empty() || self.theirs.is_empty()
    }

    /// Ours to theirs, by the medians of the rounds.
    fn ratio(&self) -> Option<f64> {
        Some(median(&self.ours)? / median(&self.theirs)?)
    }

    fn verdict(&self) -> &'static str {
        let Some(ratio) = self.ratio() else { return "FAILED" };
        let is_rate = self.quantity == Quantity::Rate;
        let holds = if is_rate { ratio >= RATE_MIN } else { (ratio - 1.0).abs() <= AGREES };
        let steady = spread(&self.theirs).is_some_and(|spread| spread <= AGREES);
        match (holds, steady) {
            (true, _) => "agrees",
            (false, true) => "DIFFERS",
            (false, false) => "differs; theirs is unsteady",
        }
    }
}

/// The table and a summary.
pub(super) fn print(rows: &[Row], rounds: usize) -> String {
    let mut out = format!(
        "# medians of {rounds} rounds, interleaved; spread is (max - min) / median of a program's own rounds\n\
         # latency in us (perftest and ours: median; qperf and ours beside it: mean), rate in 1000 messages/s\n\
         {:<24} {:<3} {:>7} {:>12} {:>8} {:>12} {:>8} {:>7}  verdict\n",
        "test", "", "bytes", "theirs", "spread", "ours", "spread", "ratio"
    );
    for row in rows {
        let scale = 1e3;
        let cell = |values: &[f64]| median(values).map_or("-".to_owned(), |m| format!("{:.3}", m / scale));
        let spread = |values| spread(values).map_or("-".to_owned(), |s| format!("{:.1} %", s * 100.0));
        let ratio = row.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        let _ = writeln!(
            out,
            "{:<24} {:<3} {:>7} {:>12} {:>8} {:>12} {:>8} {:>7}  {}",
            row.test,
            row.service,
            row.size,
            cell(&row.theirs),
            spread(&row.theirs),
            cell(&row.ours),
            spread(&row.ours),
            ratio,
            row.verdict()
        );
    }
    for row in rows {
        for failure in &row.failures {
            let _ = writeln!(out, "# {} {} {} B: {failure}", row.test, row.service, row.size);
        }
    }
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict().starts_with(verdict)).count();
    let _ = write!(
        out,
        "# {} points: {} agree (latency within 3 %, rate at least 0.98), {} differ where theirs is steady, {} differ where \
         theirs is not, {} failed",
        rows.len(),
        count("agrees"),
        count("DIFFERS"),
        count("differs"),
        count("FAILED")
    );
    out
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*lower, *upper))
}

/// (max - min) / median.
fn spread(values: &[f64]) -> Option<f64> {
    let max = values.iter().copied().reduce(f64::max)?;
    let min = values.iter().copied().reduce(f64::min)?;
    Some((max - min) / median(values)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(quantity: Quantity, ours: &[f64], theirs: &[f64]) -> Row {
        Row { ours: ours.to_vec(), theirs: theirs.to_vec(), ..Row::new("t", "RC", 2, quantity) }
    }

    #[test]
    fn verdicts_follow_the_rule() {
        use Quantity::{Latency, Rate};
        let steady = [100.0, 101.0, 99.5];
        let unsteady = [100.0, 120.0, 80.0];
        for (row, verdict) in [
            (row(Latency, &[102.0], &steady), "agrees"),
            (row(Latency, &[96.0], &steady), "DIFFERS"),
            (row(Latency, &[90.0], &unsteady), "differs; theirs is unsteady"),
            (row(Rate, &[150.0], &steady), "agrees"),
            (row(Rate, &[97.0], &steady), "DIFFERS"),
            (row(Rate, &[], &steady), "FAILED"),
        ] {
            assert_eq!(row.verdict(), verdict, "{row:?}");
        }
    }

    #[test]
    fn a_median_of_an_even_number_is_between() {
        assert_eq!(
            (median(&[1.0, 4.0, 2.0, 3.0]), median(&[]), median(&[5.0])),
            (Some(2.5), None, Some(5.0))
        );
        assert_eq!(spread(&[90.0, 100.0, 110.0]), Some(0.2));
    }
}
