//! Set-up: from sockets, and what the other ranks have told, to an endpoint.
//!
//! Of two ranks, the one with the higher number connects and first sends its token: other
//! connections are closed.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::io::Errno;
use rustix::net::{SocketAddr, SocketAddrUnix, connect, getpeername, getsockname, sockopt};

use super::callers::{self, Callers};
use super::datagram::{Datagram, DatagramMode};
use super::endpoint::{Parts, SocketEndpoint};
use super::failure::Path;
use super::lane::Lane;
use super::options::{buffers, socket, zero_copy};
use super::peer::{Address, Name, PeerInfo, PeerParams};
use super::setup::{Unconnected, port_of};
use super::stop_and_wait::StopAndWait;
use super::stream::Stream;
use crate::Error;
use crate::endpoint::connecting::{Offer, Peer, UnconnectedEndpoint};
use crate::interfaces::Entry;
use crate::point::Carrier;
use crate::topology::Flow;

/// How long all connections of a rank may take together: a lost SYN is sent again after one second,
/// and then after two more.
const PATIENCE: Duration = Duration::from_secs(10);

/// A rank that this rank connects to.
struct Neighbour<'a> {
    rank: u32,
    /// Its index among the neighbours.
    index: usize,
    params: &'a PeerParams,
    own_params: &'a PeerParams,
    /// The addresses of this rank and of the neighbour, if the carrier has addresses.
    route: Option<(Entry, Entry)>,
}

impl UnconnectedEndpoint for Unconnected {
    type Connected = SocketEndpoint;
    type Address = Address;
    type PeerParams = PeerParams;

    fn offer(&self) -> &Offer<Address, PeerParams> {
        &self.offer
    }

    fn connect(mut self, ranks: &[PeerInfo], yields_cpu: bool) -> Result<SocketEndpoint, Error> {
        let bound = std::mem::take(&mut self.bound);
        let neighbours = self.neighbours(ranks)?;
        let deadline = Deadline::after(PATIENCE);
        let lanes = self.spec.message.socket.streams as usize;
        let sockets: Vec<Vec<OwnedFd>> = if self.spec.message.endpoint.is_datagram() {
            let each = neighbours.iter().zip(bound);
            each.map(|(peer, own)| self.associate(peer, own)).collect::<Result<_, Error>>()?
        } else {
            let mut sockets: Vec<Vec<Option<OwnedFd>>> =
                neighbours.iter().map(|_| (0..lanes).map(|_| None).collect()).collect();
            for peer in neighbours.iter().filter(|peer| peer.rank < self.rank) {
                for (lane, place) in (0u32..).zip(&mut sockets[peer.index]) {
                    *place = Some(self.reach(peer, lane, deadline)?);
                }
            }
            self.accept(&neighbours, &mut sockets, deadline)?;
            sockets.into_iter().map(|lanes| lanes.into_iter().flatten().collect()).collect()
        };
        let partners = self.spec.links.partners(self.rank).len();
        let mut all = Vec::new();
        let mut paths = Vec::new();
        let mut held = Vec::new();
        for (peer, sockets) in neighbours.iter().zip(sockets) {
            for socket in sockets {
                if peer.index < partners {
                    paths.push(self.path(peer, &socket));
                    all.push(self.lane(socket));
                } else {
                    held.push(socket);
                }
            }
        }
        let drains = self.spec.usage.is_drained && !self.spec.links.begins(self.rank);
        let parts = Parts { lanes: all, paths, held, yields_cpu, drains };
        SocketEndpoint::new(&self.spec, parts, self.clock)
    }
}

impl Unconnected {
    /// Returns the ranks that this rank connects to, with the routes to them.
    fn neighbours<'a>(&'a self, ranks: &'a [PeerInfo]) -> Result<Vec<Neighbour<'a>>, Error> {
        let one = |(index, rank): (usize, u32)| {
            let Peer { address, params, own_params } = self.offer.peer(ranks, self.rank, rank)?;
            let own = &self.offer.address.reachable;
            let theirs = &address.reachable;
            let route = match self.spec.message.endpoint.is_internet() {
                true => Some(own.route(theirs)?),
                false if own.is_beside(theirs) => None,
                false => {
                    let reason =
                        "Unix sockets connect ranks of the same host and network namespace only".to_owned();
                    return Err(Error::Impossible { reason });
                }
            };
            Ok(Neighbour { rank, index, params, own_params, route })
        };
        self.spec.links.neighbours(self.rank).into_iter().enumerate().map(one).collect()
    }

    /// Connects datagram sockets to those of a rank.
    fn associate(&self, peer: &Neighbour<'_>, own: Vec<OwnedFd>) -> Result<Vec<OwnedFd>, Error> {
        if own.len() != peer.params.sockets.len() {
            let has = peer.params.sockets.len();
            let needed = own.len();
            let reason = format!("rank {} has {has} sockets, but {needed} are needed", peer.rank);
            return Err(Error::PeerAddress { reason });
        }
        for (socket, name) in own.iter().zip(&peer.params.sockets) {
            connect_to(socket, peer, name).map_err(|error| self.unreachable(peer, &error.into()))?;
            // The peer accepts datagrams only from the address that both ranks have chosen.
            if let Some((entry, _)) = &peer.route {
                let source = getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
                if let Some(source) = source.filter(|source| source.ip() != entry.address) {
                    let reason = format!(
                        "datagrams to rank {} would leave from {} and not from {}: name the network with --net",
                        peer.rank,
                        source.ip(),
                        entry.address
                    );
                    return Err(Error::PeerAddress { reason });
                }
            }
        }
        Ok(own)
    }

    /// Connects to a rank that listens.
    fn reach(&self, peer: &Neighbour<'_>, lane: u32, deadline: Deadline) -> Result<OwnedFd, Error> {
        let failed = |error: io::Error| self.unreachable(peer, &error);
        let name = peer.params.sockets.first().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let socket = socket(&self.spec)?;
        if let Some((own, _)) = &peer.route {
            callers::leave_by(&socket, own.address).map_err(|error| failed(error.into()))?;
        }
        match (name, &peer.route) {
            (Name::Port(port), Some((_, theirs))) => {
                callers::reach(&socket, &SocketAddr::new(theirs.address, *port), deadline).map_err(failed)?;
            }
            (Name::Abstract(name), _) => {
                let to = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(|e| failed(e.into()))?;
                callers::reach(&socket, &to, deadline).map_err(failed)?;
            }
            (Name::Port(_), None) => return Err(failed(Errno::AFNOSUPPORT.into())),
        }
        callers::say(&socket, peer.params.token, self.rank, lane).map_err(|error| failed(error.into()))?;
        Ok(socket)
    }

    /// Accepts the connections of ranks with higher numbers.
    fn accept(
        &self,
        neighbours: &[Neighbour<'_>],
        sockets: &mut [Vec<Option<OwnedFd>>],
        deadline: Deadline,
    ) -> Result<(), Error> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let message = &self.spec.message;
        let missing = |sockets: &[Vec<Option<OwnedFd>>]| {
            let lacks = |peer: &&Neighbour<'_>| sockets[peer.index].iter().any(Option::is_none);
            neighbours.iter().find(lacks).map(|peer| peer.rank)
        };
        let mut callers = Callers::new(listener, deadline);
        while let Some(rank) = missing(sockets) {
            let failed = |error: io::Error| {
                let peer = neighbours.iter().find(|peer| peer.rank == rank);
                peer.map_or_else(|| no_connection(&error), |peer| self.unreachable(peer, &error))
            };
            let (accepted, said) = callers.hear().map_err(failed)?;
            let place = neighbours.iter().find_map(|peer| {
                let lane = said.lane_of(peer.own_params.token, peer.rank)?;
                sockets[peer.index].len().checked_sub(lane + 1).map(|_| (peer.index, lane))
            });
            if let Some((index, lane)) = place {
                if message.socket.no_delay && message.endpoint == Carrier::Tcp {
                    sockopt::set_tcp_nodelay(&accepted, true).map_err(|error| failed(error.into()))?;
                }
                if message.socket.zero_copy {
                    zero_copy(&accepted)?;
                }
                // A Unix socket does not inherit the buffers of its listener.
                if let Some(bytes) = message.socket.buffer_bytes
                    && !message.endpoint.is_internet()
                {
                    buffers(&accepted, bytes)?;
                }
                sockets[index][lane] = Some(accepted);
            }
        }
        Ok(())
    }

    fn unreachable(&self, peer: &Neighbour<'_>, error: &io::Error) -> Error {
        let to = peer.route.as_ref().map_or_else(
            || format!("rank {}", peer.rank),
            |(own, theirs)| format!("rank {} from {} to {}", peer.rank, own.address, theirs.address),
        );
        Error::Unreachable { carrier: self.spec.message.endpoint.name(), to, reason: error.to_string() }
    }

    fn path(&self, peer: &Neighbour<'_>, socket: &OwnedFd) -> Path {
        let own_port = getsockname(socket).ok().as_ref().and_then(port_of);
        let their_port = getpeername(socket).ok().flatten().as_ref().and_then(port_of);
        let shown =
            |entry: &Entry, port: Option<u16>| SocketAddr::new(entry.address, port.unwrap_or(0)).to_string();
        let (own, theirs) = match &peer.route {
            Some((own, theirs)) => (shown(own, own_port), shown(theirs, their_port)),
            None => (format!("rank {}", self.rank), format!("rank {}", peer.rank)),
        };
        let interface = peer.route.as_ref().map(|(own, _)| own.interface.clone());
        Path { carrier: self.spec.message.endpoint, own, theirs, interface }
    }

    fn lane(&self, socket: OwnedFd) -> Lane {
        let spec = &self.spec;
        let size = spec.message.size();
        let is_flood = spec.usage.flow == Flow::Flood;
        if !spec.message.endpoint.is_datagram() {
            let holds_back = spec.message.endpoint == Carrier::Tcp && !spec.message.socket.no_delay;
            let stream = Stream::new(socket, size, is_flood, holds_back);
            let lends = spec.message.socket.zero_copy && spec.links.begins(self.rank);
            return Lane::Stream(if lends { stream.lending() } else { stream });
        }
        let is_lossy = spec.message.endpoint == Carrier::Udp;
        let list = usize::try_from(spec.message.post_list).unwrap_or(1);
        let offload = spec.message.socket.offload;
        let alternates = spec.usage.flow == Flow::Alternating;
        let stop_and_wait = (is_lossy && alternates).then(|| StopAndWait::new(spec.links.begins(self.rank)));
        let mode = DatagramMode { size, list, is_flood, is_lossy, offload };
        Lane::Datagram(Box::new(Datagram::new(socket, mode, stop_and_wait)))
    }
}

fn connect_to(socket: &OwnedFd, peer: &Neighbour<'_>, name: &Name) -> Result<(), Errno> {
    match (name, &peer.route) {
        (Name::Port(port), Some((_, theirs))) => connect(socket, &SocketAddr::new(theirs.address, *port)),
        (Name::Abstract(name), _) => connect(socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?),
        (Name::Port(_), None) => Err(Errno::AFNOSUPPORT),
    }
}

fn no_connection(error: &io::Error) -> Error {
    Error::PeerAddress { reason: error.to_string() }
}
