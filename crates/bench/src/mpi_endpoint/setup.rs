//! Set-up: from a rank of MPI, and what the other ranks have told, to an endpoint.

use measure::clock::Clock;

use super::carried::Carried;
use super::check;
use super::endpoint::MpiEndpoint;
use super::rank::{Context, Identity};
use crate::Error;
use crate::axis;
use crate::endpoint::connecting::{Offer, PeerInfo, UnconnectedEndpoint};
use crate::endpoint::kind::{EndpointKind, Site};
use crate::fault::PointError;
use crate::pattern::check::Check;
use crate::point::{Carrier, MpiCall, MpiTransport};
use crate::topology::PartSpec;

/// A rank that is not connected to the others yet.
pub(crate) struct Unconnected {
    spec: PartSpec,
    rank: u32,
    clock: Clock,
    context: Context,
    carried: Carried,
    offer: Offer<Identity, ()>,
}

impl EndpointKind for Unconnected {
    const CARRIERS: &'static [Carrier] = &[Carrier::Mpi];

    fn check(check: &Check<'_>) -> Result<(), Error> {
        check::experiment(check)
    }

    /// Initialises MPI, and creates the communicators of all parts. All ranks do so at the same
    /// time, also ranks that do not take part in some part.
    fn arrange(site: &mut Site<'_>) -> Result<(), PointError> {
        site.mpi.identity(site.topology.ranks)?;
        site.mpi.prepare_contexts(site.topology.parts.len())?;
        Ok(())
    }

    fn prepare(spec: &PartSpec, site: &mut Site<'_>) -> Result<Self, Error> {
        let identity = site.mpi.identity(site.topology.ranks)?;
        let context = site.mpi.context(spec.part)?;
        let asked = axis::MPI_TRANSPORT.at(&site.spec.axes).unwrap_or(MpiTransport::Default);
        let carried = site.mpi.carried(&identity, asked);
        let mut offer = Offer::new(identity, spec.links.ranks());
        for partner in spec.links.partners(site.rank) {
            offer.give(*partner, ());
        }
        let clock = site.rank_clock.clock;
        Ok(Self { spec: spec.clone(), rank: site.rank, clock, context, carried, offer })
    }
}

impl UnconnectedEndpoint for Unconnected {
    type Connected = MpiEndpoint;
    type Address = Identity;
    type PeerParams = ();

    fn offer(&self) -> &Offer<Identity, ()> {
        &self.offer
    }

    fn connect(self, ranks: &[PeerInfo<Identity, ()>], yields_cpu: bool) -> Result<MpiEndpoint, Error> {
        let own = &self.offer.address;
        let settings = self.spec.message.mpi;
        let is_blocking = settings.call == MpiCall::Blocking || settings.operation.is_one_sided();
        let waits_in_library = is_blocking || self.spec.joint.is_some();
        if yields_cpu && waits_in_library && !settings.may_oversubscribe && !yields(&own.library) {
            let reason = format!(
                "{} keeps the CPU while it waits, so ranks that share a CPU wait for milliseconds: start fewer ranks, or set \
                 mpi_oversubscribe to measure that",
                own.library
            );
            return Err(Error::Impossible { reason });
        }
        let peers = self.spec.links.partners(self.rank).iter().map(|partner| {
            let peer = self.offer.peer(ranks, self.rank, *partner)?;
            match peer.address.library == own.library {
                true => Ok(peer.address.rank),
                false => Err(Error::Mpi {
                    reason: format!(
                        "rank {} has {} and rank {partner} has {}: name one library with --mpi-library",
                        self.rank, own.library, peer.address.library
                    ),
                }),
            }
        });
        let peers = peers.collect::<Result<Vec<_>, _>>()?;
        MpiEndpoint::new(&self.spec, self.context, self.carried, &peers, yields_cpu, self.clock)
    }
}

/// Returns whether the blocking calls of a library yield the CPU to a rank that shares it.
fn yields(library: &str) -> bool {
    library.starts_with("Open MPI")
}
