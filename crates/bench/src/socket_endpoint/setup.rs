//! Set-up of a point: from its specification to sockets that can be connected.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use measure::clock::Clock;
use rustix::io::ioctl_fionbio;
use rustix::net::{SocketAddr, SocketAddrAny, SocketAddrUnix, bind, getsockname, listen, sockopt};

use super::address::{Reachable, SocketOptions};
use super::check;
use super::options::socket;
use super::peer::{Address, Name, PeerParams};
use crate::Error;
use crate::endpoint::connecting::Offer;
use crate::endpoint::kind::{EndpointKind, Site};
use crate::pattern::check::Check;
use crate::point::{Carrier, Operation, Service, SocketSettings};
use crate::topology::{Flow, Part, PartSpec};

/// The most connections that may wait to be accepted: more than a host has ranks.
const BACKLOG: i32 = 4096;

/// Sockets that are not connected yet.
pub(crate) struct Unconnected {
    pub(super) spec: PartSpec,
    pub(super) rank: u32,
    pub(super) clock: Clock,
    pub(super) offer: Offer<Address, PeerParams>,
    /// The listener, for carriers with connections.
    pub(super) listener: Option<OwnedFd>,
    /// The sockets for each neighbour, for carriers of datagrams.
    pub(super) bound: Vec<Vec<OwnedFd>>,
}

impl Unconnected {
    /// Creates and binds the sockets of a part of a point.
    pub(crate) fn new(
        part: &PartSpec,
        rank: u32,
        options: &SocketOptions,
        clock: Clock,
    ) -> Result<Self, Error> {
        let spec = carried(part);
        let reachable = match spec.message.endpoint.is_internet() {
            true => Reachable::own(&options.net, spec.message.socket.family, spec.message.link_layer)?,
            false => Reachable::namespace_alone(),
        };
        let neighbours = spec.links.neighbours(rank);
        let mut ports = Ports::of(&spec, rank, options, neighbours.len());
        let mut listener = None;
        let mut bound = Vec::new();
        let mut offer = Offer::new(Address { reachable }, spec.links.ranks());
        let named = if spec.message.endpoint.is_datagram() {
            Vec::new()
        } else {
            let (own, name) = ports.bound(&spec, options)?;
            listen(&own, BACKLOG).map_err(|error| ports.failed("listen", error))?;
            // A connection may be closed before it is accepted, so accept must not block.
            ioctl_fionbio(&own, true).map_err(|error| ports.failed("ioctl FIONBIO", error))?;
            listener = Some(own);
            vec![name]
        };
        for neighbour in neighbours {
            let mut sockets = named.clone();
            if spec.message.endpoint.is_datagram() {
                let own = (0..spec.message.socket.streams).map(|_| ports.bound(&spec, options));
                let (own, names): (Vec<_>, Vec<_>) = own.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
                bound.push(own);
                sockets = names;
            }
            offer.give(neighbour, PeerParams { sockets, token: token()? });
        }
        Ok(Self { spec, rank, clock, offer, listener, bound })
    }
}

impl EndpointKind for Unconnected {
    const CARRIERS: &'static [Carrier] =
        &[Carrier::Sctp, Carrier::Tcp, Carrier::Udp, Carrier::UnixDatagram, Carrier::UnixStream];

    fn check(check: &Check<'_>) -> Result<(), Error> {
        check::experiment(check)
    }

    fn prepare(part: &PartSpec, site: &mut Site<'_>) -> Result<Self, Error> {
        Self::new(part, site.rank, site.sockets, site.rank_clock.clock)
    }
}

/// Returns a part as sockets carry it: messages outside of the timed ones must not get lost, and a
/// load counts what is acknowledged.
fn carried(part: &PartSpec) -> PartSpec {
    let mut spec = part.clone();
    if spec.part != Part::MAIN {
        spec.message.operation = Operation::Send;
        spec.message.service = Service::Rc;
        spec.message.endpoint =
            if spec.message.endpoint.is_internet() { Carrier::Tcp } else { Carrier::UnixStream };
        let family = spec.message.socket.family;
        let no_delay = spec.usage.flow != Flow::Flood;
        spec.message.socket = SocketSettings { family, no_delay, ..SocketSettings::default() };
    }
    spec
}

/// Returns a number that cannot be guessed.
pub(crate) fn token() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(Error::system("make a random number"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The ports of a rank's sockets.
struct Ports {
    next: Option<u16>,
    /// The last port that was tried, for errors.
    tried: String,
}

impl Ports {
    /// If a first port is given, each rank and each part of the point gets a range for the largest
    /// number of sockets.
    fn of(spec: &PartSpec, rank: u32, options: &SocketOptions, neighbours: usize) -> Self {
        let most = if spec.message.endpoint.is_datagram() {
            let sockets = neighbours as u32 * spec.message.socket.streams;
            sockets.max(spec.links.ranks().saturating_sub(1)).max(1)
        } else {
            1
        };
        let Part(part) = spec.part;
        let from = |first: u16| u32::from(first) + (part * spec.links.ranks() + rank) * most;
        Self { next: options.port.and_then(|first| u16::try_from(from(first)).ok()), tried: String::new() }
    }

    /// Creates and binds a socket of the point; returns it with its name.
    fn bound(&mut self, spec: &PartSpec, options: &SocketOptions) -> Result<(OwnedFd, Name), Error> {
        let socket = socket(spec)?;
        if !spec.message.endpoint.is_internet() {
            let name = format!("rdmascope-{}-{}", std::process::id(), NAMES.fetch_add(1, Relaxed));
            let address = SocketAddrUnix::new_abstract_name(name.as_bytes())
                .map_err(|error| self.failed("name", error))?;
            bind(&socket, &address).map_err(|error| self.failed("bind", error))?;
            return Ok((socket, Name::Abstract(name)));
        }
        let ip = options.net.bound_address(spec.message.socket.family);
        let wanted = self.next.unwrap_or(0);
        self.tried = format!("{} port {wanted}", spec.message.endpoint.name());
        self.next = self.next.map(|port| port.wrapping_add(1));
        if wanted != 0 && !spec.message.endpoint.is_datagram() {
            // Connections of the previous point keep the port for a minute; a listener keeps it
            // regardless (socket(7)).
            sockopt::set_socket_reuseaddr(&socket, true).map_err(|error| self.failed("share", error))?;
        }
        bind(&socket, &SocketAddr::new(ip, wanted)).map_err(|error| self.failed("bind", error))?;
        let own = getsockname(&socket).map_err(|error| self.failed("name", error))?;
        let port = port_of(&own).ok_or_else(|| self.failed("name", rustix::io::Errno::AFNOSUPPORT))?;
        Ok((socket, Name::Port(port)))
    }

    fn failed(&self, what: &str, error: rustix::io::Errno) -> Error {
        if error == rustix::io::Errno::ADDRINUSE {
            return Error::PortTaken { port: self.tried.clone() };
        }
        Error::System { what: format!("{what} a socket"), cause: error.into() }
    }
}

/// Returns the port of an address.
pub(super) fn port_of(address: &SocketAddrAny) -> Option<u16> {
    SocketAddr::try_from(address.clone()).ok().map(|address| address.port())
}

/// The number of abstract names that this process has used.
static NAMES: AtomicU32 = AtomicU32::new(0);
