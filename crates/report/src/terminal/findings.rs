//! The findings of a paper on a terminal, printed after the last point.

use measure::record::Run;
use measure::text::plain;

use crate::Points;
use crate::findings::{Answer, Case, Verdict, answer, is_of_paper, no_network, score, summary};

/// The answers to the findings of a plan, with all their cases or with the number of cases of each
/// verdict; empty where it has none.
pub fn findings(run: &Run, points: Points<'_>, with_cases: bool) -> String {
    if run.findings.is_empty() {
        return String::new();
    }
    let answers = answer(&run.findings, points, no_network(run));
    let is_of_paper = is_of_paper(&run.findings);
    let rule = rule();
    let summary = indented(&format!("findings: {}", summary(&answers, is_of_paper)), 1);
    let mut out = format!("\n{rule}\n{summary}{rule}\n");
    for (index, answer) in answers.iter().enumerate() {
        let finding = answer.finding;
        let claim = format!("{}. {}", index + 1, plain(&finding.claim));
        if !with_cases {
            let score = score(std::slice::from_ref(answer), is_of_paper);
            let score = score.into_iter().filter(|(_, count)| *count > 0);
            let score: Vec<String> = score.map(|(word, count)| format!("{count} {word}")).collect();
            out += &indented(&format!("{claim}: {}", score.join(", ")), 1);
            let exceptions = exceptions(answer);
            let width = width(exceptions.iter().copied());
            exceptions.iter().for_each(|case| out += &line(answer, case, width, is_of_paper));
            continue;
        }
        out += &indented(&claim, 1);
        let published = [&finding.published, &finding.source].map(|text| text.as_deref().map(plain));
        let published = match published {
            [Some(numbers), Some(source)] => format!("published: {numbers} ({source}); "),
            [Some(text), None] | [None, Some(text)] => format!("published: {text}; "),
            [None, None] => String::new(),
        };
        let size = finding.matches.as_ref().map(|matches| format!(", of the published size if {matches}"));
        out += &indented(&format!("{published}holds if {}{}", finding.holds, size.unwrap_or_default()), 4);
        let width = width(answer.cases.iter());
        answer.cases.iter().for_each(|case| out += &line(answer, case, width, is_of_paper));
    }
    out
}

/// The cases in which a claim was not reproduced, where it was in others; none where these are
/// many.
fn exceptions<'a>(answer: &'a Answer<'_>) -> Vec<&'a Case> {
    let is_exception = |case: &&Case| !case.verdict.is_like(&Verdict::Reproduced);
    let exceptions: Vec<&Case> = answer.cases.iter().filter(is_exception).collect();
    let are_told = exceptions.len() < answer.cases.len() && exceptions.len() <= EXCEPTIONS_MAX;
    if are_told { exceptions } else { Vec::new() }
}

/// Of more cases, `--verbose` shows each.
const EXCEPTIONS_MAX: usize = 2;

/// The width of the widest label.
fn width<'a>(cases: impl Iterator<Item = &'a Case>) -> usize {
    cases.map(|case| case.label.chars().count()).max().unwrap_or_default()
}

/// The line of a case, with its verdict first, so that verdicts are one below the other.
fn line(answer: &Answer<'_>, case: &Case, width: usize, is_of_paper: bool) -> String {
    let label = plain(&case.label);
    let label = if width == 0 { String::new() } else { format!("{label:width$}  ") };
    let figures = if case.figures.is_empty() { String::new() } else { format!("; {}", case.figures) };
    let doubts = case.doubts.text().map(|doubt| format!("; ! {doubt}")).unwrap_or_default();
    let verdict = case.verdict.text(is_of_paper);
    let verdict = if answer.judges(case) { verdict } else { format!("not judged (would be {verdict})") };
    indented(&plain_but_spaced(&label, &format!("{verdict}{figures}{doubts}")), 4)
}

/// The label keeps the spaces that align it.
fn plain_but_spaced(label: &str, text: &str) -> String {
    format!("{label}{}", plain(text))
}

/// The line above and below a title.
pub(crate) fn rule() -> String {
    "-".repeat(110)
}

/// A line of text. The page breaks it ([`super::folded`]).
pub(crate) fn indented(text: &str, indent: usize) -> String {
    format!("{}{}\n", " ".repeat(indent), text.trim_end())
}
