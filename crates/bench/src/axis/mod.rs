//! The axes of experiments: the settings that may vary, and their values.
//!
//! An axis is a row of one table. The row has the axis's name in plans and records, its values and
//! how they are written, the endpoints that it is for, its flags, its bounds, its place in the
//! order of points and in tables, and its help. Plans, the command line, checks and tables read the
//! row; a new axis is a new row. Code sets and reads values through the typed [`Key`] of the axis:
//!
//! ```
//! use bench::axis::{self, AxisList};
//!
//! let mut axes = AxisList::default();
//! axes.put(axis::SIZE_BYTES.values([64, 4096]));
//! axes.put(axis::MTU_BYTES.value(None));
//! assert_eq!(axes.get(axis::SIZE_BYTES), [64, 4096]);
//! assert_eq!(axes.find("mtu_bytes").unwrap().values(), ["active"]);
//! ```
//!
//! This module does not depend on plans, on ranks or on the places of errors.

mod key;
mod kind;
mod list;
mod read;
mod row;
mod table;
#[cfg(test)]
mod tests;

use measure::record::Axes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use key::{Axis, Key};
pub use kind::{Fault, Kind};
pub use list::AxisList;
pub use row::{AxisRow, Flag, Most, Sets, Shown, Walk};
pub use table::*;

/// The axis with a name.
pub fn find(name: &str) -> Option<&'static AxisRow> {
    ROWS.iter().copied().find(|row| row.name == name)
}

/// Reads the axes of a point from another process. Each axis must have one valid value.
pub(crate) fn of_point<'de, D: Deserializer<'de>>(from: D) -> Result<Axes, D::Error> {
    let axes = Axes::deserialize(from)?;
    let is_wrong = |(name, value): &(&String, &Value)| !find(name).is_some_and(|row| row.has(value));
    match axes.iter().find(is_wrong) {
        Some((name, value)) => Err(D::Error::custom(format!("{value} is not a value of the axis {name:?}"))),
        None => Ok(axes),
    }
}
