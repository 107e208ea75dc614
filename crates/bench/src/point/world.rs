//! The ranks that a launcher of MPI starts for a point.

use measure::record::Axes;
use verbs::LinkModel;

use crate::axis;
use crate::mpi_endpoint::choices::{MpiMap, MpiTransport};

/// What a launcher starts ranks with. Points with the same world are measured by the same ranks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct World {
    /// The number of ranks.
    pub ranks: u32,
    /// How they are placed on hosts.
    pub map: MpiMap,
    /// The transport that MPI is told to use.
    pub transport: MpiTransport,
    /// The link model of their device, if MPI uses one: the device reads it when a rank starts.
    pub link: Option<LinkModel>,
    /// The launch of the experiment, if it has several.
    pub launch: Option<u32>,
}

impl World {
    /// The world of a point with these axes.
    pub(crate) fn of(ranks: u32, axes: &Axes, link: Option<LinkModel>, launch: Option<u32>) -> Self {
        Self {
            ranks,
            map: axis::MPI_MAP.at(axes).unwrap_or(MpiMap::Launcher),
            transport: axis::MPI_TRANSPORT.at(axes).unwrap_or(MpiTransport::Default),
            link,
            launch,
        }
    }
}
