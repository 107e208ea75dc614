//! The writer of tables: points as lines of text, with columns from [`measure::table`].

use measure::presentation::Patterns;
use measure::quantity::STATISTICS;
use measure::record::{Latency, LatencyKind, Point};
use measure::table::{Cell, Column, Decimals, Note, Print, Rows, Scale, Table, View};
use measure::text;

/// The lines above the rows of a table. Rows share them as long as they stay the same.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heading {
    /// The title of the numbers.
    pub(crate) title: String,
    /// The names of the columns, in a line.
    pub(crate) columns: String,
}

/// A line of a table: its latency, and whether it is the first line of its point.
#[derive(Clone, Copy)]
struct Line<'a> {
    view: &'a View<'a>,
    patterns: Patterns,
    latency: Option<&'a Latency>,
    is_first: bool,
}

/// Width of a column with a shorter name.
const WIDTH_MIN: usize = 10;
/// The cell for a number that a point does not have.
const NONE: &str = "-";

impl Heading {
    /// The heading of a table over points like this one.
    pub(crate) fn of(table: &Table, view: &View<'_>) -> Self {
        let columns: Vec<(&Column, String)> =
            columns(table, view).map(|column| (column, head(column, view))).collect();
        let columns =
            line(table, columns.iter().map(|(column, head)| (*column, head.as_str(), head.clone())));
        Self { title: title(table, view.point), columns: columns + "\n" }
    }
}

/// The title of a table in its banner.
pub(crate) fn title(table: &Table, point: &Point) -> String {
    // Other tools report only a mean, which is of half round trips.
    let kind = point.latency.as_ref().map_or(LatencyKind::RttHalf, |latency| latency.kind);
    table.title.replace("{kind}", &format!("{}: {}", kind.name(), kind.meaning()))
}

/// The lines of a point, with its marks.
pub(crate) fn rows(table: &Table, view: &View<'_>, patterns: Patterns, marks: &str) -> String {
    let point = view.point;
    let kinds = point.kinds.iter().map(|timed| &timed.latency);
    let latencies: Vec<Option<&Latency>> = match table.rows {
        Rows::PerKind if !point.kinds.is_empty() => kinds.map(Some).collect(),
        Rows::One | Rows::PerKind => vec![point.latency.as_ref()],
    };
    let mut out = String::new();
    for (index, latency) in latencies.into_iter().enumerate() {
        let own = Line { view, patterns, latency, is_first: index == 0 };
        let cells = columns(table, view).map(|column| (column, head(column, view), own.cell(&column.cell)));
        let cells: Vec<_> = cells.collect();
        out += &line(table, cells.iter().map(|(column, head, cell)| (*column, head.as_str(), cell.clone())));
        out += &latency.map(|latency| (table.behind)(point, latency)).unwrap_or_default();
        out += marks;
        out.push('\n');
    }
    out + &(table.below)(point).into_iter().map(|line| line + "\n").collect::<String>()
}

/// The text of a note for a point.
pub(crate) fn note(note: &Note, point: &Point) -> Option<String> {
    match note {
        Note::Always(text) => Some((*text).to_owned()),
        Note::Where(holds, text) => holds(point).then(|| (*text).to_owned()),
        Note::Of(text) => text(point),
    }
}

/// Whether a table has the share of the link limit.
pub(crate) fn has_link(table: &Table, view: &View<'_>) -> bool {
    columns(table, view).any(|column| matches!(column.cell, Cell::OfLink))
}

fn columns<'a>(table: &'a Table, view: &'a View<'_>) -> impl Iterator<Item = &'a Column> {
    table.columns.iter().filter(|column| (column.shown)(view))
}

fn head(column: &Column, view: &View<'_>) -> String {
    let above = || view.above_ns().map(|ns| text::time(ns as f64).replace(".00", ""));
    match column.head {
        "{>above}" => above().map_or(NONE.to_owned(), |above| format!(">{}", above.replace(' ', ""))),
        head => {
            let head = head.replace("{unit}", view.bandwidth.symbol());
            if head.contains("{above}") {
                head.replace("{above}", &above().unwrap_or_default())
            } else {
                head
            }
        }
    }
}

/// Aligns cells under the names of their columns.
fn line<'a>(table: &Table, cells: impl Iterator<Item = (&'a Column, &'a str, String)>) -> String {
    let mut out = String::new();
    for (index, (column, head, cell)) in cells.enumerate() {
        let gap = if index == 0 { 1 } else { table.gap };
        let width = if column.width == 0 { head.len().max(WIDTH_MIN) } else { column.width };
        out += &" ".repeat(gap);
        out += &if column.is_left { format!("{cell:width$}") } else { format!("{cell:>width$}") };
    }
    out
}

impl Line<'_> {
    fn cell(&self, cell: &Cell) -> String {
        let point = self.view.point;
        let text = match cell {
            Cell::Above => self.above(),
            Cell::Axis(name) => point.axes.get(*name).map(text::value),
            Cell::Kind => self.latency.map(|latency| {
                let indent = if self.is_first { "" } else { "  " };
                format!("{indent}{}", latency.kind.name())
            }),
            Cell::Statistic(field, print) => self.statistic(field).map(|number| self.print(*print, number)),
            Cell::OfLink => self.view.of_link.map(|share| format!("{:.1}", 100.0 * share)),
            Cell::Number(path, print) if self.is_first => {
                let number = self.patterns.find_at(point, path).and_then(|found| found.number(point));
                number.map(|number| self.print(*print, number))
            }
            Cell::Text(text) if self.is_first => text(self.view),
            Cell::Number(..) | Cell::Text(_) => None,
        };
        text.unwrap_or_else(|| NONE.to_owned())
    }

    fn statistic(&self, field: &str) -> Option<f64> {
        let statistic = STATISTICS.iter().find(|statistic| statistic.field == field)?;
        (statistic.of)(self.latency?, "")
    }

    fn above(&self) -> Option<String> {
        let threshold = self.view.above_ns()?.to_string();
        let percent = 100.0 * self.latency?.share_above.get(&threshold)?;
        Some(format!("{percent:.*} %", text::digits([percent].into_iter())))
    }

    fn print(&self, print: Print, number: f64) -> String {
        let number = match print.scale {
            Scale::Bandwidth => number / self.view.bandwidth.one(),
            Scale::By(one) => number / one,
            Scale::Percent => 100.0 * number,
        };
        let decimals = match print.decimals {
            Decimals::Fixed(decimals) => decimals,
            Decimals::Of(decimals) => decimals(number),
        };
        format!("{number:.decimals$}")
    }
}
