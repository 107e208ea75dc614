//! Set-up: from queue pairs, and what the other ranks have told, to an endpoint.

use verbs::{AddressHandle, Connection, DeviceKind, Gid, Init, LinkLayer, QueuePair, ReadyToSend, Route};

use super::address::{Address, PairAddress, PeerInfo, PeerParams, Targets};
use super::buffers::{Buffers, LINE};
use super::endpoint::VerbsEndpoint;
use super::failure::Path;
use super::lane::{Lane, Requests};
use super::managed::Managed;
use super::memory_flags::FlagRange;
use super::numbering::Numbering;
use super::parts::{Held, Messages, Notification, Origin, Others, Parts};
use super::requests::{Destination, to_group};
use super::samples::Samples;
use super::setup::{Unconnected, connection, sends_to_group, shares_queue_pair};
use crate::Error;
use crate::endpoint::connecting::{Offer, Peer, UnconnectedEndpoint};
use crate::point::{Operation, Service};
use crate::topology::{Form, PartSpec};

/// The rank that chooses the multicast group.
const ROOT: usize = 0;

/// A rank that this rank connects to.
struct Neighbour<'a> {
    /// Its index among the neighbours.
    index: usize,
    rank: u32,
    address: &'a Address,
    /// Its parameters for this rank, and the parameters of this rank for it.
    params: &'a PeerParams,
    own_params: &'a PeerParams,
    route: Route,
    /// The address handle for datagrams.
    handle: Option<AddressHandle>,
}

impl UnconnectedEndpoint for Unconnected {
    type Connected = VerbsEndpoint;
    type Address = Address;
    type PeerParams = PeerParams;

    fn offer(&self) -> &Offer<Address, PeerParams> {
        &self.offer
    }

    fn connect(mut self, ranks: &[PeerInfo], yields_cpu: bool) -> Result<VerbsEndpoint, Error> {
        if let Some(reason) = self.refusal(ranks) {
            return Err(Error::Impossible { reason });
        }
        let pairs = std::mem::take(&mut self.pairs);
        let joint = self.joint.take();
        let neighbours = self.neighbours(ranks)?;
        let (lanes, held) = if shares_queue_pair(&self.spec) {
            self.shared_lane(pairs, &neighbours, ranks)?
        } else {
            self.lanes(pairs, &neighbours)?
        };
        let joined = joint.map(|joint| joint.link(|rank| joined_with(&neighbours, rank)));
        let joined = joined.transpose()?;
        let partners = &neighbours[..self.spec.links.partners(self.rank).len()];
        let messages = match (self.spec.usage.form, partners) {
            (Form::Numbered { .. }, [peer]) => {
                Messages::Numbered(Numbering::new(&self.spec, &self.buffers, peer.params)?)
            }
            (Form::Written, _) => Messages::Written(Samples::new(&self.spec, &self.buffers)?),
            _ => Messages::Alike,
        };
        let (notification, watched) = watched(&self.spec, &self.buffers, partners.len());
        let others = Others {
            notification,
            watched,
            yields_cpu,
            routes: partners.iter().map(|peer| peer.route).collect(),
            paths: partners.iter().map(|peer| Path::new(&self.spec, &self.port, peer.address)).collect(),
        };
        let listener = neighbours.first().and_then(|peer| peer.address.manager);
        let managed = self.managed.map(|managed| (managed, listener));
        let context = self.domain.context().clone();
        let parts = Parts { lanes, queues: self.queues, buffers: self.buffers, held, messages, joined };
        let origin = Origin { context, port: self.port, spec: self.spec.clone(), managed };
        Ok(VerbsEndpoint::new(&self.spec, origin, parts, self.clock, others))
    }
}

impl Unconnected {
    /// Returns why the ranks cannot be connected as the point requires, if so.
    fn refusal(&self, ranks: &[PeerInfo]) -> Option<String> {
        if self.spec.message.operation != Operation::Multicast {
            return None;
        }
        if self.port.is.link_layer == LinkLayer::InfiniBand {
            let words =
                "rdmascope cannot yet join a multicast group of InfiniBand, which takes the subnet manager";
            return Some(words.to_owned());
        }
        // rxe_mcast_add() (rxe_mcast.c) joins no IP group, and IP loops back only to members.
        let device = self.domain.context().device().clone();
        let is_deaf = DeviceKind::of(&device, None) == DeviceKind::KernelSoftware;
        let own = ranks.get(self.rank as usize).filter(|_| is_deaf && self.rank as usize != ROOT)?;
        ranks.get(ROOT)?.info.is_beside(&own.info).then(|| {
            let name = device.name();
            format!(
                "a host does not receive its own multicasts through {name}: place the ranks on several hosts"
            )
        })
    }

    /// Returns the ranks that this rank connects to, with the routes to them.
    fn neighbours<'a>(&'a self, ranks: &'a [PeerInfo]) -> Result<Vec<Neighbour<'a>>, Error> {
        let one = |(index, rank): (usize, u32)| {
            let Peer { address, params, own_params } = self.offer.peer(ranks, self.rank, rank)?;
            if params.pairs.len() != own_params.pairs.len() {
                let has = params.pairs.len();
                let needed = own_params.pairs.len();
                let reason = format!("it has {has} queue pairs, but {needed} are needed");
                return Err(Error::PeerAddress { reason });
            }
            let route = self.port.route(address)?;
            let is_datagram = self.spec.message.service == Service::Ud;
            let handle = is_datagram.then(|| self.domain.address_handle(&route)).transpose()?;
            Ok(Neighbour { index, rank, address, params, own_params, route, handle })
        };
        self.spec.links.neighbours(self.rank).into_iter().enumerate().map(one).collect()
    }

    /// Connects separate queue pairs for each rank.
    fn lanes(
        &self,
        pairs: Vec<QueuePair<Init>>,
        neighbours: &[Neighbour<'_>],
    ) -> Result<(Vec<Lane>, Held), Error> {
        let partners = self.spec.links.partners(self.rank).len();
        let mut lanes = Vec::new();
        let mut held = Held::default();
        let mut pairs = pairs.into_iter();
        for peer in neighbours {
            let numbers = peer.own_params.pairs.iter().zip(&peer.params.pairs);
            for (place, ((own, theirs), pair)) in (0..).zip(numbers.zip(&mut pairs)) {
                let id = lanes.len() as u64;
                let connection = self.connection(peer, (own, theirs));
                let (pair, handle) = match &self.managed {
                    None => (pair.ready_to_receive(&connection)?.ready_to_send(&connection)?, None),
                    Some(managed) => self.by_manager(managed, pair, place, peer, &connection, &mut held)?,
                };
                if peer.index < partners {
                    let handle = handle.or_else(|| peer.handle.clone());
                    lanes.push(Lane::new(id, pair, vec![self.requests(peer, theirs, handle)?]));
                } else {
                    held._idle.push(pair);
                }
            }
        }
        Ok((lanes, held))
    }

    /// Connects the queue pair that datagrams to all ranks, or to a group, share.
    fn shared_lane(
        &self,
        pairs: Vec<QueuePair<Init>>,
        neighbours: &[Neighbour<'_>],
        ranks: &[PeerInfo],
    ) -> Result<(Vec<Lane>, Held), Error> {
        let nobody = || Error::PeerAddress { reason: "there is no rank to connect to".to_owned() };
        let (pair, first) = pairs.into_iter().next().zip(neighbours.first()).ok_or_else(nobody)?;
        let connection = self.connection(first, (&first.own_params.pairs[0], &first.params.pairs[0]));
        let mut pair = pair.ready_to_receive(&connection)?.ready_to_send(&connection)?;
        let mut requests = Vec::new();
        if self.spec.message.operation == Operation::Multicast {
            let group = ranks.get(ROOT).and_then(|root| root.address.as_ref()?.group);
            let unnamed = || Error::PeerAddress { reason: "it names no multicast group".to_owned() };
            let group = Gid(group.ok_or_else(unnamed)?);
            if sends_to_group(&self.spec, self.rank) {
                let to = Some(to_group(&self.domain, &self.port, group)?);
                requests.push(self.destination(first, to).requests()?);
            } else {
                pair.join(group, 0)?;
            }
        }
        if requests.is_empty() {
            for peer in &neighbours[..self.spec.links.partners(self.rank).len()] {
                requests.push(self.requests(peer, &peer.params.pairs[0], peer.handle.clone())?);
            }
        }
        Ok((vec![Lane::new(0, pair, requests)], Held::default()))
    }

    fn requests(
        &self,
        peer: &Neighbour<'_>,
        pair: &PairAddress,
        handle: Option<AddressHandle>,
    ) -> Result<Requests, Error> {
        self.destination(peer, handle.map(|handle| (handle, pair.qp_num))).requests()
    }

    fn destination<'a>(&'a self, peer: &Neighbour<'a>, to: Option<(AddressHandle, u32)>) -> Destination<'a> {
        Destination { spec: &self.spec, buffers: &self.buffers, partner: peer.index, params: peer.params, to }
    }

    /// Connects a queue pair by RDMA CM, by its index among the queue pairs of the two ranks. RDMA
    /// CM may know another route for datagrams.
    fn by_manager(
        &self,
        managed: &Managed,
        pair: QueuePair<Init>,
        place: u64,
        peer: &Neighbour<'_>,
        connection: &Connection,
        held: &mut Held,
    ) -> Result<(QueuePair<ReadyToSend>, Option<AddressHandle>), Error> {
        let (pair, link) = managed.connect(pair, place, peer.address.manager, connection)?;
        let handle = link.address_handle(&self.domain)?;
        held._links.push(link);
        Ok((pair, handle))
    }

    /// Returns the connection between a queue pair of this rank and one of a peer.
    fn connection(&self, peer: &Neighbour<'_>, pairs: (&PairAddress, &PairAddress)) -> Connection {
        let own = &self.offer.address;
        let theirs = peer.address;
        Connection {
            responder_reads: own.responder_reads.min(theirs.initiator_reads),
            initiator_reads: own.initiator_reads.min(theirs.responder_reads),
            ..connection(&self.spec, &self.port, pairs.0.psn, pairs.1, peer.route)
        }
    }
}

/// Returns the queue pair to a rank, and its memory for joint operations.
fn joined_with(neighbours: &[Neighbour<'_>], rank: u32) -> Result<(usize, Targets), Error> {
    let peer = neighbours.iter().find(|peer| peer.rank == rank);
    let known = peer.and_then(|peer| Some((peer.index, peer.params.joint?)));
    known.ok_or_else(|| Error::PeerAddress {
        reason: format!("rank {rank} has no memory for joint operations"),
    })
}

/// Returns the bytes that are polled for messages of other ranks.
fn watched(spec: &PartSpec, buffers: &Buffers, partners: usize) -> (Notification, FlagRange) {
    let places = buffers.places;
    match buffers.signals {
        Some(signals) => {
            (Notification::Signal, FlagRange { first: signals.at, stride: LINE, count: partners })
        }
        None if spec.polls_last_byte() => {
            let first = spec.message.size().saturating_sub(1);
            (Notification::Memory, FlagRange { first, stride: places.stride, count: places.count })
        }
        None => (Notification::Completion, FlagRange::default()),
    }
}
