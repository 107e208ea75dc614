//! How an endpoint comes to be: each rank sets up its half, the ranks tell each other where that
//! is, and the halves are connected.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Endpoint;
use super::calls::CallsVisitor;
use super::capabilities::Capabilities;
use super::collectives::CollectivesVisitor;
use crate::Error;
use crate::host_counters::Ways;
use crate::placement::RankInfo;

/// What another rank has said of a part of the point.
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo<A, P> {
    /// Where it runs.
    pub(crate) info: RankInfo,
    /// Where it can be reached; absent where it has nothing to do with this part.
    pub(crate) address: Option<A>,
    /// What it has for this rank alone; absent where the two do not connect.
    pub(crate) params: Option<P>,
}

/// What the other ranks have said of halves of a kind, in rank order and this one among them.
pub(crate) type Others<H> =
    [PeerInfo<<H as UnconnectedEndpoint>::Address, <H as UnconnectedEndpoint>::PeerParams>];

/// Whether two ranks are on one host.
pub(crate) fn are_beside<A, P>(ranks: &[PeerInfo<A, P>], one: u32, other: u32) -> bool {
    let info = |rank: u32| ranks.get(rank as usize).map(|told| &told.info);
    info(one).zip(info(other)).is_some_and(|(one, other)| one.is_beside(other))
}

/// What a rank has for the others: for all, and for each that connects to it.
pub(crate) struct Offer<A, P> {
    /// What every rank of the point may know.
    pub(crate) address: A,
    /// What only the rank needs that connects to it, by rank; absent for those that do not.
    params: Vec<Option<P>>,
}

/// A rank that this one connects with: what that has, and what this one has for it.
pub(crate) struct Peer<'a, A, P> {
    pub(crate) address: &'a A,
    pub(crate) params: &'a P,
    pub(crate) own_params: &'a P,
}

impl<A, P> Offer<A, P> {
    /// An offer to so many ranks, with nothing for any of them alone yet.
    pub(crate) fn new(address: A, ranks: u32) -> Self {
        Self { address, params: (0..ranks).map(|_| None).collect() }
    }

    /// Gives a rank what it needs to connect.
    pub(crate) fn give(&mut self, rank: u32, params: P) {
        self.params[rank as usize] = Some(params);
    }

    /// What a rank has to know that connects to this one.
    pub(crate) fn params(&self, rank: u32) -> Option<&P> {
        self.params.get(rank as usize)?.as_ref()
    }

    /// The peer `rank` of the rank `own`, which makes this offer, from what all ranks have told.
    ///
    /// # Errors
    /// [`Error::PeerAddress`] where one of the two has nothing for the other.
    pub(crate) fn peer<'a>(
        &'a self,
        ranks: &'a [PeerInfo<A, P>],
        own: u32,
        rank: u32,
    ) -> Result<Peer<'a, A, P>, Error> {
        let told = ranks.get(rank as usize).and_then(|told| told.address.as_ref().zip(told.params.as_ref()));
        let ((address, params), own_params) = told.zip(self.params(rank)).ok_or_else(|| {
            Error::PeerAddress { reason: format!("rank {rank} has nothing that connects to rank {own}") }
        })?;
        Ok(Peer { address, params, own_params })
    }
}

/// An endpoint that is set up as far as that goes without the other ranks.
pub(crate) trait UnconnectedEndpoint: Sized {
    /// What becomes of it.
    type Connected: DrivenEndpoint;
    /// What every rank of the point may know of it.
    type Address: DeserializeOwned + Serialize;
    /// What only the rank needs that connects to it.
    type PeerParams: DeserializeOwned + Serialize;

    /// What the other ranks have to know of it.
    fn offer(&self) -> &Offer<Self::Address, Self::PeerParams>;

    /// Connects it with those of the other ranks. Where more ranks run than there are CPUs, it
    /// gives way to them whenever it waits.
    ///
    /// # Errors
    /// Why they cannot be connected; [`Error::Impossible`] where they cannot be reached in the way
    /// of the point.
    fn connect(self, others: &Others<Self>, yields_cpu: bool) -> Result<Self::Connected, Error>;
}

/// An endpoint as a worker drives it.
pub(crate) trait DrivenEndpoint: Endpoint {
    /// What endpoints of its kind can do.
    const CAPABILITIES: Capabilities;

    /// Has something done with its calls by themselves, where it has [`Capabilities::VERBS_CALLS`].
    fn visit_calls<V: CallsVisitor>(&mut self, _visitor: V) -> Option<V::Done> {
        None
    }

    /// Has something done with all ranks together, where it has [`Capabilities::COLLECTIVES`].
    fn visit_collectives<V: CollectivesVisitor>(&mut self, _visitor: V) -> Option<V::Done> {
        None
    }

    /// Starts the point's time limit, in seconds. Where it sleeps, this thread's sleeps end at the
    /// limit, until it is stopped.
    ///
    /// # Errors
    /// When sleeps cannot be limited.
    fn start(&mut self, timeout_s: f64) -> Result<(), Error>;

    /// Stops what ends this thread's sleeps.
    fn stop(&mut self);

    /// Where its messages go through, as far as the host counts it.
    fn ways(&self) -> Ways {
        Ways::default()
    }

    /// The library that carries its messages, as that calls itself.
    fn library(&self) -> Option<String> {
        None
    }

    /// What that library has carried them over, as far as it is known, where the library chooses.
    ///
    /// # Errors
    /// Where that is not what the point asks for.
    fn transport(&self) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// What it has counted, by names for the record.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}
