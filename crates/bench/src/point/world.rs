//! The ranks that a launcher of MPI starts for a point.

use measure::record::Axes;
use verbs::LinkModel;

use crate::axis;
use crate::mpi_endpoint::choices::{MpiMap, MpiTransport};

/// What ranks are started with: points that have this in common are measured by the same ones.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct World {
    /// How many there are.
    pub ranks: u32,
    /// Where they are placed.
    pub map: MpiMap,
    /// What MPI is told to carry messages over.
    pub transport: MpiTransport,
    /// What the link of their device is to be like, where MPI takes one: a device reads it when a
    /// rank starts.
    pub link: Option<LinkModel>,
    /// Which launch of an experiment it is, where that asks for several.
    pub launch: Option<u32>,
}

impl World {
    /// So many ranks of a point with these axes, where MPI carries its messages over such a link.
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
