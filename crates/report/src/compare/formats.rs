//! The formats of a sheet: a table of text, Markdown and JUnit.

use measure::text::plain;

use super::comparison::Word;
use super::sheet::{Line, Sheet};
use crate::escaped;
use crate::junit::{self, Outcome, Suite, Test};

/// Characters of a point's name in the first column; longer ones get a line of their own.
const NAME_MAX: usize = 20;

/// A table of text, at most 80 columns wide where names of points are short.
#[must_use]
pub fn table(sheet: &Sheet) -> String {
    let mut text: String = sheet.about.iter().map(|line| format!(" {line}\n")).collect();
    let columns = sheet.head.len();
    let width = |column: usize| {
        let cells = sheet.lines.iter().map(|line| line.cells[column].chars().count());
        cells.chain([sheet.head[column].chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns).map(width).collect();
    widths[0] = widths[0].min(NAME_MAX);
    for group in sheet.lines.chunk_by(|a, b| a.group == b.group) {
        text += &format!("\n {}\n", group[0].group);
        text += &cells(&sheet.head, &widths, "verdict");
        for line in group {
            text += &cells(&line.cells, &widths, line.verdict.text());
        }
    }
    text += &reasons(&sheet.lines);
    for (heading, list) in sheet.lists.iter().filter(|(_, list)| !list.is_empty()) {
        text += &format!("\n {heading}:\n");
        text.extend(list.iter().map(|line| format!("   {}\n", plain(line))));
    }
    text + &format!("\n verdict: {}\n", sheet.sentence)
}

/// A line of the table.
fn cells(cells: &[String], widths: &[usize], verdict: &str) -> String {
    let [name, numbers @ ..] = cells else { return String::new() };
    let first = widths[0];
    let mut line = match name.chars().count() > first {
        true => format!("   {name}\n   {:first$}", ""),
        false => format!("   {name:first$}"),
    };
    for (cell, width) in numbers.iter().zip(&widths[1..]) {
        line += &format!(" {cell:>width$}");
    }
    line + &format!(" {verdict}\n")
}

/// The reasons of verdicts, each with the number of its lines.
fn reasons(lines: &[Line]) -> String {
    let mut known: Vec<(String, usize)> = Vec::new();
    for said in lines.iter().filter(|line| !line.reason.is_empty()).map(Line::said) {
        match known.iter_mut().find(|(other, _)| *other == said) {
            Some((_, count)) => *count += 1,
            None => known.push((said, 1)),
        }
    }
    let line = |(said, count): (String, usize)| {
        let count = if count == 1 { String::new() } else { format!(" ({count} points)") };
        format!(" {said}{count}\n")
    };
    let all: String = known.into_iter().map(line).collect();
    if all.is_empty() { all } else { format!("\n{all}") }
}

/// Tables of Markdown, as pull requests show them.
#[must_use]
pub fn markdown(sheet: &Sheet) -> String {
    let escape = |text: &str| escaped::markdown(&plain(text));
    let row =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let mut text = format!("**verdict: {}**\n\n", escape(&sheet.sentence));
    text.extend(sheet.about.iter().map(|line| format!("- {}\n", escape(line))));
    for group in sheet.lines.chunk_by(|a, b| a.group == b.group) {
        text += &format!("\n{}\n\n", escape(&group[0].group));
        text += &row(&mut sheet.head.iter().cloned().chain(["verdict".to_owned()]));
        let numbers = std::iter::repeat_n("---:", sheet.head.len() - 1);
        let rule = ["---"].into_iter().chain(numbers).chain(["---"]);
        text += &row(&mut rule.map(str::to_owned));
        for line in group {
            text += &row(&mut line.cells.iter().map(|cell| escape(cell)).chain([escape(&line.said())]));
        }
    }
    for (heading, list) in sheet.lists.iter().filter(|(_, list)| !list.is_empty()) {
        text += &format!("\n{heading}:\n\n");
        text.extend(list.iter().map(|line| format!("- {}\n", escape(line))));
    }
    text
}

/// A JUnit report: a test for each point (of a trend, its last change). It fails if the new side is
/// worse, is an error if the new side failed, and is skipped if nothing was decided.
#[must_use]
pub fn junit(sheet: &Sheet) -> String {
    let test = |line: &Line| {
        let why = message(sheet, line);
        let result = match line.verdict {
            Word::Worse => Outcome::Failure(why),
            Word::Failed => Outcome::Error(why),
            Word::Differs | Word::Undecided => Outcome::Skipped(why),
            Word::Same | Word::Better => Outcome::Passed,
        };
        Test::new(&line.experiment, format!("{} {}", line.group, line.cells[0]).trim_end(), result)
    };
    let name = format!("rdmascope {}", sheet.name);
    let suite = Suite {
        package: format!("rdmascope.{}", sheet.name),
        name,
        started: sheet.last.started.clone(),
        host: sheet.last.host.clone(),
        properties: Vec::new(),
        failure: "worse",
        tests: sheet.lines.iter().filter(|line| line.is_present).map(test).collect(),
    };
    let mut text = Vec::new();
    // Nothing fails that writes to memory.
    let _ = junit::write(&[suite], &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The cells of a line in words, with its verdict.
fn message(sheet: &Sheet, line: &Line) -> String {
    let cells = sheet.head.iter().zip(&line.cells).skip(1);
    let cells: Vec<String> = cells.map(|(head, cell)| format!("{head} {cell}")).collect();
    format!("{}; {}", line.said(), cells.join(", "))
}
