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

/// What a rank sets up a point with.
pub(crate) struct Site<'a> {
    pub(crate) spec: &'a PointSpec,
    pub(crate) topology: &'a Topology,
    pub(crate) rank: u32,
    pub(crate) rank_clock: &'a RankClock,
    pub(crate) sockets: &'a SocketOptions,
    pub(crate) device: &'a mut RankDevice,
    pub(crate) mpi: &'a mut RankMpi,
    /// Tells the user a line while the point is measured.
    pub(crate) tell: fn(&str),
}

/// A kind of endpoint, by the type of its endpoints that are not connected yet.
pub(crate) trait EndpointKind: UnconnectedEndpoint + 'static {
    /// The carriers that it serves.
    const CARRIERS: &'static [Carrier];

    /// Refuses what a plan must not ask of it, with every default filled in.
    ///
    /// # Errors
    /// What is asked, why that cannot be, and what to do.
    fn check(_check: &Check<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Arranges what all parts of the point share.
    ///
    /// # Errors
    /// Why the point cannot be measured here.
    fn arrange(_site: &mut Site<'_>) -> Result<(), PointError> {
        Ok(())
    }

    /// Sets up a part of the point.
    ///
    /// # Errors
    /// What the system or the device says.
    fn prepare(part: &PartSpec, site: &mut Site<'_>) -> Result<Self, Error>;
}

/// A rank's endpoints for a point, or another program in their place, before they are connected.
pub(crate) trait PreparedEndpoints {
    /// What the other ranks, so many with this one, have to know.
    ///
    /// # Errors
    /// When that has no form in which it can travel.
    fn prepared(&self, ranks: u32) -> Result<Prepared, PointError>;

    /// Connects them with the endpoints of the other ranks.
    ///
    /// # Errors
    /// Why they cannot be connected.
    fn connect(self: Box<Self>, ranks: &[Neighbour]) -> Result<Box<dyn ConnectedEndpoints>, PointError>;
}

/// A rank's endpoints for a point, connected with those of the other ranks.
pub(crate) trait ConnectedEndpoints {
    /// Measures the rank's share of the point, for which so much time is left.
    ///
    /// # Errors
    /// What the endpoints say, and what the point's limits are.
    fn measure(
        &mut self,
        spec: &PointSpec,
        rank: u32,
        left: Duration,
        rank_clock: &RankClock,
    ) -> Result<Outcome, PointError>;
}
