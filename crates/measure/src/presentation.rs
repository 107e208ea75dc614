//! What a report shows of each pattern, and the list of patterns that a program hands to it.
//!
//! A pattern's table and its own numbers stand in its module of `bench`. A report knows no pattern
//! by its name: it looks up in [`Patterns`] what to show of a point.

use std::collections::BTreeSet;

use crate::quantity::{self, Found, Quantity};
use crate::record::{Axes, Direction, Point};
use crate::table::{Table, common};
use crate::text;

/// The patterns that a program knows, by their names in records.
#[derive(Clone, Copy, Debug)]
pub struct Patterns(&'static [(&'static str, &'static Presentation)]);

impl Patterns {
    /// A list of patterns: the name of each, and what is shown of it.
    pub const fn new(all: &'static [(&'static str, &'static Presentation)]) -> Self {
        Self(all)
    }

    /// All patterns, in the order of the list.
    pub fn all(self) -> impl Iterator<Item = (&'static str, &'static Presentation)> {
        self.0.iter().copied()
    }

    /// What is shown of a pattern; [`Presentation::PLAIN`] if the program does not know it.
    pub fn of(self, pattern: &str) -> &'static Presentation {
        static PLAIN: Presentation = Presentation::PLAIN;
        self.all().find(|(name, _)| *name == pattern).map_or(&PLAIN, |(_, shown)| shown)
    }

    /// The table of a point; `None` where the point holds no numbers.
    pub fn table(self, point: &Point) -> Option<&'static Table> {
        (self.of(&point.pattern).table)(point).or_else(|| common::table(point))
    }

    /// Finds the row that a path names, among those of single patterns and of all patterns.
    pub fn find(self, path: &str) -> Option<Found<'_>> {
        quantity::find_in(self.own().chain(quantity::ALL), path)
    }

    /// Finds the row that a path names, if the pattern of a point has that number.
    pub fn find_at<'p>(self, point: &Point, path: &'p str) -> Option<Found<'p>> {
        quantity::find_in(self.of(&point.pattern).quantities.iter().chain(quantity::ALL), path)
    }

    /// Lists the paths of all numbers that a point has, the most usual first.
    pub fn paths(self, point: &Point) -> Vec<String> {
        let own = self.of(&point.pattern).quantities;
        let all = quantity::ALL.iter().chain(own).flat_map(|row| quantity::paths_of(row, point));
        let mut seen = BTreeSet::new();
        let is_new = |path: &String| seen.insert(path.clone());
        let has_number =
            |path: &String| self.find_at(point, path).is_some_and(|found| found.number(point).is_some());
        all.filter(has_number).filter(is_new).collect()
    }

    /// Whether paths of numbers begin with a group, such as `latency` or `counters`.
    pub fn has_group(self, group: &str) -> bool {
        let start = format!("{group}.");
        let rows = quantity::ALL.iter().chain(self.own()).any(|row| row.path.starts_with(&start));
        rows || self.examples(group).iter().any(|path| path.starts_with(&start))
    }

    /// Lists the paths in the group that a path begins with. If there is no such group, lists the
    /// paths that hints offer.
    pub fn examples(self, path: &str) -> Vec<String> {
        quantity::examples(quantity::ALL.iter().chain(self.own()), path)
    }

    /// The numbers of single patterns.
    fn own(self) -> impl Iterator<Item = &'static Quantity> + Clone {
        self.0.iter().flat_map(|(_, shown)| shown.quantities)
    }
}

/// What a report shows of a pattern.
#[derive(Debug)]
pub struct Presentation {
    /// Axes that differ between the rows of a table.
    pub row_axes: &'static [&'static str],
    /// Axes that columns show, but which follow from others.
    pub column_axes: &'static [&'static str],
    /// What the row of a failed point shows instead of its cells: `{peers} peers`. The first part
    /// takes the place of the first column. `{pairs|1}` is 1 where the point has no such axis.
    pub label: &'static [&'static str],
    /// The suffix of netperf's name for the same test over sockets.
    pub test: Option<&'static str>,
    /// The table of a point; `None` where it has none of the pattern's numbers.
    pub table: fn(&Point) -> Option<&'static Table>,
    /// The messages that a throughput counts; `None` where that is not known.
    pub traffic: fn(&Axes, Direction) -> Option<Traffic>,
    /// Numbers that only its points have. They come before those of every pattern where a path
    /// leads to both.
    pub quantities: &'static [Quantity],
}

impl Presentation {
    /// The defaults of a pattern.
    pub const PLAIN: Self = Self {
        row_axes: &["size_bytes"],
        column_axes: &[],
        label: &["{size_bytes}"],
        test: None,
        table: |_| None,
        traffic: |_, _| None,
        quantities: &[],
    };

    /// Whether a table has a column for an axis, so that points which differ in it share a table.
    pub fn has_column(&self, axis: &str) -> bool {
        self.row_axes.contains(&axis) || self.column_axes.contains(&axis)
    }
}

/// The messages of a throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The sending and the receiving rank of each flow.
    pub flows: Vec<(u32, u32)>,
    /// Their service.
    pub service: String,
    /// Their operation.
    pub operation: String,
    /// The axis that holds the bytes of a message.
    pub size: &'static str,
}

impl Traffic {
    /// Messages as the axes of a point describe them.
    pub fn of(axes: &Axes, flows: Vec<(u32, u32)>) -> Self {
        let axis = |name| axes.get(name).map(text::value).unwrap_or_default();
        Self { flows, service: axis("service"), operation: axis("operation"), size: "size_bytes" }
    }

    /// The same for two ranks that have the link to themselves.
    pub fn between_two(axes: &Axes, _: Direction) -> Option<Self> {
        Some(Self::of(axes, vec![(0, 1)]))
    }
}
