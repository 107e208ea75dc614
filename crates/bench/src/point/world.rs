//! The ranks that a launcher of MPI starts for a point.

use measure::record::Axes;

use crate::axis;
use crate::mpi_endpoint::choices::{MpiMap, MpiTransport};
use crate::mpi_endpoint::transports;

/// What ranks are started with: points that have this in common are measured by the same ones.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct World {
    /// How many there are.
    pub ranks: u32,
    /// Where they are placed.
    pub map: MpiMap,
    /// What MPI is told to carry messages over.
    pub transport: MpiTransport,
}

impl World {
    /// So many ranks of a point with these axes, where MPI carries its messages.
    pub(crate) fn of(ranks: u32, axes: &Axes) -> Self {
        Self {
            ranks,
            map: axis::MPI_MAP.at(axes).unwrap_or(MpiMap::Launcher),
            transport: axis::MPI_TRANSPORT.at(axes).unwrap_or(MpiTransport::Default),
        }
    }

    /// The variables of the environment that they are started with.
    pub(crate) fn variables(&self) -> &'static [(&'static str, &'static str)] {
        transports::variables(self.transport)
    }
}
