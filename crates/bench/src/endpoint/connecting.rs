//! How an endpoint is set up: each rank sets up its half, the ranks exchange the addresses of their
//! halves, and the halves are connected.

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

/// What another rank has told this one about a part of the point.
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo<A, P> {
    /// Its host and CPU.
    pub(crate) info: RankInfo,
    /// Its address; `None` if it has no endpoint in this part.
    pub(crate) address: Option<A>,
    /// Its parameters for this rank alone; `None` if the two ranks do not connect.
    pub(crate) params: Option<P>,
}

/// What all ranks have told about one kind of half, in rank order, this rank included.
pub(crate) type Others<H> =
    [PeerInfo<<H as UnconnectedEndpoint>::Address, <H as UnconnectedEndpoint>::PeerParams>];

/// Returns whether two ranks are on one host.
pub(crate) fn are_beside<A, P>(ranks: &[PeerInfo<A, P>], one: u32, other: u32) -> bool {
    let info = |rank: u32| ranks.get(rank as usize).map(|told| &told.info);
    info(one).zip(info(other)).is_some_and(|(one, other)| one.is_beside(other))
}

/// What a rank tells the others: to all ranks, and to each rank that connects to it.
pub(crate) struct Offer<A, P> {
    /// The address, for every rank of the point.
    pub(crate) address: A,
    /// The parameters for each rank that connects to it, by rank; `None` for the others.
    params: Vec<Option<P>>,
}

/// A rank that this one connects to: its address and parameters, and this rank's parameters for it.
pub(crate) struct Peer<'a, A, P> {
    pub(crate) address: &'a A,
    pub(crate) params: &'a P,
    pub(crate) own_params: &'a P,
}

impl<A, P> Offer<A, P> {
    /// Creates an offer to `ranks` ranks, without parameters for any of them.
    pub(crate) fn new(address: A, ranks: u32) -> Self {
        Self { address, params: (0..ranks).map(|_| None).collect() }
    }

    /// Sets the parameters for a rank.
    pub(crate) fn give(&mut self, rank: u32, params: P) {
        self.params[rank as usize] = Some(params);
    }

    /// Returns the parameters for a rank.
    pub(crate) fn params(&self, rank: u32) -> Option<&P> {
        self.params.get(rank as usize)?.as_ref()
    }

    /// Returns the peer `rank` of the rank `own`, which makes this offer, from what all ranks have
    /// told.
    ///
    /// # Errors
    /// [`Error::PeerAddress`] if one of the two has no parameters for the other.
    pub(crate) fn peer<'a>(
        &'a self,
        ranks: &'a [PeerInfo<A, P>],
        own: u32,
        rank: u32,
    ) -> Result<Peer<'a, A, P>, Error> {
        let told = ranks.get(rank as usize).and_then(|told| told.address.as_ref().zip(told.params.as_ref()));
        let ((address, params), own_params) = told.zip(self.params(rank)).ok_or_else(|| {
            Error::PeerAddress { reason: format!("rank {rank} has no endpoint that connects to rank {own}") }
        })?;
        Ok(Peer { address, params, own_params })
    }
}

/// An endpoint that is set up as far as possible without the other ranks.
pub(crate) trait UnconnectedEndpoint: Sized {
    /// The endpoint once it is connected.
    type Connected: DrivenEndpoint;
    /// The part of its address that every rank of the point gets.
    type Address: DeserializeOwned + Serialize;
    /// The parameters that only the connecting rank gets.
    type PeerParams: DeserializeOwned + Serialize;

    /// Returns what the other ranks need to know.
    fn offer(&self) -> &Offer<Self::Address, Self::PeerParams>;

    /// Connects it with the endpoints of the other ranks. With more ranks than CPUs (`yields_cpu`),
    /// the endpoint yields the CPU whenever it waits.
    ///
    /// # Errors
    /// Why the endpoints cannot be connected; [`Error::Impossible`] if the other ranks cannot be
    /// reached as the point requires.
    fn connect(self, others: &Others<Self>, yields_cpu: bool) -> Result<Self::Connected, Error>;
}

/// An endpoint as a worker drives it.
pub(crate) trait DrivenEndpoint: Endpoint {
    /// The capabilities of this kind of endpoint.
    const CAPABILITIES: Capabilities;

    /// Lets a visitor use its verbs calls, if it has [`Capabilities::VERBS_CALLS`].
    fn visit_calls<V: CallsVisitor>(&mut self, _visitor: V) -> Option<V::Done> {
        None
    }

    /// Lets a visitor use its collectives, if it has [`Capabilities::COLLECTIVES`].
    fn visit_collectives<V: CollectivesVisitor>(&mut self, _visitor: V) -> Option<V::Done> {
        None
    }

    /// Starts the point's time limit, in seconds. If the endpoint sleeps, this thread's sleeps end
    /// at the limit, until [`stop`](Self::stop).
    ///
    /// # Errors
    /// If the sleeps cannot be limited.
    fn start(&mut self, timeout_s: f64) -> Result<(), Error>;

    /// Stops the timer that ends this thread's sleeps.
    fn stop(&mut self);

    /// Returns the interfaces that its messages pass through, as far as the host counts them.
    fn ways(&self) -> Ways {
        Ways::default()
    }

    /// Returns the name of the library that carries its messages, as the library reports it.
    fn library(&self) -> Option<String> {
        None
    }

    /// Returns the transport that the library used, if the library chooses it and it is known.
    ///
    /// # Errors
    /// If the point requires another transport.
    fn transport(&self) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Returns its counters, by their names in the record.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}
