//! The writer of tables: points as lines of text, with columns from [`measure::table`].

use measure::presentation::Patterns;
use measure::quantity::{STATISTICS, bound_ns};
use measure::record::{Latency, LatencyKind, Point};
use measure::table::{Cell, Column, Decimals, Fold, Note, Place, Print, Rows, Scale, Table, View};
use measure::text;

use crate::launched::by_launch;
use crate::series_table::median;

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

/// Width of the mark of an unstable point behind a row.
const MARK: usize = 3;
/// The cell for a number that a point does not have.
const NONE: &str = "-";

impl Heading {
    /// The heading of a table over points like this one.
    pub(crate) fn of(table: &Table, view: &View<'_>) -> Self {
        let heads: Vec<(&Column, String)> =
            columns(table, view).map(|column| (column, head(column, view))).collect();
        let columns = line(heads.iter().map(|(column, head)| (*column, head.as_str(), head.clone())));
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
    let lines = lines(table, &[*view], patterns).into_iter().map(|cells| cells + marks + "\n");
    lines.collect::<String>() + &below(table, view)
}

/// The lines below those of a point.
pub(crate) fn below(table: &Table, view: &View<'_>) -> String {
    (table.below)(view.point).into_iter().map(|line| line + "\n").collect()
}

/// The lines of points that are repetitions of each other: medians over them, and extremes and
/// counters of all.
pub(crate) fn lines(table: &Table, views: &[View<'_>], patterns: Patterns) -> Vec<String> {
    let Some(first) = views.first() else { return Vec::new() };
    let kinds: Vec<Option<LatencyKind>> = match table.rows {
        Rows::PerKind if !first.point.kinds.is_empty() => {
            first.point.kinds.iter().map(|timed| Some(timed.latency.kind)).collect()
        }
        Rows::One | Rows::PerKind => vec![None],
    };
    let one = |(index, kind): (usize, &Option<LatencyKind>)| {
        let of = |point: &'_ Point, kind: LatencyKind| {
            point.kinds.iter().position(|timed| timed.latency.kind == kind)
        };
        let all: Vec<Line<'_>> = views
            .iter()
            .map(|view| {
                let latency = match kind {
                    Some(kind) => of(view.point, *kind).map(|at| &view.point.kinds[at].latency),
                    None => view.point.latency.as_ref(),
                };
                Line { view, patterns, latency, is_first: index == 0 }
            })
            .collect();
        let cells =
            columns(table, first).map(|column| (column, head(column, first), cell(&column.cell, &all)));
        let cells: Vec<_> = cells.collect();
        line(cells.iter().map(|(column, head, cell)| (*column, head.as_str(), cell.clone())))
    };
    kinds.iter().enumerate().map(one).collect()
}

/// What stands in a cell: the numbers of all repetitions, folded into one, or a text that they
/// share. Each launch counts as one repetition.
fn cell(cell: &Cell, lines: &[Line<'_>]) -> String {
    let launches = by_launch(lines, |line| line.view.point);
    let of_launch = |lines: &Vec<&Line<'_>>| {
        let found: Vec<Value> = lines.iter().filter_map(|line| line.value(cell)).collect();
        together(found, cell.fold())
    };
    let found: Vec<Value> = launches.iter().filter_map(of_launch).collect();
    match together(found, cell.fold()) {
        Some(Value::Number(number, shown)) => shown.print(number, lines[0].view),
        Some(Value::Text(text)) => text,
        None => NONE.to_owned(),
    }
}

/// One value for several: numbers folded into one; of texts, the words that all share, with the
/// medians of numbers among them.
fn together(found: Vec<Value>, fold: Fold) -> Option<Value> {
    let mut numbers = Vec::new();
    let mut texts = Vec::new();
    let mut shown_as = None;
    for value in found {
        match value {
            Value::Number(number, shown) => {
                shown_as.get_or_insert(shown);
                numbers.push(number);
            }
            Value::Text(text) => texts.push(text),
        }
    }
    match shown_as {
        Some(shown) => {
            let number = match fold {
                Fold::Median => median(numbers),
                Fold::Least => numbers.into_iter().min_by(f64::total_cmp),
                Fold::Largest => numbers.into_iter().max_by(f64::total_cmp),
                Fold::Sum => Some(numbers.into_iter().sum()),
            };
            Some(Value::Number(number?, shown))
        }
        None => texts_together(&texts).map(Value::Text),
    }
}

fn texts_together(texts: &[String]) -> Option<String> {
    let first = texts.first()?;
    if texts.iter().all(|text| text == first) {
        return Some(first.clone());
    }
    let words: Vec<Vec<&str>> = texts.iter().map(|text| text.split_whitespace().collect()).collect();
    let count = words[0].len();
    let word = |at: usize| {
        let all: Option<Vec<&str>> = words.iter().map(|words| words.get(at).copied()).collect();
        word_of(&all?)
    };
    let is_alike = words.iter().all(|words| words.len() == count);
    let all: Option<Vec<String>> = (0..count).map(word).collect();
    let indent = first.len() - first.trim_start().len();
    Some(all.filter(|_| is_alike).map_or(NONE.to_owned(), |all| " ".repeat(indent) + &all.join(" ")))
}

/// A word that all share, or the median of numbers with the decimals of the first.
fn word_of(words: &[&str]) -> Option<String> {
    let first = words[0];
    if words.iter().all(|word| *word == first) {
        return Some(first.to_owned());
    }
    let numbers: Option<Vec<f64>> =
        words.iter().map(|word| word.trim_end_matches(',').parse().ok()).collect();
    let bare = first.trim_end_matches(',');
    let decimals = bare.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    Some(format!("{:.decimals$}{}", median(numbers?)?, &first[bare.len()..]))
}

/// What a point has for a cell.
enum Value {
    Number(f64, Shown),
    Text(String),
}

/// How a number is shown.
#[derive(Clone, Copy)]
enum Shown {
    As(Print),
    /// A share, in percent.
    Share,
}

impl Shown {
    fn print(self, number: f64, view: &View<'_>) -> String {
        let print = match self {
            Self::As(print) => print,
            Self::Share => {
                let percent = 100.0 * number;
                return format!("{percent:.*}", text::digits([percent].into_iter()));
            }
        };
        let number = match print.scale {
            Scale::Bandwidth => number / view.bandwidth.one(),
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

/// A share of the link limit, in percent.
const OF_LINK: Print = Print { scale: Scale::Percent, decimals: Decimals::Fixed(1) };
/// An error bound, in whole ns.
const BOUND: Print = Print { scale: Scale::By(1.0), decimals: Decimals::Fixed(0) };

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

/// The columns that a point has and for which the page has room. Of columns with the same place,
/// the first ones are preferred.
fn columns<'a>(table: &'a Table, view: &View<'_>) -> impl Iterator<Item = &'a Column> {
    let shown: Vec<&Column> = table.columns.iter().filter(|column| (column.shown)(view)).collect();
    let mut room = view.line.map_or(usize::MAX, |line| line.saturating_sub(MARK));
    let mut is_taken = vec![false; shown.len()];
    for place in [Place::Always, Place::Usual, Place::Extra] {
        for (column, is_taken) in shown.iter().zip(&mut is_taken).filter(|(column, _)| column.place == place)
        {
            let needed = 1 + column.characters(&head(column, view));
            *is_taken = place == Place::Always || needed <= room;
            if *is_taken {
                room = room.saturating_sub(needed);
            }
        }
    }
    shown.into_iter().zip(is_taken).filter_map(|(column, is_taken)| is_taken.then_some(column))
}

/// The names of the columns for which the page has no room.
pub(crate) fn left_out(table: &Table, view: &View<'_>) -> Vec<String> {
    let kept: Vec<String> = columns(table, view).map(|column| head(column, view)).collect();
    let all = table.columns.iter().filter(|column| (column.shown)(view)).map(|column| head(column, view));
    all.filter(|name| !kept.contains(name)).collect()
}

fn head(column: &Column, view: &View<'_>) -> String {
    let above = || view.above_ns().map(|ns| text::time(ns as f64).replace(".00", ""));
    match column.head {
        "{>above}" => above().map_or(NONE.to_owned(), |above| format!(">{}[%]", above.replace(' ', ""))),
        head => head.replace("{unit}", view.bandwidth.symbol()),
    }
}

/// Aligns cells under the names of their columns.
fn line<'a>(cells: impl Iterator<Item = (&'a Column, &'a str, String)>) -> String {
    let mut out = String::new();
    for (column, head, cell) in cells {
        let width = column.characters(head);
        out += &if column.is_left { format!(" {cell:width$}") } else { format!(" {cell:>width$}") };
    }
    out
}

impl Line<'_> {
    fn value(&self, cell: &Cell) -> Option<Value> {
        let point = self.view.point;
        let number = |number: Option<f64>, print: Print| Some(Value::Number(number?, Shown::As(print)));
        match cell {
            Cell::Above => Some(Value::Number(self.above()?, Shown::Share)),
            Cell::Axis(name) => {
                point.axes.get(*name).map(|value| Value::Text(text::plain(&text::value(value))))
            }
            Cell::Bound => {
                let bound_ns = self.latency.and_then(|latency| bound_ns(point, latency.kind));
                number(bound_ns.map(f64::ceil), BOUND)
            }
            Cell::Kind => self.latency.map(|latency| {
                let indent = if self.is_first { "" } else { "  " };
                Value::Text(format!("{indent}{}", latency.kind.name()))
            }),
            Cell::Statistic(field, print) => number(self.statistic(field), *print),
            Cell::OfLink => number(self.view.of_link, OF_LINK),
            Cell::Number(path, print) if self.is_first => {
                number(self.patterns.find_at(point, path).and_then(|found| found.number(point)), *print)
            }
            Cell::Text(text) if self.is_first => text(self.view).map(Value::Text),
            Cell::Number(..) | Cell::Text(_) => None,
        }
    }

    fn statistic(&self, field: &str) -> Option<f64> {
        let statistic = STATISTICS.iter().find(|statistic| statistic.field == field)?;
        (statistic.of)(self.latency?, "")
    }

    /// The share of samples above the first threshold.
    fn above(&self) -> Option<f64> {
        let threshold = self.view.above_ns()?.to_string();
        self.latency?.share_above.get(&threshold).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_repetitions_share_their_words_and_have_medians() {
        let together = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            texts_together(&texts)
        };
        assert_eq!(together(&["1.25", "3.50", "2.00"]).as_deref(), Some("2.00"));
        assert_eq!(
            together(&["  time 0.5 s, rate 10 MB/s", "  time 0.7 s, rate 30 MB/s"]).as_deref(),
            Some("  time 0.6 s, rate 20 MB/s")
        );
        assert_eq!(together(&["one", "one"]).as_deref(), Some("one"));
        assert_eq!(together(&["one", "each"]).as_deref(), Some(NONE), "which of them is not known");
        assert_eq!(together(&["1 a", "1"]).as_deref(), Some(NONE));
        assert_eq!(together(&[]), None);
    }
}
