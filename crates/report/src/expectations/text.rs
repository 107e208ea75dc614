//! The judgement of expectations on a terminal, printed after the last point.

use measure::text::plain;

use super::judged::{Case, Judged, Judgement, score};
use crate::terminal::{indented, rule};

/// The judgements with the cases of each, or only with those that are not met or not decided; empty
/// without expectations.
pub fn text(judged: &[Judged<'_>], with_cases: bool) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let rule = rule();
    let mut out = format!("\n{rule}\n{}{rule}\n", indented(&format!("expectations: {}", counts(judged)), 1));
    for (index, one) in judged.iter().enumerate() {
        let reason = one.expectation.reason.as_deref().map(|reason| format!(" ({})", plain(reason)));
        let expectation = plain(&one.expectation.to_string());
        let counts =
            if with_cases { String::new() } else { format!(": {}", counts(std::slice::from_ref(one))) };
        out += &indented(&format!("{}. {expectation}{}{counts}", index + 1, reason.unwrap_or_default()), 1);
        let shown: Vec<&Case> =
            one.cases.iter().filter(|case| with_cases || case.judgement != Judgement::Met).collect();
        let width = shown.iter().map(|case| case.label.chars().count()).max().unwrap_or_default();
        for case in shown {
            let label = plain(&case.label);
            let label = if width == 0 { String::new() } else { format!("{label:width$}  ") };
            out += &indented(&(label + &plain(&line(case))), 4);
        }
    }
    out
}

/// How many cases have each judgement, in words.
fn counts(judged: &[Judged<'_>]) -> String {
    let score = score(judged).into_iter().filter(|(_, count)| *count > 0);
    score.map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// A case in words: its judgement, its number and the limit.
pub(crate) fn line(case: &Case) -> String {
    let why =
        if case.judgement.why().is_empty() { String::new() } else { format!(": {}", case.judgement.why()) };
    let figure = if case.figure.is_empty() { String::new() } else { format!("; {}", case.figure) };
    let limit = case.limit.as_ref().map(|limit| format!(", limit {limit}"));
    format!("{}{why}{figure}{}", case.judgement.word(), limit.unwrap_or_default())
}
