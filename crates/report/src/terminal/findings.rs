//! The findings of a paper on a terminal, printed after the last point.

use measure::record::Run;
use measure::text::plain;

use crate::Points;
use crate::findings::{Answer, Case, answer, is_of_paper, no_network, summary};

/// The answers to the findings of a plan; empty where it has none.
pub fn findings(run: &Run, points: Points<'_>) -> String {
    if run.findings.is_empty() {
        return String::new();
    }
    let answers = answer(&run.findings, points, no_network(run));
    let is_of_paper = is_of_paper(&run.findings);
    let rule = rule();
    let summary = wrapped(&format!("findings: {}", summary(&answers, is_of_paper)), 1);
    let mut out = format!("\n{rule}\n{summary}{rule}\n");
    for (index, answer) in answers.iter().enumerate() {
        let finding = answer.finding;
        out += &wrapped(&format!("{}. {}", index + 1, plain(&finding.claim)), 1);
        let published = [&finding.published, &finding.source].map(|text| text.as_deref().map(plain));
        let published = match published {
            [Some(numbers), Some(source)] => format!("published: {numbers} ({source}); "),
            [Some(text), None] | [None, Some(text)] => format!("published: {text}; "),
            [None, None] => String::new(),
        };
        let size = finding.matches.as_ref().map(|matches| format!(", of the published size if {matches}"));
        out += &wrapped(&format!("{published}holds if {}{}", finding.holds, size.unwrap_or_default()), 4);
        let width = answer.cases.iter().map(|case| case.label.chars().count()).max().unwrap_or_default();
        answer.cases.iter().for_each(|case| out += &line(answer, case, width, is_of_paper));
    }
    out
}

/// The line of a case, with its verdict first, so that verdicts are one below the other.
fn line(answer: &Answer<'_>, case: &Case, width: usize, is_of_paper: bool) -> String {
    let label = plain(&case.label);
    let label = if width == 0 { String::new() } else { format!("{label:width$}  ") };
    let figures = if case.figures.is_empty() { String::new() } else { format!("; {}", case.figures) };
    let doubts = case.doubts.text().map(|doubt| format!("; ! {doubt}")).unwrap_or_default();
    let verdict = case.verdict.text(is_of_paper);
    let verdict = match answer.unjudged {
        Some(_) if case.figure.is_some() => format!("not judged (would be {verdict})"),
        _ => verdict,
    };
    wrapped(&plain_but_spaced(&label, &format!("{verdict}{figures}{doubts}")), 4)
}

/// The label keeps the spaces that align it.
fn plain_but_spaced(label: &str, text: &str) -> String {
    format!("{label}{}", plain(text))
}

/// The line above and below a title.
pub(super) fn rule() -> String {
    "-".repeat(110)
}

/// Breaks a text into lines; all but the first are indented by two more.
pub(super) fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut line = " ".repeat(indent);
    let mut is_first = true;
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() >= WIDTH && line.trim() != "" {
            out += line.trim_end();
            out.push('\n');
            line = " ".repeat(indent + 2);
            is_first = true;
        }
        if !is_first {
            line.push(' ');
        }
        line += word;
        is_first = false;
    }
    out + line.trim_end() + "\n"
}

/// Columns of a line.
const WIDTH: usize = 130;
