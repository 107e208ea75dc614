//! The tables of costs on a terminal, printed after the last point.

use measure::figure::{CostRow, Figure, FigureKind};
use measure::text::plain;

use super::findings::{indented, rule};
use crate::Points;
use crate::costs::{Case, Mode, Outcome, cases};
use crate::folded::Doubts;

/// The tables of the kind `costs` among figures; empty where there is none.
pub fn costs(figures: &[Figure], run: Points<'_>) -> String {
    let tables = figures.iter().filter(|figure| figure.kind == FigureKind::Costs);
    tables.map(|figure| table(figure, run)).collect()
}

fn table(figure: &Figure, run: Points<'_>) -> String {
    let rule = rule();
    let mut out = format!("\n{rule}\n {}\n{rule}\n", plain(&figure.title));
    figure.rows.iter().for_each(|row| out += &group(row, &cases(row, run)));
    out
}

/// The task in a line, its published numbers in another, and a line for each case.
fn group(row: &CostRow, cases: &[Case]) -> String {
    let level = row.level.as_ref().map(|level| format!("{}: ", plain(level))).unwrap_or_default();
    let mut out = indented(&format!("{level}{}", plain(&row.what)), 1);
    out += &row
        .published
        .as_ref()
        .map(|text| indented(&format!("published: {}", plain(text)), 4))
        .unwrap_or_default();
    let width = cases.iter().map(|case| case.label.chars().count()).max().unwrap_or_default();
    cases.iter().for_each(|case| out += &line(case, width));
    out
}

fn line(case: &Case, width: usize) -> String {
    let label = plain(&case.label);
    let label = if width == 0 { String::new() } else { format!("{label:width$}  ") };
    let modes: Vec<String> = case.modes.iter().map(mode).collect();
    let doubts = case.modes.iter().filter_map(|mode| match &mode.outcome {
        Outcome::Measured { doubts, .. } => Some(doubts.clone()),
        Outcome::NotMeasured(_) => None,
    });
    let doubts = doubts.reduce(Doubts::and).and_then(|doubts| doubts.text());
    let doubts = doubts.map(|text| format!("; ! {text}")).unwrap_or_default();
    indented(&format!("{label}{}", plain(&format!("{}{doubts}", modes.join("; ")))), 4)
}

fn mode(mode: &Mode) -> String {
    let name = if mode.name.is_empty() { String::new() } else { format!("{} ", mode.name) };
    match &mode.outcome {
        Outcome::NotMeasured(reason) => format!("{name}not measured: {reason}"),
        Outcome::Measured { number, cost, .. } => format!("{name}{number}, {cost}"),
    }
}
