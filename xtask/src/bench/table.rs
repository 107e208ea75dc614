//! The comparison: a table for each row, and its goals with whether they are met.

use std::fmt::Write;

use super::plan::{Against, Bound, Goal, Row};
use super::rounds::{Measured, Outcome, Sample};
use super::value::Unit;
use super::{place, process};
use crate::stats::median;

const HEAD: &str = "\
# runs: how many count, of all. The others were unstable: the core-to-core latency changed by more than 20 % around them, or
# rdmascope marked its point as unstable
# m: the tool prints only a mean, which is compared with the mean of the first line; all other numbers are medians
# in lines: the latency divided by the core-to-core latency around it
# ratio: the first line's number divided by this line's, in rounds in which the core-to-core latency is the same within 20 %
";
const FIRST: &str = "# all programs have real-time priority: other processes did not preempt them\n";
const NOT_FIRST: &str = "\
# no real-time priority, which is not allowed here: all means and rates include preemption by other processes
";

/// Formats all tables. Missed goals, and rows whose first item was not measured, go to `broken`.
pub(super) fn print(rows: &[Measured], broken: &mut Vec<String>) -> String {
    let mut out = format!("{HEAD}{}", if process::is_first() { FIRST } else { NOT_FIRST });
    for (row, outcomes) in rows {
        table(&mut out, row, outcomes);
        for goal in &row.goals {
            let (text, is_missed) = verdict(row, goal, outcomes);
            let _ = writeln!(out, "  goal: {text}");
            if is_missed {
                broken.push(format!("{}: {text}", row.name));
            }
        }
        if outcomes[0].samples.is_empty() {
            broken.push(format!("{}: {} was not measured", row.name, outcomes[0].item.name));
        }
    }
    out
}

fn table(out: &mut String, row: &Row, outcomes: &[Outcome]) {
    let mut lines: Vec<f64> = samples(outcomes).map(|sample| sample.line_ns).collect();
    let _ = write!(out, "\n{}: {}", row.name, row.title);
    if let Some(middle) = median(&mut lines) {
        let low = lines[0];
        let high = lines[lines.len() - 1];
        let _ = write!(out, "; core-to-core latency {low:.0} to {high:.0} ns, median {middle:.0}");
    }
    let is_latency = row.unit == Unit::Latency;
    let in_lines = if is_latency { format!("{:>8} {:>6}", "in lines", "best") } else { String::new() };
    let _ = writeln!(
        out,
        "\n  {:<30} {:>6} {:>8} {:>8}    {:<9} {in_lines:>15}  {:>8} {:>6} {:>6}",
        "", "runs", "median", "best", "", "ratio", "best", "pairs"
    );
    for outcome in outcomes {
        let _ = writeln!(out, "  {}", line(row, outcome, &outcomes[0]).trim_end());
    }
    for outcome in outcomes.iter().filter(|outcome| !outcome.samples.is_empty()) {
        if let Some(failure) = outcome.failures.first() {
            let _ = writeln!(
                out,
                "  # {} failed in {} rounds: {failure}",
                outcome.item.name,
                outcome.failures.len()
            );
        }
    }
}

fn line(row: &Row, outcome: &Outcome, ours: &Outcome) -> String {
    let name = outcome.item.name;
    let Some(shown) = shown(outcome, row.unit) else {
        let reason = match (outcome.failures.first(), outcome.unstable) {
            (Some(failure), _) => failure.clone(),
            (None, 0) => "it was not tried".to_owned(),
            (None, unstable) => format!("all {unstable} runs were unstable"),
        };
        return format!("{name:<30} not measured: {reason}");
    };
    let (scale, unit) = scale(row.unit);
    let is_mean = outcome.samples.iter().all(|sample| sample.value.median.is_none());
    let mut text = format!(
        "{name:<30} {:>6} {:>8.*} {:>8.*} {} {unit:<9}",
        format!("{}/{}", outcome.samples.len(), outcome.samples.len() + outcome.unstable),
        digits(row.unit),
        shown.median / scale,
        digits(row.unit),
        shown.best / scale,
        if is_mean { 'm' } else { ' ' },
    );
    let _ = match in_lines(outcome) {
        Some(Summary { median, best, .. }) if row.unit == Unit::Latency => {
            write!(text, " {median:>8.2} {best:>6.2}")
        }
        _ => write!(text, " {:>15}", ""),
    };
    let ratios = ratios(ours, outcome, row.unit);
    if let Some(Summary { median, best, count }) = ratios.filter(|_| ours.item.name != name) {
        let _ = write!(text, "  {median:>8.2} {best:>6.2} {count:>6}");
    }
    text
}

/// A summary of runs, or of the ratios of two items' runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    median: f64,
    /// The fastest run.
    best: f64,
    count: usize,
}

impl Summary {
    /// `None` if there are no values.
    fn of(values: impl Iterator<Item = f64>, unit: Unit) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        let median = median(&mut values)?;
        let best = if unit == Unit::Latency { values.first()? } else { values.last()? };
        Some(Self { median, best: *best, count: values.len() })
    }
}

/// The ratios of the first item's runs to another item's runs in the same rounds.
fn ratios(ours: &Outcome, other: &Outcome, unit: Unit) -> Option<Summary> {
    let in_a_round = |own: &Sample| {
        let is_near = |it: &&Sample| it.round == own.round && place::is_same(it.line_ns, own.line_ns);
        own.value.over(&other.samples.iter().find(is_near)?.value)
    };
    Summary::of(ours.samples.iter().filter_map(in_a_round), unit)
}

/// A goal with its result, and whether it is missed.
fn verdict(row: &Row, goal: &Goal, outcomes: &[Outcome]) -> (String, bool) {
    let ours = &outcomes[0];
    let (wanted, limit) = match goal.bound {
        Bound::AtMost(limit) => ("at most", limit),
        Bound::AtLeast(limit) => ("at least", limit),
        Bound::Below(limit) => ("below", limit),
        Bound::Above(limit) => ("above", limit),
    };
    let (scale, unit) = scale(row.unit);
    let (of, found) = match goal.against {
        Against::Line => (format!("{limit} core-to-core latencies"), in_lines(ours)),
        Against::Item(name) => {
            let other = outcomes.iter().find(|outcome| outcome.item.name == name);
            let found = other.and_then(|other| ratios(ours, other, row.unit));
            (if limit == 1.0 { name.to_owned() } else { format!("{limit} of {name}") }, found)
        }
        Against::Nothing => (format!("{} {unit}", limit / scale), shown(ours, row.unit)),
    };
    let Some(Summary { median, best, .. }) = found else {
        return (format!("{wanted} {of}: not measured: no round has stable runs of both"), false);
    };
    let shown = if goal.against == Against::Nothing { scale } else { 1.0 };
    let numbers = format!("{:.2}, best {:.2}", median / shown, best / shown);
    let is_met = is_within(goal.bound, median);
    let by = (median / limit - 1.0).abs() * 100.0;
    let said = if is_met { "met".to_owned() } else { format!("MISSED by {by:.0} %") };
    (format!("{wanted} {of}: {said} ({numbers})"), !is_met)
}

fn is_within(bound: Bound, ratio: f64) -> bool {
    match bound {
        Bound::AtMost(limit) => ratio <= limit,
        Bound::AtLeast(limit) => ratio >= limit,
        Bound::Below(limit) => ratio < limit,
        Bound::Above(limit) => ratio > limit,
    }
}

fn samples(outcomes: &[Outcome]) -> impl Iterator<Item = &Sample> {
    outcomes.iter().flat_map(|outcome| &outcome.samples)
}

/// The runs' latencies, each divided by the core-to-core latency around it.
fn in_lines(outcome: &Outcome) -> Option<Summary> {
    let in_lines = |sample: &Sample| Some(sample.value.shown()? / sample.line_ns);
    Summary::of(outcome.samples.iter().filter_map(in_lines), Unit::Latency)
}

/// The summary of an item's runs.
fn shown(outcome: &Outcome, unit: Unit) -> Option<Summary> {
    Summary::of(outcome.samples.iter().filter_map(|sample| sample.value.shown()), unit)
}

fn scale(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Latency => (1.0, "ns"),
        Unit::Bandwidth => (1e9, "GB/s"),
        Unit::Rate => (1e6, "million/s"),
    }
}

fn digits(unit: Unit) -> usize {
    if unit == Unit::Latency { 0 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Item, rows};
    use super::super::value::Value;
    use super::*;

    fn outcome(item: Item, runs: &[(usize, f64, f64)]) -> Outcome {
        let sample = |&(round, line_ns, median): &(usize, f64, f64)| {
            let value = Value { median: Some(median), mean: Some(median * 2.0) };
            Sample { round, line_ns, value }
        };
        let samples = runs.iter().map(sample).collect();
        Outcome { item, samples, unstable: 0, failures: Vec::new(), is_missing: false }
    }

    /// The row of Send with the results of its items, in their order.
    fn measured(runs: &[&[(usize, f64, f64)]]) -> Measured {
        let row = rows().remove(0);
        let none: &[(usize, f64, f64)] = &[];
        let of = |(i, item): (usize, &Item)| outcome(*item, runs.get(i).copied().unwrap_or(none));
        let outcomes = row.items.iter().enumerate().map(of).collect();
        (row, outcomes)
    }

    #[test]
    fn only_one_placement_is_compared() {
        let ours: &[_] = &[(0, 50.0, 100.0), (1, 50.0, 120.0), (2, 250.0, 600.0)];
        let theirs: &[_] = &[(0, 55.0, 200.0), (1, 250.0, 900.0), (2, 250.0, 800.0)];
        let (_, outcomes) = measured(&[ours, theirs]);
        let found = ratios(&outcomes[0], &outcomes[1], Unit::Latency).unwrap();
        assert_eq!(found, Summary { median: 0.625, best: 0.5, count: 2 });
        assert_eq!(ratios(&outcomes[0], &outcomes[2], Unit::Latency), None);
    }

    #[test]
    fn goals_are_judged_by_the_median() {
        let (row, mut outcomes) = measured(&[
            &[(0, 50.0, 70.0), (1, 50.0, 80.0), (2, 50.0, 90.0)],
            &[(0, 50.0, 80.0), (1, 50.0, 80.0), (2, 50.0, 80.0)],
        ]);
        let said = |goal: usize, outcomes: &[Outcome]| verdict(&row, &row.goals[goal], outcomes);
        let missed = |text: &str, is_missed| (text.to_owned(), is_missed);
        assert_eq!(
            said(0, &outcomes),
            missed("at most 1.5 core-to-core latencies: MISSED by 7 % (1.60, best 1.40)", true)
        );
        assert_eq!(
            said(1, &outcomes),
            missed("below UCX am_lat (UCT posix): MISSED by 0 % (1.00, best 0.88)", true)
        );
        outcomes[0].samples.remove(2);
        assert_eq!(
            said(0, &outcomes),
            missed("at most 1.5 core-to-core latencies: met (1.50, best 1.40)", false)
        );
        let (text, is_missed) = said(2, &outcomes);
        assert!(text.contains("not measured") && !is_missed, "{text}");
    }

    #[test]
    fn more_is_better_of_a_rate() {
        let row = rows().into_iter().find(|row| row.name == "rate").unwrap();
        let outcomes = [outcome(row.items[0], &[(0, 50.0, 9e6), (1, 50.0, 11e6), (2, 50.0, 8e6)])];
        let (text, is_missed) = verdict(&row, &row.goals[0], &outcomes);
        assert_eq!(
            (text.as_str(), is_missed),
            ("above 10 million/s: MISSED by 10 % (9.00, best 11.00)", true)
        );
    }

    #[test]
    fn what_is_missing_is_told() {
        let (row, mut outcomes) = measured(&[&[], &[(0, 50.0, 80.0)]]);
        outcomes[0].unstable = 6;
        outcomes[3].failures.push("install libfabric-bin".to_owned());
        let mut broken = Vec::new();
        let text = print(&[(row, outcomes)], &mut broken);
        for told in [
            "not measured: all 6 runs were unstable",
            "not measured: install libfabric-bin",
            "not measured: it was not tried",
            "below UCX am_lat (UCT posix): not measured",
        ] {
            assert!(text.contains(told), "{told}: {text}");
        }
        assert_eq!(broken, ["send: rdmascope lat send was not measured"]);
    }
}
