//! Typed access to the values of an axis.

use std::marker::PhantomData;

use measure::record::Axes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::row::AxisRow;

/// An axis with values of the type `T`: an [`Option`] if the axis has a word for no value.
pub struct Key<T> {
    /// The row of the axis.
    pub row: &'static AxisRow,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> Key<T> {
    pub(super) const fn new(row: &'static AxisRow) -> Self {
        Self { row, of: PhantomData }
    }
}

impl<T: DeserializeOwned + Serialize> Key<T> {
    /// The axis with these values, in this order.
    pub fn values(self, values: impl IntoIterator<Item = T>) -> Axis {
        Axis { row: self.row, values: values.into_iter().map(|value| self.encode(value)).collect() }
    }

    /// The axis with this value.
    pub fn value(self, value: T) -> Axis {
        self.values([value])
    }

    /// The value of a point; none if the point does not have the axis.
    pub fn at(self, point: &Axes) -> Option<T> {
        point.get(self.row.name).map(|value| self.decode(value))
    }

    fn encode(self, value: T) -> Value {
        match serde_json::to_value(value).expect("values of axes are plain scalars") {
            Value::Null => {
                self.row.none.expect("an axis whose values are options has a word for none").into()
            }
            value => value,
        }
    }

    fn decode(self, value: &Value) -> T {
        let is_none = self.row.none.is_some_and(|none| value == none);
        let value = if is_none { Value::Null } else { value.clone() };
        serde_json::from_value(value).expect("an axis holds only values of its own kind")
    }
}

/// An axis of an experiment, with its values in the order in which they are measured.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The row of the axis.
    pub row: &'static AxisRow,
    values: Vec<Value>,
}

impl PartialEq for Axis {
    fn eq(&self, other: &Self) -> bool {
        self.row.name == other.row.name && self.values == other.values
    }
}

impl Axis {
    /// The axis with values that [`AxisRow::read`] has read.
    pub fn read(row: &'static AxisRow, values: Vec<Value>) -> Self {
        Self { row, values }
    }

    /// Its values as a record shows them.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Its values that are numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.values.iter().filter_map(Value::as_u64)
    }

    /// Its values as the type of `key`, which must be the key of its row.
    pub(super) fn get<T: DeserializeOwned + Serialize>(&self, key: Key<T>) -> Vec<T> {
        self.values.iter().map(|value| key.decode(value)).collect()
    }
}
