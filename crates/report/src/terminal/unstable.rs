//! Points whose numbers should not be trusted, each named by what tells it from its neighbours.

use std::collections::{BTreeMap, BTreeSet};

use measure::record::{Axes, Point};

use super::row::repetition;
use super::{axes_text, plain};

/// Points that were marked, until the last has been printed.
#[derive(Debug, Default)]
pub(super) struct Unstable {
    marked: Vec<Marked>,
    experiments: BTreeMap<String, Values>,
}

#[derive(Debug)]
struct Marked {
    experiment: String,
    axes: Axes,
    repetition: String,
    reason: String,
}

/// The axes of an experiment.
#[derive(Debug)]
struct Values {
    of_first: Axes,
    varying: BTreeSet<String>,
}

impl Unstable {
    /// Takes a point in, marked or not: all points of an experiment tell which of its axes vary.
    pub(super) fn see(&mut self, point: &Point) {
        let values = self.experiments.entry(point.experiment.clone()).or_insert_with(|| Values {
            of_first: point.axes.clone(),
            varying: BTreeSet::from(["size_bytes".to_owned()]),
        });
        let differing = point.axes.iter().filter(|(name, value)| values.of_first.get(*name) != Some(value));
        values.varying.extend(differing.map(|(name, _)| name.clone()));
        if let Some(reason) = &point.unstable {
            self.marked.push(Marked {
                experiment: point.experiment.clone(),
                axes: point.axes.clone(),
                repetition: repetition(point),
                reason: plain(reason),
            });
        }
    }

    /// What the marks mean: nothing where there are none.
    pub(super) fn finish(&self) -> String {
        if self.marked.is_empty() {
            return String::new();
        }
        let mut out = "\n ! unstable, do not trust the number:\n".to_owned();
        for marked in self.marked.iter().take(LINES_MAX) {
            out += &format!("   {}\n", self.line(marked));
        }
        if let Some(more @ 1..) = self.marked.len().checked_sub(LINES_MAX) {
            out += &format!("   and {more} more, each with its reason in the record\n");
        }
        out
    }

    fn line(&self, marked: &Marked) -> String {
        let values = self.experiments.get(&marked.experiment);
        let axes = axes_text(&marked.axes, |name| values.is_none_or(|v| v.varying.contains(name)));
        let Marked { experiment, repetition, reason, .. } = marked;
        format!("{} ({axes}){repetition}: {reason}", plain(experiment))
    }
}

/// More lines than this nobody reads on a terminal.
const LINES_MAX: usize = 10;
