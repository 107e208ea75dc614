//! The axes of an experiment.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::key::{Axis, Key};
use super::row::AxisRow;

/// Axes in the order in which they are walked, each at most once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AxisList(Vec<Axis>);

impl AxisList {
    /// Adds an axis, or replaces its values.
    pub fn put(&mut self, axis: Axis) {
        match self.0.iter_mut().find(|known| known.row.name == axis.row.name) {
            Some(known) => *known = axis,
            None => self.0.push(axis),
        }
    }

    /// The values of an axis; empty if the list does not have it.
    pub fn get<T: DeserializeOwned + Serialize>(&self, key: Key<T>) -> Vec<T> {
        self.find(key.row.name).map_or_else(Vec::new, |axis| axis.get(key))
    }

    /// The axis with a name.
    pub fn find(&self, name: &str) -> Option<&Axis> {
        self.0.iter().find(|axis| axis.row.name == name)
    }

    /// The values of an axis that are numbers; empty if the list does not have it.
    pub fn numbers(&self, row: &AxisRow) -> impl Iterator<Item = u64> {
        self.find(row.name).into_iter().flat_map(Axis::numbers)
    }

    /// All axes, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Axis> {
        self.0.iter()
    }

    /// Keeps the axes for which this is true.
    pub fn retain(&mut self, is_kept: impl Fn(&Axis) -> bool) {
        self.0.retain(is_kept);
    }

    /// Sorts the axes by [`AxisRow::walk`]: axes that change slowly come first. Axes of the same
    /// [`Walk`](super::Walk) keep their order.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|axis| axis.row.walk);
    }
}
