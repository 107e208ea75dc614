//! The axes of an experiment that have more than one value, which distinguish its points.

use std::collections::{BTreeMap, BTreeSet};

use measure::record::{Axes, Point};
use serde_json::Value;

/// The axes that vary among the points so far.
#[derive(Debug, Default)]
pub(crate) struct Varying {
    experiments: BTreeMap<String, Experiment>,
}

#[derive(Debug, Default)]
struct Experiment {
    of_first: Option<Axes>,
    varying: BTreeSet<String>,
}

impl Varying {
    /// The axes that vary in a resolved plan. Names that are made of them are the same if the run
    /// ends early.
    pub(crate) fn of_plan(plan: &Value) -> Self {
        let mut parts: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for part in plan["experiments"].as_array().into_iter().flatten() {
            // Each endpoint of an experiment is a part with the name of the experiment.
            parts
                .entry(part["name"].as_str().unwrap_or_default().to_owned())
                .or_default()
                .push(&part["axes"]);
        }
        let experiment = |parts: Vec<&Value>| {
            let axes = parts.iter().filter_map(|axes| axes.as_object()).flat_map(|axes| axes.keys());
            let varying = axes.filter(|axis| varies(&parts, axis)).cloned().collect();
            Experiment { of_first: None, varying }
        };
        let experiments = parts.into_iter().map(|(name, parts)| (name, experiment(parts))).collect();
        Self { experiments }
    }

    /// Adds a point.
    pub(crate) fn see(&mut self, point: &Point) {
        let experiment = self.experiments.entry(point.experiment.clone()).or_default();
        let of_first = experiment.of_first.get_or_insert_with(|| point.axes.clone());
        let differing = point.axes.iter().filter(|(name, value)| of_first.get(*name) != Some(value));
        experiment.varying.extend(differing.map(|(name, _)| name.clone()));
    }

    /// Whether an axis of an experiment varies.
    pub(crate) fn has(&self, experiment: &str, axis: &str) -> bool {
        self.experiments.get(experiment).is_some_and(|experiment| experiment.varying.contains(axis))
    }
}

/// Whether an axis has several values in the parts of an experiment. A part without it counts as
/// another value.
fn varies(parts: &[&Value], axis: &str) -> bool {
    let values = |axes: &&Value| axes[axis].as_array().cloned().unwrap_or_else(|| vec![Value::Null]);
    let mut all = parts.iter().flat_map(values);
    let first = all.next();
    all.any(|value| Some(value) != first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_says_what_varies_before_a_point_is_measured() {
        let plan = json!({ "experiments": [
            { "name": "lat", "axes": { "service": ["RC"], "size_bytes": [8, 16] } },
            { "name": "sockets", "axes": { "endpoint": ["tcp"], "poll": ["event"], "no_delay": [true] } },
            { "name": "sockets", "axes": { "endpoint": ["udp"], "poll": ["event"] } },
        ] });
        let varying = Varying::of_plan(&plan);
        let found = [("lat", "size_bytes"), ("sockets", "endpoint"), ("sockets", "no_delay")];
        assert!(found.iter().all(|(experiment, axis)| varying.has(experiment, axis)), "{varying:?}");
        assert!(!varying.has("lat", "service") && !varying.has("sockets", "poll"), "{varying:?}");
        assert!(!Varying::of_plan(&Value::Null).has("lat", "service"));
    }
}
