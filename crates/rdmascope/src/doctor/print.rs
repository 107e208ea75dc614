//! The findings as text and as JSON.

use measure::text::counted;
use serde_json::{Value, json};

use super::facts::Facts;
use super::finding::{Finding, Severity};

/// Width of the text, the same as of the tables.
const COLUMNS: usize = 80;
/// Column at which findings start.
const INDENT: usize = 9;

/// Returns the findings as text: first problems, warnings and notes with their reasons and
/// commands, then a line for each good finding.
pub(super) fn text(facts: &Facts, findings: &[Finding]) -> String {
    let device = facts.target().map_or("no device", |device| &device.name);
    let mut out = format!("Measuring on {device} of {}:\n\n", facts.environment.hostname);
    for finding in findings {
        let word = match finding.severity {
            Severity::Problem => "PROBLEM",
            Severity::Warning => "WARNING",
            Severity::Note => "note",
            Severity::Good => "good",
        };
        let found = format!("{}: {}", finding.check, finding.found);
        out += &paragraph(word, &found);
        if finding.severity == Severity::Good {
            continue;
        }
        out += &paragraph("", &format!("{} [{}]", finding.why, finding.looked_at));
        // Users copy commands, so that they are never wrapped.
        for command in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
            out += &format!("{:INDENT$}$ {command}\n", "");
        }
        out.push('\n');
    }
    out + &format!("\n{}\n", summary(findings))
}

/// Returns the findings as JSON.
pub(super) fn json(facts: &Facts, findings: &[Finding]) -> Value {
    json!({
        "host": facts.environment.hostname,
        "device": facts.target().map(|device| &device.name),
        "worst": findings.iter().map(|finding| finding.severity).min(),
        "findings": findings,
    })
}

fn summary(findings: &[Finding]) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let problems = count(Severity::Problem);
    let warnings = count(Severity::Warning);
    let notes = count(Severity::Note);
    let verdict = if problems > 0 { "fix the problems before you measure" } else { "measuring works" };
    format!(
        "{}, {}, {}: {verdict}.",
        counted(problems as u64, "problem"),
        counted(warnings as u64, "warning"),
        counted(notes as u64, "note")
    )
}

/// Wraps a text into lines of at most [`COLUMNS`], the first of which starts with `head`.
fn paragraph(head: &str, text: &str) -> String {
    let mut out = format!("{head:<INDENT$}");
    let mut column = INDENT;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > INDENT && column + 1 + length > COLUMNS {
            out += &format!("\n{:INDENT$}", "");
            column = INDENT;
        }
        if column > INDENT {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
    }
    out + "\n"
}
