//! Set-up: from the memory of a rank, and what the other ranks have told, to an endpoint.

use std::sync::Arc;

use measure::clock::Clock;
use serde::{Deserialize, Serialize};

use super::bell::{self, Bell};
use super::endpoint::ShmemEndpoint;
use super::lane::Lane;
use super::ring::{Emptier, Filler, Shape};
use crate::Error;
use crate::endpoint::connecting::{Offer, Peer, PeerInfo, UnconnectedEndpoint, are_beside};
use crate::endpoint::kind::{EndpointKind, Site};
use crate::point::Carrier;
use crate::shared::{Handle, Shared};
use crate::topology::PartSpec;

/// The memory that a rank has made for the ranks that send to it.
pub(crate) struct Unopened {
    spec: PartSpec,
    rank: u32,
    clock: Clock,
    memory: Arc<Shared>,
    offer: Offer<(), PeerParams>,
}

/// The place of a ring for one other rank.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerParams {
    memory: Handle,
    /// The first line of the ring.
    line: usize,
}

impl Unopened {
    /// Creates the memory for a part of a point.
    pub(crate) fn new(part: &PartSpec, rank: u32, clock: Clock) -> Result<Self, Error> {
        let partners = part.links.partners(rank);
        let each = Shape::of(part).lines();
        let failed = |reason: String| Error::System {
            what: "share memory with the other ranks".to_owned(),
            cause: std::io::Error::other(reason),
        };
        let memory = Shared::offer("rdmascope-shmem", bell::LINES + partners.len() * each).map_err(failed)?;
        let handle = memory.handle().map_err(failed)?;
        let mut offer = Offer::new((), part.links.ranks());
        for (index, partner) in partners.iter().enumerate() {
            offer.give(*partner, PeerParams { memory: handle, line: bell::LINES + index * each });
        }
        Ok(Self { spec: part.clone(), rank, clock, memory: Arc::new(memory), offer })
    }
}

impl EndpointKind for Unopened {
    const CARRIERS: &'static [Carrier] = &[Carrier::Shmem];

    fn prepare(part: &PartSpec, site: &mut Site<'_>) -> Result<Self, Error> {
        Self::new(part, site.rank, site.rank_clock.clock)
    }
}

impl UnconnectedEndpoint for Unopened {
    type Connected = ShmemEndpoint;
    type Address = ();
    type PeerParams = PeerParams;

    fn offer(&self) -> &Offer<(), PeerParams> {
        &self.offer
    }

    fn connect(self, ranks: &[PeerInfo<(), PeerParams>], yields_cpu: bool) -> Result<ShmemEndpoint, Error> {
        let shape = Shape::of(&self.spec);
        let lane = |rank: u32| {
            if !are_beside(ranks, self.rank, rank) {
                let reason = "shared memory connects ranks of the same host only".to_owned();
                return Err(Error::Impossible { reason });
            }
            let Peer { params, own_params, .. } = self.offer.peer(ranks, self.rank, rank)?;
            let theirs = Shared::open(&params.memory, params.line.saturating_add(shape.lines()));
            let theirs = Arc::new(theirs.map_err(|reason| Error::Impossible {
                reason: format!("the memory of another rank cannot be opened here: {reason}"),
            })?);
            let out = Filler::new(&theirs, params.line, shape);
            let into = Emptier::new(&self.memory, own_params.line, shape);
            let bell = self.spec.message.poll.sleeps().then(|| Bell::new(theirs));
            Ok(Lane::new(rank, out, into, bell, shape, self.spec.message.size()))
        };
        let lanes =
            self.spec.links.partners(self.rank).iter().copied().map(lane).collect::<Result<_, Error>>()?;
        let bell = Bell::new(Arc::clone(&self.memory));
        Ok(ShmemEndpoint::new(&self.spec, self.rank, lanes, bell, yields_cpu, self.clock))
    }
}
