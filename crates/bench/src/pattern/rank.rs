//! A rank of a point, as its pattern sees it: its endpoints, and its relation to other ranks.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::clock::Clock;

use crate::Error;
use crate::barrier::Barrier;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::{PointError, out_of_order};
use crate::host_counters::Ways;
use crate::placement::Placement;
use crate::point::PointSpec;
use crate::rank_clock::RankClock;
use crate::topology::Part;

/// A rank that is connected with the other ranks of its point.
pub(crate) struct Rank<'a, E> {
    pub(crate) spec: &'a PointSpec,
    pub(crate) rank: u32,
    /// The remaining time of the point.
    pub(crate) left: Duration,
    pub(crate) rank_clock: &'a RankClock,
    pub(crate) endpoints: &'a mut Endpoints<E>,
}

impl<'a, E: DrivenEndpoint> Rank<'a, E> {
    /// The clock that times its messages: that of its endpoints.
    pub(crate) fn clock(&self) -> Clock {
        self.rank_clock.clock
    }

    /// Whether its peers read the same clock.
    pub(crate) fn has_one_clock(&self) -> bool {
        self.endpoints.placement.has_one_clock
    }

    /// Takes the barrier of ranks that start together, if this rank is one of them.
    pub(crate) fn barrier(&mut self) -> Option<Barrier> {
        self.endpoints.placement.barrier.take()
    }

    /// The endpoint of the main part.
    pub(crate) fn main(self) -> Result<&'a mut E, PointError> {
        self.endpoints.parts.get_mut(&Part::MAIN).ok_or_else(|| out_of_order("run"))
    }

    /// The endpoints of two parts; `None` where this rank does not belong to the part.
    pub(crate) fn two(self, one: Part, other: Part) -> [Option<&'a mut E>; 2] {
        let mut found = [None, None];
        for (part, endpoint) in &mut self.endpoints.parts {
            if *part == one {
                found[0] = Some(endpoint);
            } else if *part == other {
                found[1] = Some(endpoint);
            }
        }
        found
    }
}

/// The connected endpoints of a rank: one for each part of the point that it belongs to.
pub(crate) struct Endpoints<E> {
    pub(crate) placement: Placement,
    pub(crate) parts: BTreeMap<Part, E>,
}

impl<E: DrivenEndpoint> Endpoints<E> {
    /// Starts the point's time limit.
    pub(crate) fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        self.parts.values_mut().try_for_each(|endpoint| endpoint.start(timeout_s))
    }

    /// Stops the thread's alarm that ends its sleeps at the time limit.
    pub(crate) fn stop(&mut self) {
        self.parts.values_mut().for_each(E::stop);
    }

    /// The counters of the main part's endpoint.
    pub(crate) fn counters(&self) -> BTreeMap<String, u64> {
        self.parts.get(&Part::MAIN).map(E::counters).unwrap_or_default()
    }

    /// The message library that carries the main part, if one does.
    pub(crate) fn library(&self) -> Option<String> {
        self.parts.get(&Part::MAIN)?.library()
    }

    /// The transport that this library used.
    pub(crate) fn transport(&self) -> Result<Option<String>, Error> {
        self.parts.get(&Part::MAIN).map_or(Ok(None), E::transport)
    }

    /// The devices and interfaces that the messages of all parts pass through.
    pub(crate) fn ways(&self) -> Ways {
        self.parts.values().map(E::ways).fold(Ways::default(), Ways::and)
    }
}
