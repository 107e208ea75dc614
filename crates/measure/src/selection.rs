//! Which points a plan means, by their experiment and the values of their axes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::record::Axes;

/// Points with these values of their axes; a list stands for each of its values. Two keys are no
/// axes: `experiment` is the name of an experiment, `quantity` the number that is read from the
/// points.
pub type Selection = BTreeMap<String, Value>;

/// The key of a selection that is the name of an experiment.
pub const EXPERIMENT: &str = "experiment";
/// The key of a selection that is the path of a quantity.
pub const QUANTITY: &str = "quantity";

/// Whether a point belongs to one of `experiments` and its axes have all the values.
pub fn picks<'a>(
    experiments: &[String],
    values: impl IntoIterator<Item = (&'a String, &'a Value)>,
    experiment: &str,
    axes: &Axes,
) -> bool {
    let is_one_of = |own: Option<&Value>, asked: &Value| match asked {
        Value::Array(any) => any.iter().any(|value| own == Some(value)),
        value => own == Some(value),
    };
    experiments.iter().any(|known| known == experiment)
        && values.into_iter().all(|(name, asked)| match name.as_str() {
            EXPERIMENT => is_one_of(Some(&Value::from(experiment)), asked),
            QUANTITY => true,
            axis => is_one_of(axes.get(axis), asked),
        })
}

/// The values of some axes of a point, of which one may be its experiment; null for an axis that it
/// does not have.
pub fn values(names: &[String], experiment: &str, axes: &Axes) -> Vec<Value> {
    let value = |name: &String| match name.as_str() {
        EXPERIMENT => Value::from(experiment),
        axis => axes.get(axis).cloned().unwrap_or_default(),
    };
    names.iter().map(value).collect()
}

/// The first axis in which two points differ besides their repetition, or `experiment`. Numbers of
/// such points are never combined into one.
pub fn difference(a: (&str, &Axes), b: (&str, &Axes)) -> Option<String> {
    let mut axes = a.1.keys().chain(b.1.keys());
    let axis = axes.find(|name| a.1.get(*name) != b.1.get(*name)).cloned();
    axis.or_else(|| (a.0 != b.0).then(|| EXPERIMENT.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_picked(values: Value) -> bool {
        let values: Selection = serde_json::from_value(values).unwrap();
        let axes: Axes = serde_json::from_value(json!({ "endpoint": "mpi", "size_bytes": 64 })).unwrap();
        picks(&["one".to_owned(), "other".to_owned()], &values, "one", &axes)
    }

    #[test]
    fn a_point_has_every_value_or_one_of_each_list() {
        assert!(is_picked(json!({})));
        assert!(is_picked(json!({ "endpoint": "mpi", "size_bytes": 64 })));
        assert!(is_picked(json!({ "endpoint": ["verbs", "mpi"], "experiment": "one" })));
        assert!(is_picked(json!({ "quantity": "latency.max_ns" })), "which says nothing of the point");
        assert!(!is_picked(json!({ "endpoint": "mpi", "size_bytes": 4 })));
        assert!(!is_picked(json!({ "endpoint": ["verbs", "tcp"] })));
        assert!(!is_picked(json!({ "endpoint": [] })));
        assert!(!is_picked(json!({ "operation": "send" })), "an axis that it does not have");
        assert!(!is_picked(json!({ "experiment": "other" })));
    }
}
