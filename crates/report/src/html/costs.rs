//! The table of costs: a group of lines for each row, a line for each mode.

use maud::{Markup, html};
use measure::figure::{CostRow, Figure};

use super::prose::prose;
use super::table;
use crate::Points;
use crate::costs::{Case, Mode, Outcome, cases};

/// The table of a figure.
pub(super) fn render(figure: &Figure, points: Points<'_>) -> Markup {
    let rows: Vec<(&CostRow, Vec<Case>)> = figure.rows.iter().map(|row| (row, cases(row, points))).collect();
    let columns = Columns {
        level: figure.rows.iter().any(|row| row.level.is_some()),
        published: figure.rows.iter().any(|row| row.published.is_some()),
        case: rows.iter().flat_map(|(_, cases)| cases).any(|case| !case.label.is_empty()),
    };
    let head = html! {
        thead {
            tr {
                @if columns.level { th scope="col" { "Level" } }
                th scope="col" { "What" }
                @if columns.published { th scope="col" { "Published" } }
                @if columns.case { th scope="col" { "Case" } }
                th scope="col" { "Mode" }
                th scope="col" { "Median" }
                th scope="col" { "Costs" }
            }
        }
    };
    let bodies = html! { @for (row, cases) in &rows { (body(row, cases, columns)) } };
    table::frame(&figure.title, "findings costs", &head, &bodies)
}

/// The columns that not every table has.
#[derive(Clone, Copy)]
struct Columns {
    level: bool,
    published: bool,
    case: bool,
}

fn body(row: &CostRow, cases: &[Case], columns: Columns) -> Markup {
    let span = cases.iter().map(|case| case.modes.len()).sum::<usize>();
    let lines = cases.iter().flat_map(|case| case.modes.iter().enumerate().map(move |line| (case, line)));
    html! {
        tbody {
            @for (line, (case, (index, mode))) in lines.enumerate() {
                tr {
                    @if line == 0 {
                        @if columns.level { td rowspan=(span) { (row.level.as_deref().unwrap_or("–")) } }
                        th scope="rowgroup" rowspan=(span) { (row.what) }
                        @if columns.published {
                            td rowspan=(span) class="published" { (row.published.as_deref().unwrap_or("–")) }
                        }
                    }
                    @if index == 0 && columns.case {
                        td rowspan=(case.modes.len()) {
                            @if case.label.is_empty() { "–" } @else { (case.label) }
                        }
                    }
                    (cells(mode))
                }
                "\n"
            }
        }
    }
}

fn cells(mode: &Mode) -> Markup {
    match &mode.outcome {
        Outcome::NotMeasured(reason) => html! {
            @if mode.name.is_empty() { td { "–" } } @else { td { (mode.name) } }
            td colspan="2" class="not-measured" { strong { "not measured" } small { (prose(reason)) } }
        },
        Outcome::Measured { number, cost, id, doubts } => html! {
            td { (mode.name) }
            td { a href={ "#histogram=" (id) } { (number) } }
            td {
                (cost)
                @if let Some(doubt) = doubts.text() { small class="doubt" { "Uncertain: " (doubt) } }
            }
        },
    }
}
