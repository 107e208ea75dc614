//! What the ranks of a point are to each other, whatever carries their messages: which of them run
//! on the same CPUs, read the same clock, and begin together.

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

/// What a rank says of itself to all others.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankInfo {
    /// Where it runs.
    location: HostLocation,
    /// Which clock it reads.
    clock: Domain,
    /// Memory of the barrier that it would lead.
    meeting: Option<shared::Handle>,
}

impl RankInfo {
    /// Whether it runs on the same host; false where that is not known.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.location.is_beside(&other.location)
    }
}

/// What a rank knows of itself alone, before the ranks of its point exchange their [`RankInfo`].
pub(crate) struct LocalPlacement {
    info: RankInfo,
    /// Memory of the barrier that it would lead.
    meeting: Option<Shared>,
    rank: u32,
}

/// What a rank knows of the ranks of its point, after all have exchanged their [`RankInfo`].
pub(crate) struct Placement {
    /// Where ranks of this host begin together, and this is one of them.
    pub(crate) barrier: Option<Barrier>,
    /// The ranks of this host and their CPUs, where fewer CPUs than ranks make one rank stop for
    /// another to go on.
    pub(crate) oversubscribed: Option<Oversubscribed>,
    /// Whether those that it talks to read the same clock.
    pub(crate) has_one_clock: bool,
}

impl LocalPlacement {
    /// This rank, before it hears of the others of its point.
    ///
    /// # Errors
    /// [`Error::Barrier`] when there is no memory to meet in.
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

    /// What it says of itself.
    pub(crate) fn info(&self) -> &RankInfo {
        &self.info
    }

    /// Hears what all ranks of the point say of themselves, in rank order.
    ///
    /// # Errors
    /// [`Error::Barrier`] when ranks of this host share no memory.
    pub(crate) fn hear(mut self, topology: &Topology, ranks: &[RankInfo]) -> Result<Placement, Error> {
        let partners = topology.partners(self.rank).iter().filter_map(|rank| ranks.get(*rank as usize));
        let has_one_clock = partners.into_iter().all(|partner| self.info.clock.shares_with(&partner.clock));
        let oversubscribed = self.oversubscribed(ranks);
        Ok(Placement { barrier: self.barrier(topology, ranks)?, oversubscribed, has_one_clock })
    }

    /// The barrier of the ranks of this host that begin together, which the first of them leads.
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

    /// The ranks of this host and their CPUs, where more ranks than there are CPUs run on those
    /// that this one may use.
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
