//! The axes of applications.

use crate::axis::{self, AxisRow};

/// All axes of an application. It has none of the axes of messages, because it sends its own.
pub(super) const ONLY: &[&AxisRow] = &[
    axis::APPLICATION.row,
    axis::ENDPOINT.row,
    axis::ENVIRONMENT.row,
    axis::LINK.row,
    axis::MODE.row,
    axis::MPI_MAP.row,
    axis::MPI_OVERSUBSCRIBE.row,
    axis::MPI_TRANSPORT.row,
    axis::RANKS.row,
];
