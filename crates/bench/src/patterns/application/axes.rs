//! The axes of a program of somebody else.

use crate::axis::{self, AxisRow};

/// All of them: its points have no messages of this program, and none of the axes of those.
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
