//! Unstable points, grouped by their reason, with the axes in which they differ from their
//! neighbours.

use measure::record::{Axes, Point};
use measure::text::{axes_text, plain};

use super::banner::repetition;
use super::spread::Spread;
use crate::varying::Varying;

/// The marked points, until the last one has been printed.
#[derive(Debug, Default)]
pub(super) struct Unstable {
    marked: Vec<Marked>,
    varying: Varying,
}

/// The marked points of an experiment that have the same reason.
#[derive(Debug)]
struct Marked {
    experiment: String,
    reason: String,
    of_first: Axes,
    repetition_of_first: String,
    points: Spread,
}

impl Unstable {
    /// Adds a point, marked or not: all points of an experiment show which of its axes vary.
    pub(super) fn see(&mut self, point: &Point) {
        self.varying.see(point);
        if let Some(reason) = &point.unstable {
            self.mark(point, plain(reason));
        }
    }

    fn mark(&mut self, point: &Point, reason: String) {
        let is_same = |marked: &&mut Marked| marked.experiment == point.experiment && marked.reason == reason;
        if let Some(marked) = self.marked.iter_mut().find(is_same) {
            marked.points.see(&point.axes);
            return;
        }
        let mut points = Spread::default();
        points.see(&point.axes);
        self.marked.push(Marked {
            experiment: point.experiment.clone(),
            reason,
            of_first: point.axes.clone(),
            repetition_of_first: repetition(point),
            points,
        });
    }

    /// The reasons of the marks; empty where there are none.
    pub(super) fn finish(&self) -> String {
        if self.marked.is_empty() {
            return String::new();
        }
        let mut out = "\n ! unstable: the number may be that of a disturbed machine:\n".to_owned();
        for marked in self.marked.iter().take(LINES_MAX) {
            out += &format!("   {}\n", self.line(marked));
        }
        let more: usize = self.marked.iter().skip(LINES_MAX).map(|marked| marked.points.points).sum();
        if more > 0 {
            out += &format!("   and {more} more, each with its reason in the record\n");
        }
        out
    }

    fn line(&self, marked: &Marked) -> String {
        let is_shown = |name: &str| name == "size_bytes" || self.varying.has(&marked.experiment, name);
        let experiment = plain(&marked.experiment);
        let reason = &marked.reason;
        if marked.points.points == 1 {
            let axes = axes_text(&marked.of_first, is_shown);
            return format!("{experiment} ({axes}){}: {reason}", marked.repetition_of_first);
        }
        let axes = marked.points.axes(|name, _| is_shown(name));
        format!("{experiment} ({}: {axes}): {reason}", marked.points.count())
    }
}

/// Longer lists are too long for a terminal.
const LINES_MAX: usize = 10;
