//! What is printed once below all tables: the meaning of columns and marks, the outcomes of
//! environments, and the link limits.

use measure::record::Point;
use measure::table::{Note, Table, View};

use super::unstable::Unstable;
use super::{environments, links};
use crate::conditions::Conditions;
use crate::link_limit::{LinkLimit, Links};
use crate::table;

/// What the points so far need below their tables.
#[derive(Debug, Default)]
pub(super) struct Below {
    unstable: Unstable,
    conditions: Conditions,
    links: Links,
    approximate: Option<f64>,
    is_cut: bool,
    /// The notes on columns that depend on the last point.
    of_last: String,
    /// The notes on columns, each printed once.
    notes: Vec<String>,
    /// The columns for which the page has no room.
    left_out: Vec<String>,
}

impl Below {
    /// Adds a point, with or without numbers.
    pub(super) fn see(&mut self, point: &Point) {
        self.unstable.see(point);
        self.conditions.see(point);
        self.is_cut |= point.cut;
    }

    /// Keeps what explains the row of a point.
    pub(super) fn note(&mut self, shown: &'static Table, view: &View<'_>, limit: Option<&LinkLimit>) {
        let point = view.point;
        let resolution = point.latency.as_ref().and_then(|latency| latency.resolution);
        self.approximate = [self.approximate, resolution].into_iter().flatten().reduce(f64::max);
        for note in shown.notes {
            let Some(text) = table::note(note, point) else { continue };
            match note {
                Note::Of(_) => self.of_last = text,
                _ if self.notes.contains(&text) => {}
                _ => self.notes.push(text),
            }
        }
        for name in table::left_out(shown, view) {
            if !self.left_out.contains(&name) {
                self.left_out.push(name);
            }
        }
        if let Some(limit) = limit.filter(|_| table::has_link(shown, view)) {
            self.links.see(limit);
        }
    }

    /// The text below the tables.
    pub(super) fn finish(&self) -> String {
        let mut out = self.of_last.clone() + &self.notes.concat();
        if !self.left_out.is_empty() {
            let names = self.left_out.join(", ");
            out += &format!("\n not shown for lack of room: {names}; a wider terminal shows them\n");
        }
        if self.is_cut {
            out += "\n cut: a signal ended the point early; its numbers are of the messages until then\n";
        }
        out += &self.unstable.finish();
        out += &environments::text(&self.conditions);
        out += &links::text(&self.links);
        if let Some(resolution) = self.approximate {
            out += &format!(
                "\n ~ from a histogram, not from every sample: percentiles are exact to {:.2} % of their value\n",
                resolution * 100.0
            );
        }
        out
    }
}
