//! The placement of the ranks of a point, for any endpoint: which ranks run on the same CPUs, read
//! the same clock, and begin together.

mod location;

use measure::clock::Domain;
use measure::record::Oversubscribed;
use serde::{Deserialize, Serialize};

use self::location::HostLocation;
use crate::Error;
use crate::barrier::Barrier;
use crate::rank_clock::RankClock;
use crate::shared::{self, Shared};
use crate::topology::Topology;

/// What a rank tells all other ranks of a point.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankInfo {
    /// Its host and its CPUs.
    location: HostLocation,
    /// The clock that it reads.
    clock: Domain,
    /// The memory of the barrier that it may lead.
    meeting: Option<shared::Handle>,
}

impl RankInfo {
    /// Whether it runs on the same host; `false` if that is not known.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.location.is_beside(&other.location)
    }
}

/// A rank before the ranks of its point have exchanged their [`RankInfo`].
pub(crate) struct LocalPlacement {
    info: RankInfo,
    /// The memory of the barrier that it may lead.
    meeting: Option<Shared>,
    rank: u32,
}

/// A rank after all ranks of its point have exchanged their [`RankInfo`].
pub(crate) struct Placement {
    /// The barrier of the ranks of this host that begin together, if this rank is one of them.
    pub(crate) barrier: Option<Barrier>,
    /// The ranks of this host and their CPUs, if there are more ranks than CPUs, so that ranks wait
    /// for a CPU.
    pub(crate) oversubscribed: Option<Oversubscribed>,
    /// Whether its partners read the same clock.
    pub(crate) has_one_clock: bool,
}

impl LocalPlacement {
    /// The placement of this rank, before it knows the other ranks of its point.
    ///
    /// # Errors
    /// [`Error::Barrier`] if the memory of the barrier cannot be made.
    pub(crate) fn new(topology: &Topology, rank: u32, rank_clock: &RankClock) -> Result<Self, Error> {
        let lines = Barrier::lines(topology.together.len());
        let meeting = topology.together.contains(&rank).then(|| Shared::offer("rdmascope-barrier", lines));
        let meeting = meeting.transpose().map_err(no_barrier)?;
        let info = RankInfo {
            location: HostLocation::own(Domain::of(&rank_clock.clock).boot_id),
            clock: rank_clock.domain.clone(),
            meeting: meeting.as_ref().map(Shared::handle).transpose().map_err(no_barrier)?,
        };
        Ok(Self { info, meeting, rank })
    }

    /// What it tells the other ranks.
    pub(crate) fn info(&self) -> &RankInfo {
        &self.info
    }

    /// Reads the [`RankInfo`] of all ranks of the point, in rank order.
    ///
    /// # Errors
    /// [`Error::Barrier`] if the memory of another rank of this host cannot be opened.
    pub(crate) fn hear(mut self, topology: &Topology, ranks: &[RankInfo]) -> Result<Placement, Error> {
        let partners = topology.partners(self.rank).iter().filter_map(|rank| ranks.get(*rank as usize));
        let has_one_clock = partners.into_iter().all(|partner| self.info.clock.shares_with(&partner.clock));
        let oversubscribed = self.oversubscribed(ranks);
        Ok(Placement { barrier: self.barrier(topology, ranks)?, oversubscribed, has_one_clock })
    }

    /// The barrier of the ranks of this host that begin together. The first of these ranks leads
    /// it.
    fn barrier(&mut self, topology: &Topology, ranks: &[RankInfo]) -> Result<Option<Barrier>, Error> {
        let Some(own) = self.meeting.take() else { return Ok(None) };
        let meets = |(rank, other): (u32, &RankInfo)| {
            let is_here = rank == self.rank || other.is_beside(&self.info);
            other.meeting.filter(|_| is_here).map(|handle| (rank, handle))
        };
        let members: Vec<_> = (0..).zip(ranks).filter_map(meets).collect();
        let index = members.iter().position(|(rank, _)| *rank == self.rank).unwrap_or(0);
        let memory = match members.first() {
            Some((leader, handle)) if *leader != self.rank => {
                Shared::open(handle, Barrier::lines(topology.together.len())).map_err(no_barrier)?
            }
            _ => own,
        };
        Ok(Some(Barrier::new(memory, members.len().max(1), index)))
    }

    /// The ranks of this host and their CPUs, if the CPUs that this rank may use have more ranks
    /// than CPUs.
    fn oversubscribed(&self, ranks: &[RankInfo]) -> Option<Oversubscribed> {
        let own = &self.info.location;
        let all = || ranks.iter().map(|other| &other.location);
        let within = all().filter(|other| other.is_within(own)).count();
        let here = HostLocation::together(all().filter(|other| other.is_beside(own)));
        (within > own.cpus().max(1) as usize).then_some(here)
    }
}

fn no_barrier(reason: String) -> Error {
    Error::Barrier { reason }
}
