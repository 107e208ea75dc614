//! The axes of an experiment that have more than one value, which distinguish its points.

use std::collections::{BTreeMap, BTreeSet};

use measure::record::{Axes, Point};

/// The axes that vary among the points so far.
#[derive(Debug, Default)]
pub(crate) struct Varying {
    experiments: BTreeMap<String, Experiment>,
}

#[derive(Debug)]
struct Experiment {
    of_first: Axes,
    varying: BTreeSet<String>,
}

impl Varying {
    /// Adds a point.
    pub(crate) fn see(&mut self, point: &Point) {
        let known = self.experiments.entry(point.experiment.clone());
        let experiment =
            known.or_insert_with(|| Experiment { of_first: point.axes.clone(), varying: BTreeSet::new() });
        let differing =
            point.axes.iter().filter(|(name, value)| experiment.of_first.get(*name) != Some(value));
        experiment.varying.extend(differing.map(|(name, _)| name.clone()));
    }

    /// Whether an axis of an experiment varies.
    pub(crate) fn has(&self, experiment: &str, axis: &str) -> bool {
        self.experiments.get(experiment).is_some_and(|experiment| experiment.varying.contains(axis))
    }
}
