//! A kind of endpoint as the worker sees it: which carriers it serves, and how a rank sets it up,
//! connects it and measures with it.
//!
//! Only set-up and the run of a whole point go through a pointer. Within a run, patterns are
//! compiled for each kind.

use std::time::Duration;

use super::connecting::UnconnectedEndpoint;
use crate::Error;
use crate::fault::PointError;
use crate::mpi_endpoint::RankMpi;
use crate::pattern::check::Check;
use crate::point::{Carrier, PointSpec};
use crate::process::message::{Neighbour, Outcome, Prepared};
use crate::rank_clock::RankClock;
use crate::socket_endpoint::SocketOptions;
use crate::topology::{PartSpec, Topology};
use crate::verbs_endpoint::RankDevice;

/// What a rank needs to set up a point.
pub(crate) struct Site<'a> {
    pub(crate) spec: &'a PointSpec,
    pub(crate) topology: &'a Topology,
    pub(crate) rank: u32,
    pub(crate) rank_clock: &'a RankClock,
    pub(crate) sockets: &'a SocketOptions,
    pub(crate) device: &'a mut RankDevice,
    pub(crate) mpi: &'a mut RankMpi,
    /// Prints a line to the user while the point is measured.
    pub(crate) tell: fn(&str),
}

/// A kind of endpoint, identified by the type of its unconnected endpoints.
pub(crate) trait EndpointKind: UnconnectedEndpoint + 'static {
    /// The carriers that it serves.
    const CARRIERS: &'static [Carrier];

    /// Rejects settings of a plan that this kind cannot measure; every default is filled in.
    ///
    /// # Errors
    /// Which setting, why it is not possible, and what to do.
    fn check(_check: &Check<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Sets up what all parts of the point share.
    ///
    /// # Errors
    /// Why the point cannot be measured here.
    fn arrange(_site: &mut Site<'_>) -> Result<(), PointError> {
        Ok(())
    }

    /// Sets up a part of the point.
    ///
    /// # Errors
    /// The error of the system or the device.
    fn prepare(part: &PartSpec, site: &mut Site<'_>) -> Result<Self, Error>;
}

/// A rank's endpoints for a point, or a program in their place, before they are connected.
pub(crate) trait PreparedEndpoints {
    /// Returns what the other ranks need to know; `ranks` includes this one.
    ///
    /// # Errors
    /// If it cannot be serialised.
    fn prepared(&self, ranks: u32) -> Result<Prepared, PointError>;

    /// Connects them with the endpoints of the other ranks.
    ///
    /// # Errors
    /// Why they cannot be connected.
    fn connect(self: Box<Self>, ranks: &[Neighbour]) -> Result<Box<dyn ConnectedEndpoints>, PointError>;
}

/// A rank's endpoints for a point, connected with those of the other ranks.
pub(crate) trait ConnectedEndpoints {
    /// Measures the rank's share of the point, for at most `left`.
    ///
    /// # Errors
    /// The error of an endpoint, or a limit of the point that was reached.
    fn measure(
        &mut self,
        spec: &PointSpec,
        rank: u32,
        left: Duration,
        rank_clock: &RankClock,
    ) -> Result<Outcome, PointError>;
}
