//! What a plan asks of a fan-out beside its messages.

use super::choices::{Mesh, Notify};
use crate::axis::{self, AxisRow};
use crate::point::{Operation, PointSpec};

/// Axes of this pattern that not all have.
pub(super) const AXES: &[&AxisRow] = &[axis::MESH.row, axis::NOTIFY.row, axis::PEERS.row];
/// 1:1, beside which every other n stands.
pub(super) const PEERS: u32 = 1;

/// What a point asks.
pub(super) struct Settings {
    /// The n of 1:n: ranks that the first one talks to.
    pub(super) peers: u32,
    /// Which ranks are connected beside those that talk to each other.
    pub(super) mesh: Mesh,
    /// How it is learnt that bytes have come.
    pub(super) notify: Notify,
}

impl Settings {
    pub(super) fn of(spec: &PointSpec) -> Self {
        // The target of a Write has no completion.
        let is_silent = spec.message.operation == Operation::Write;
        let usual = if is_silent { Notify::Memory } else { Notify::Completion };
        Self {
            peers: axis::PEERS.at(&spec.axes).unwrap_or(PEERS),
            mesh: axis::MESH.at(&spec.axes).unwrap_or(Mesh::Star),
            notify: axis::NOTIFY.at(&spec.axes).flatten().unwrap_or(usual),
        }
    }
}
