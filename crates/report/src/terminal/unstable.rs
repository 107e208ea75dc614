//! Unstable points, grouped by the cause, with the axes in which they differ from their
//! neighbours.

use measure::record::{Axes, Point};
use measure::text::{axes_text, plain};

use super::banner::repetition;
use super::spread::Spread;
use crate::reason;
use crate::varying::Varying;

/// The marked points, until the last one has been printed.
#[derive(Debug, Default)]
pub(super) struct Unstable {
    marked: Vec<Marked>,
    varying: Varying,
}

/// The marked points that have the same cause.
#[derive(Debug)]
struct Marked {
    cause: String,
    /// The reason of the first point.
    reason: String,
    /// Whether the reasons of other points have other numbers.
    varies: bool,
    of_first: Axes,
    repetition_of_first: String,
    /// The points of each experiment.
    experiments: Vec<(String, Spread)>,
}

impl Unstable {
    /// Adds a point, marked or not: all points of an experiment show which of its axes vary.
    pub(super) fn see(&mut self, point: &Point) {
        self.varying.see(point);
        if let Some(reason) = point.disturbance() {
            self.mark(point, plain(reason));
        }
    }

    fn mark(&mut self, point: &Point, reason: String) {
        let cause = reason::cause(&reason);
        let index = self.marked.iter().position(|marked| marked.cause == cause).unwrap_or_else(|| {
            self.marked.push(Marked {
                cause,
                reason: reason.clone(),
                varies: false,
                of_first: point.axes.clone(),
                repetition_of_first: repetition(point),
                experiments: Vec::new(),
            });
            self.marked.len() - 1
        });
        let marked = &mut self.marked[index];
        marked.varies |= marked.reason != reason;
        let known = marked.experiments.iter().position(|(name, _)| *name == point.experiment);
        let at = known.unwrap_or_else(|| {
            marked.experiments.push((point.experiment.clone(), Spread::default()));
            marked.experiments.len() - 1
        });
        marked.experiments[at].1.see(&point.axes);
    }

    /// The reasons of the marks; empty where there are none.
    pub(super) fn finish(&self) -> String {
        if self.marked.is_empty() {
            return String::new();
        }
        let mut out =
            "\n ! unstable: something disturbed these points, so their numbers may be wrong:\n".to_owned();
        for marked in self.marked.iter().take(LINES_MAX) {
            out += &format!("   {}\n", self.line(marked));
        }
        let more: usize = self.marked.iter().skip(LINES_MAX).map(Marked::points).sum();
        if more > 0 {
            out += &format!("   and {more} more, each with its reason in the record\n");
        }
        out
    }

    fn line(&self, marked: &Marked) -> String {
        let reason = &marked.reason;
        let example = if marked.varies { "for example, " } else { "" };
        let where_from = match &marked.experiments[..] {
            [(experiment, spread)] => {
                let is_shown = |name: &str| name == "size_bytes" || self.varying.has(experiment, name);
                let experiment = plain(experiment);
                if spread.points == 1 {
                    let axes = axes_text(&marked.of_first, is_shown);
                    return format!("{experiment} ({axes}){}: {reason}", marked.repetition_of_first);
                }
                format!("{experiment} ({}: {})", spread.count(), spread.axes(|name, _| is_shown(name)))
            }
            experiments => {
                let names: Vec<String> = experiments.iter().map(|(name, _)| plain(name)).collect();
                format!("{} points of {}", marked.points(), names.join(", "))
            }
        };
        format!("{where_from}: {example}{reason}")
    }
}

impl Marked {
    fn points(&self) -> usize {
        self.experiments.iter().map(|(_, spread)| spread.points).sum()
    }
}

/// Longer lists are too long for a terminal.
const LINES_MAX: usize = 8;
