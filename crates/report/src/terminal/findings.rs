//! The findings of a paper on a terminal, when the last point has been printed.

use measure::finding::Finding;
use measure::text::plain;

use crate::Points;
use crate::findings::{Case, answer, summary};

/// What the run says to each finding of its plan; nothing where it has none.
pub fn findings(findings: &[Finding], run: Points<'_>) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let answers = answer(findings, run);
    let rule = rule();
    let mut out = format!("\n{rule}\n findings: {}\n{rule}\n", summary(&answers));
    for (index, answer) in answers.iter().enumerate() {
        let finding = answer.finding;
        out += &wrapped(&format!("{}. {}", index + 1, plain(&finding.claim)), 1);
        let published = [&finding.published, &finding.source].map(|text| text.as_deref().map(plain));
        let published = match published {
            [Some(numbers), Some(source)] => format!("published: {numbers} ({source}); "),
            [Some(text), None] | [None, Some(text)] => format!("published: {text}; "),
            [None, None] => String::new(),
        };
        out += &wrapped(&format!("{published}shown if {}", finding.holds), 4);
        let width = answer.cases.iter().map(|case| case.label.chars().count()).max().unwrap_or_default();
        answer.cases.iter().for_each(|case| out += &line(case, width));
    }
    out
}

/// A case: its verdict first, so that they can be read down the page.
fn line(case: &Case, width: usize) -> String {
    let label = plain(&case.label);
    let label = if width == 0 { String::new() } else { format!("{label:width$}  ") };
    let figures = if case.figures.is_empty() { String::new() } else { format!("; {}", case.figures) };
    let doubts = case.doubts.text().map(|doubt| format!("; ! {doubt}")).unwrap_or_default();
    wrapped(&plain_but_spaced(&label, &format!("{}{figures}{doubts}", case.verdict.text())), 4)
}

/// The label keeps the spaces that align it.
fn plain_but_spaced(label: &str, text: &str) -> String {
    format!("{label}{}", plain(text))
}

/// What stands above and below a title.
pub(super) fn rule() -> String {
    "-".repeat(110)
}

/// A text in lines, the further ones indented by two more.
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
