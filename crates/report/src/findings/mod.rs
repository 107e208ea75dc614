//! Whether a run shows what a paper found: the findings of its plan, answered from its points
//! alone.
//!
//! A finding is answered for each value of its axes `each`: these are its cases. A case has one
//! number with a 95 % interval. It is *reproduced* if the whole interval lies in the range of the
//! claim and reaches the published size, where the paper gives one; else it has the *same direction
//! and another size*. It is *contradicted* if the whole interval lies outside the range, and
//! *inconclusive* if the interval crosses a bound of the range, or if the number has none, such as
//! an extreme of one run. It is *not measured* where the points are missing: no other points take
//! their place. A claim about networks is *not judged* by a run that had none.
//!
//! # Invariants
//!
//! * A finding is a claim with a range; it is reproduced or contradicted only where the whole
//!   confidence interval of the measured number lies on one side. A number without an interval
//!   decides nothing, and environments are compared only if they differ in techniques that were
//!   applied.

mod cell;
mod kinds;
#[cfg(test)]
mod tests;
mod verdict;

use measure::finding::{Finding, Scope};
use measure::record::{Point, Run};
use measure::selection::Selection;
use measure::stats::shape::Estimate;
use serde_json::Value;

use crate::folded::{Doubts, NO_POINT};
use crate::list::grouped;
use crate::{Points, value};
use cell::Asked;
pub(crate) use verdict::Verdict;

/// A finding with the run's answer.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) finding: &'a Finding,
    /// A case for each value of the axes that split the finding.
    pub(crate) cases: Vec<Case>,
    /// Why this run does not judge it, whatever its numbers are.
    pub(crate) unjudged: Option<&'static str>,
}

impl Answer<'_> {
    /// Whether the run judges a case. One that is not measured has nothing to judge.
    pub(crate) fn judges(&self, case: &Case) -> bool {
        self.unjudged.is_none() || !case.is_measured()
    }

    /// The verdict on a case in print, and its reason; empty where the number is the reason.
    pub(crate) fn verdict(&self, case: &Case, is_of_paper: bool) -> (&'static str, String) {
        if self.judges(case) {
            (case.verdict.word(is_of_paper), case.verdict.why().to_owned())
        } else {
            ("not judged", format!("would be {}", case.verdict.text(is_of_paper)))
        }
    }
}

/// The answer for one value of the axes.
#[derive(Debug, PartialEq)]
pub(crate) struct Case {
    /// The values of the axes, e.g. `UD`; empty without any.
    pub(crate) label: String,
    /// The measured numbers, each with its count; empty where there are none.
    pub(crate) figures: String,
    /// The number that is compared with the range, in its unit.
    pub(crate) figure: Option<Estimate>,
    pub(crate) verdict: Verdict,
    /// Why the numbers are unstable.
    pub(crate) doubts: Doubts,
    /// A point of the numbers.
    pub(crate) id: Option<u64>,
}

impl Case {
    /// Whether the run has the numbers that the claim is about.
    pub(crate) fn is_measured(&self) -> bool {
        !matches!(self.verdict, Verdict::NotMeasured(_))
    }

    fn without_figure(label: String, reason: String) -> Self {
        let verdict = Verdict::NotMeasured(reason);
        Self { label, figures: String::new(), figure: None, verdict, doubts: Doubts::default(), id: None }
    }
}

/// Whether the findings of a plan are those of a paper: a plan may make claims of its own.
pub(crate) fn is_of_paper(findings: &[Finding]) -> bool {
    findings.iter().any(Finding::is_of_paper)
}

/// Why a run has no network between its ranks, so that it cannot judge claims about one.
pub(crate) fn no_network(run: &Run) -> Option<&'static str> {
    if run.is_of_softdev() {
        return Some("the software device is no network");
    }
    // An adapter may loop packets back through its port; sockets and MPI of one host do not.
    let first = run.environments.first()?;
    let is_one = run.environments.iter().all(|environment| environment.hostname == first.hostname);
    (run.devices.is_empty() && is_one).then_some("all ranks ran on one host, without a network")
}

/// Answers all findings of a run.
pub(crate) fn answer<'a>(
    findings: &'a [Finding],
    points: Points<'_>,
    no_network: Option<&'static str>,
) -> Vec<Answer<'a>> {
    let one = |finding: &'a Finding| Answer {
        finding,
        cases: cases(finding, points),
        unjudged: no_network.filter(|_| finding.scope() == Scope::Network),
    };
    findings.iter().map(one).collect()
}

/// How many cases have each verdict, by the words of the verdict; those that are not judged are
/// counted apart.
pub(crate) fn score(answers: &[Answer<'_>], is_of_paper: bool) -> Vec<(&'static str, usize)> {
    let cases = || answers.iter().flat_map(|answer| answer.cases.iter().map(move |case| (answer, case)));
    let mut score: Vec<_> = Verdict::KINDS
        .iter()
        .map(|kind| {
            let judged =
                cases().filter(|(answer, case)| answer.unjudged.is_none() && case.verdict.is_like(kind));
            (kind.word(is_of_paper), judged.count())
        })
        .filter(|(word, count)| *count > 0 || *word != Verdict::OtherSize.word(is_of_paper))
        .collect();
    let unjudged = cases().filter(|(answer, case)| !answer.judges(case)).count();
    if unjudged > 0 {
        score.push(("not judged", unjudged));
    }
    score.push(("not measured", cases().filter(|(_, case)| !case.is_measured()).count()));
    score
}

/// Counts the verdicts of all cases, in a sentence without a full stop.
pub(crate) fn summary(answers: &[Answer<'_>], is_of_paper: bool) -> String {
    let counts = score(answers, is_of_paper).into_iter().map(|(word, count)| format!("{count} {word}"));
    let all: usize = answers.iter().map(|answer| answer.cases.len()).sum();
    let is_doubtful = |case: &&Case| case.figure.is_some() && case.doubts.are_all();
    let doubtful = match answers.iter().flat_map(|answer| &answer.cases).filter(is_doubtful).count() {
        0 => String::new(),
        count => format!("; {count} answered only by unstable runs"),
    };
    let unjudged = answers.iter().find_map(|answer| answer.unjudged);
    let unjudged =
        unjudged.map_or_else(String::new, |why| format!("; claims about networks are not judged: {why}"));
    let cases = if all == 1 { "case" } else { "cases" };
    format!("{}, of {all} {cases}{doubtful}{unjudged}", counts.collect::<Vec<_>>().join(", "))
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
                _ if made.lacks_interval => Verdict::Inconclusive(ONE_RUN),
                Some(outright) => outright,
                None => verdict(finding, made.figure),
            };
            let figure = Some(made.figure).filter(|figure| figure.value.is_finite());
            Case { label, figures: made.text, figure, verdict, doubts: made.doubts, id: made.id }
        }
    }
}

/// The verdict on a number: its whole interval has to lie on one side of each bound.
fn verdict(finding: &Finding, figure: Estimate) -> Verdict {
    let holds = |number: f64| finding.holds.contains(number);
    if holds(figure.value) && holds(figure.low) && holds(figure.high) {
        return match &finding.matches {
            Some(matches) if !matches.touches(figure.low, figure.high) => Verdict::OtherSize,
            _ => Verdict::Reproduced,
        };
    }
    if finding.holds.touches(figure.low, figure.high) {
        return Verdict::Inconclusive(CROSSES);
    }
    Verdict::Contradicted("")
}

/// Why an interval with a bound of the range in it decides nothing.
const CROSSES: &str = "within its error";
/// Why a number of one run that is neither a median nor a share decides nothing.
const ONE_RUN: &str = "one run has no interval";
