//! Tables of points as rows of data, a row for each column.
//!
//! The crate `report` prints them. A column names an axis or a number ([`crate::quantity`]) with
//! the unit and the decimals that it is printed in, so that a new column is one row in the file of
//! its pattern.

pub mod common;
pub mod words;

use crate::figure::Unit;
use crate::record::{Axes, Point};
use crate::text;

/// A table over the points of a pattern.
#[derive(Debug)]
pub struct Table {
    /// What its banner says about the numbers; `{kind}` stands for the kind of the main latency and
    /// its meaning.
    pub title: &'static str,
    /// Whether the title or a column says which way messages go, so that the banner does not repeat
    /// the axis.
    pub says_direction: bool,
    /// Its columns, from the left.
    pub columns: &'static [Column],
    /// The lines of a point.
    pub rows: Rows,
    /// Lines below those of a point.
    pub below: fn(&Point) -> Vec<String>,
    /// The notes that are printed once below all tables.
    pub notes: &'static [Note],
}

/// The lines that a point has in a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows {
    /// One.
    One,
    /// One for each kind of latency.
    PerKind,
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its name, without spaces. `{unit}` stands for the unit of bandwidths; `{>above}` is the name
    /// of a share above a threshold.
    pub head: &'static str,
    /// What stands in it.
    pub cell: Cell,
    /// Its width in characters; 0 stands for the width of its name, but at least 8.
    pub width: usize,
    /// Whether cells are aligned to the left.
    pub is_left: bool,
    /// Which points have it.
    pub shown: fn(&View<'_>) -> bool,
    /// Which pages have it.
    pub place: Place,
}

/// Which pages have a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// Every page.
    Always,
    /// A page with room for it beside the columns that every page has: 80 characters are enough,
    /// unless the axes of an experiment are columns, too.
    Usual,
    /// A page with room for it beside all of these.
    Extra,
}

/// What stands in a column. A point without it has a `-`.
#[derive(Debug)]
pub enum Cell {
    /// The share of a latency's samples above the threshold.
    Above,
    /// The value of an axis.
    Axis(&'static str),
    /// The error bound of the line's latency, in ns, if it compares two clocks.
    Bound,
    /// The name of a kind of latency, indented where it is not the main latency.
    Kind,
    /// A number of the point by its path, in the first of its lines.
    Number(&'static str, Print),
    /// The share of the link limit that the point reached.
    OfLink,
    /// A statistic of the line's latency, by the last part of its path.
    Statistic(&'static str, Print),
    /// Anything else, in the first line of the point.
    Text(fn(&View<'_>) -> Option<String>),
}

/// How a cell stands for several repetitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fold {
    /// By the median of its numbers.
    Median,
    /// By the least of them: the smallest sample of all repetitions.
    Least,
    /// By the largest of them: the largest sample of all repetitions.
    Largest,
    /// By their sum: what was counted in all repetitions.
    Sum,
}

impl Cell {
    /// How the cell stands for several repetitions. Extremes and counters, such as lost messages,
    /// cover all repetitions: a median would hide a repetition in which messages were lost.
    pub fn fold(&self) -> Fold {
        match self {
            Self::Statistic("min_ns", _) => Fold::Least,
            Self::Statistic("max_ns", _) => Fold::Largest,
            Self::Number(path, _) if path.starts_with("counters.") => Fold::Sum,
            _ => Fold::Median,
        }
    }
}

/// How a number is printed.
#[derive(Clone, Copy, Debug)]
pub struct Print {
    /// What it is divided by.
    pub scale: Scale,
    /// Digits behind the point.
    pub decimals: Decimals,
}

/// What a number is divided by.
#[derive(Clone, Copy, Debug)]
pub enum Scale {
    /// The unit that the reader has chosen for bandwidths.
    Bandwidth,
    /// A fixed number.
    By(f64),
    /// A hundredth: the number is printed in percent.
    Percent,
}

/// Digits behind the point.
#[derive(Clone, Copy, Debug)]
pub enum Decimals {
    /// A fixed number.
    Fixed(usize),
    /// A number that depends on the value.
    Of(fn(f64) -> usize),
}

/// A note that is printed once below all tables.
#[derive(Debug)]
pub enum Note {
    /// For every table that has it.
    Always(&'static str),
    /// If the condition holds for a point.
    Where(fn(&Point) -> bool, &'static str),
    /// With words made from a point: those of the last point, before the other notes.
    Of(fn(&Point) -> Option<String>),
}

/// A point as a table shows it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The point.
    pub point: &'a Point,
    /// The unit of bandwidths.
    pub bandwidth: Unit,
    /// Characters of a line of the page; none for a file or a pipe.
    pub line: Option<usize>,
    /// Whether the limit of the links that carry its messages is known.
    pub has_link: bool,
    /// The share of the link limit that the point reached.
    pub of_link: Option<f64>,
}

impl View<'_> {
    /// The first threshold, in ns, that the point has a share for.
    pub fn above_ns(&self) -> Option<u64> {
        let thresholds = self.point.latency.iter().flat_map(|latency| latency.share_above.keys());
        thresholds.filter_map(|threshold| threshold.parse().ok()).min()
    }
}

/// Width of a column with a shorter name.
const WIDTH_MIN: usize = 8;

impl Column {
    /// Its width in characters under a name, as a table prints it.
    pub fn characters(&self, name: &str) -> usize {
        if self.width == 0 { name.len().max(WIDTH_MIN) } else { self.width }
    }

    /// A column as wide as its name, with cells aligned to the right, shown for every point.
    pub const fn new(head: &'static str, cell: Cell) -> Self {
        Self { head, cell, width: 0, is_left: false, shown: |_| true, place: Place::Always }
    }

    /// The same column with a width in characters.
    #[must_use]
    pub const fn wide(self, width: usize) -> Self {
        Self { width, ..self }
    }

    /// The same column with a width in characters, aligned to the left.
    #[must_use]
    pub const fn left(self, width: usize) -> Self {
        Self { width, is_left: true, ..self }
    }

    /// The same column, as [`Place::Usual`].
    #[must_use]
    pub const fn usual(self) -> Self {
        Self { place: Place::Usual, ..self }
    }

    /// The same column, as [`Place::Extra`].
    #[must_use]
    pub const fn extra(self) -> Self {
        Self { place: Place::Extra, ..self }
    }

    /// The same column, shown only for points for which a condition holds.
    #[must_use]
    pub const fn shown_where(self, shown: fn(&View<'_>) -> bool) -> Self {
        Self { shown, ..self }
    }
}

impl Table {
    /// The defaults of a table, without columns.
    pub const PLAIN: Self = Self {
        title: "",
        says_direction: true,
        columns: &[],
        rows: Rows::One,
        below: |_| Vec::new(),
        notes: &[],
    };
}

/// Fills the values of axes into a text: `{peers} peers`. `-` stands for an axis that a point does
/// not have, unless the text names another default (`{pairs|1}`).
pub fn with_axes(template: &str, axes: &Axes) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        let (name, default) = name.split_once('|').unwrap_or((name, "-"));
        out += before;
        out += &axes.get(name).map_or(default.to_owned(), text::value);
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_says_its_axes() {
        let axes = Axes::from([("peers".to_owned(), json!(15)), ("load".to_owned(), json!("incast"))]);
        assert_eq!(with_axes("{peers} peers, {load}", &axes), "15 peers, incast");
        assert_eq!(with_axes("{pairs|1} pairs, {size_bytes} B", &axes), "1 pairs, - B");
    }
}
