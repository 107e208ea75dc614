//! The axes of experiments: what may vary, and through which values.
//!
//! An axis is a row of one table, which says everything about it: its name in plans and records,
//! its values and how they are written, the endpoints that it is for, its flags, its bounds, its
//! place in the order of points and in tables, and its help. Plans, the command line, checks and
//! tables read the row; a new axis is a new row. Code sets and reads values by its typed [`Key`]:
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
//! Nothing here knows of plans, ranks or the places of errors.

mod key;
mod kind;
mod list;
mod read;
mod row;
mod table;
#[cfg(test)]
mod tests;

pub use key::{Axis, Key};
pub use kind::{Fault, Kind};
pub use list::AxisList;
pub use row::{AxisRow, Flag, Most, Sets, Shown, Walk};
pub use table::*;

/// The axis of a name.
pub fn find(name: &str) -> Option<&'static AxisRow> {
    ROWS.iter().copied().find(|row| row.name == name)
}
