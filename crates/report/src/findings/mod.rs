//! Whether a run shows what a paper found: the findings of its plan, answered from its points
//! alone.
//!
//! A finding is asked for each value of its axes `each`: those are its cases. A case makes one
//! figure with a 95 % interval and is *shown* if all of that lies in the range that the finding
//! states, *not shown* if not (and then within its error, if only the figure itself does), *not
//! decided* where a number has no interval, as an extreme of one run, and *not measured* where the
//! points are missing: no other points take their place.
//!
//! # Invariants
//!
//! * A finding is a claim with a range; it is shown only where the whole confidence interval of the
//!   measured figure lies in it. A number without an interval decides nothing, and environments are
//!   compared only where what was applied sets them apart.

mod cell;
mod kinds;
#[cfg(test)]
mod tests;
mod verdict;

use measure::finding::Finding;
use measure::record::Point;
use measure::selection::Selection;
use measure::stats::shape::Estimate;
use serde_json::Value;

use crate::folded::{Doubts, NO_POINT};
use crate::list::grouped;
use crate::{Points, value};
use cell::Asked;
pub(crate) use verdict::Verdict;

/// A finding with what the run has to say to it.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) finding: &'a Finding,
    /// One for each value of the axes that it is asked for.
    pub(crate) cases: Vec<Case>,
}

/// The answer for one value of the axes.
#[derive(Debug, PartialEq)]
pub(crate) struct Case {
    /// The values of the axes, e.g. `UD`; empty where it is asked once.
    pub(crate) label: String,
    /// The measured figures, each with its count; empty where there are none.
    pub(crate) figures: String,
    pub(crate) verdict: Verdict,
    /// Why not to trust them.
    pub(crate) doubts: Doubts,
    /// A point of the figure.
    pub(crate) id: Option<u64>,
}

impl Case {
    fn without_figure(label: String, reason: String) -> Self {
        let verdict = Verdict::NotMeasured(reason);
        Self { label, figures: String::new(), verdict, doubts: Doubts::default(), id: None }
    }
}

/// Answers all findings of a run.
pub(crate) fn answer<'a>(findings: &'a [Finding], run: Points<'_>) -> Vec<Answer<'a>> {
    findings.iter().map(|finding| Answer { finding, cases: cases(finding, run) }).collect()
}

/// Why a finding is not shown whose figure alone would show it.
const WITHIN_ERROR: &str = "within its error";

/// How many cases had which verdict, in a sentence without an end.
pub(crate) fn summary(answers: &[Answer<'_>]) -> String {
    let cases: Vec<&Case> = answers.iter().flat_map(|answer| &answer.cases).collect();
    let verdicts: Vec<&Verdict> = cases.iter().map(|case| &case.verdict).collect();
    let count = |of: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| of(verdict)).count();
    let undecided = match count(|verdict| matches!(verdict, Verdict::NotDecided(_))) {
        0 => String::new(),
        count => format!("{count} not decided, "),
    };
    let is_answered = |case: &&&Case| matches!(case.verdict, Verdict::Shown | Verdict::NotShown(_));
    let doubtful = match cases.iter().filter(is_answered).filter(|case| case.doubts.are_all()).count() {
        0 => String::new(),
        count => format!("; {count} answered by unstable runs alone"),
    };
    let within = match count(|verdict| *verdict == Verdict::NotShown(WITHIN_ERROR)) {
        0 => String::new(),
        count => format!(" ({count} within their error)"),
    };
    format!(
        "{} shown, {} not shown{within}, {undecided}{} not measured, of {} cases{doubtful}",
        count(|verdict| *verdict == Verdict::Shown),
        count(|verdict| matches!(verdict, Verdict::NotShown(_))),
        count(|verdict| matches!(verdict, Verdict::NotMeasured(_))),
        verdicts.len()
    )
}

fn cases(finding: &Finding, run: Points<'_>) -> Vec<Case> {
    let selections = finding.selections();
    let is_picked =
        |selection: &Selection, point: &Point| finding.picks(selection, &point.experiment, &point.axes);
    let picked = run.points.iter().filter(|point| selections.iter().any(|one| is_picked(one, point)));
    let groups = grouped(picked.map(|point| (finding.case(&point.experiment, &point.axes), point)));
    if groups.is_empty() {
        return vec![Case::without_figure(String::new(), NO_POINT.to_owned())];
    }
    let patterns = run.patterns;
    groups.iter().map(|(key, points)| case(finding, key, Asked { points, patterns })).collect()
}

fn case(finding: &Finding, key: &[Value], points: Asked<'_>) -> Case {
    let label = value::labels(finding.each.iter().zip(key));
    match kinds::make(finding, points) {
        Err(reason) => Case::without_figure(label, reason),
        Ok(made) => {
            let verdict = match made.outright {
                _ if made.lacks_interval => Verdict::NotDecided(ONE_RUN),
                Some(outright) => outright,
                None => verdict(finding, made.figure),
            };
            Case { label, figures: made.text, verdict, doubts: made.doubts, id: made.id }
        }
    }
}

/// The whole interval has to lie in the range.
fn verdict(finding: &Finding, figure: Estimate) -> Verdict {
    let holds = |number: f64| finding.holds.contains(number);
    match (holds(figure.value), holds(figure.low) && holds(figure.high)) {
        (true, true) => Verdict::Shown,
        (true, false) => Verdict::NotShown(WITHIN_ERROR),
        (false, _) => Verdict::NotShown(""),
    }
}

/// Why a number of one run decides nothing that is neither a median nor a share.
const ONE_RUN: &str = "one run has no interval";
