//! Set-up of a point: from its specification to connected sockets of a library.

use std::ffi::CString;
use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use measure::clock::{Clock, Deadline};
use serde::{Deserialize, Serialize};

use super::any::Socket;
use super::check;
use super::endpoint::{LibraryEndpoint, Sockets};
use super::socket::{Messages, Role};
use crate::Error;
use crate::endpoint::connecting::{Offer, Peer, PeerInfo, UnconnectedEndpoint, are_beside};
use crate::endpoint::kind::{EndpointKind, Site};
use crate::pattern::check::Check;
use crate::point::{Carrier, Family, Protocol};
use crate::socket_endpoint::{Net, Reachable, token};
use crate::topology::PartSpec;

/// How long two ranks may take to meet.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a rank repeats its start message: a subscription takes effect with a delay.
const AGAIN_AFTER: Duration = Duration::from_millis(10);
/// How many ports are tried: another program may take a port between the kernel's choice and the
/// library's use of it.
const TRIES: u32 = 5;

/// Sockets that are not connected yet.
pub(crate) struct Unconnected {
    spec: PartSpec,
    rank: u32,
    clock: Clock,
    offer: Offer<Address, PeerParams>,
    /// The socket that the peer connects to; `None` at the connecting rank of a pair.
    bound: Option<Socket>,
}

/// The addresses of a rank.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    reachable: Reachable,
}

/// What a rank tells its partner.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerParams {
    /// Where it listens; `None` if it connects.
    place: Option<Place>,
    /// The content of its start message, which identifies it.
    token: u64,
}

/// Where a socket listens.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    /// On a TCP port.
    Port(u16),
    /// In shared memory of its host, under a name made from its token.
    Memory,
}

impl EndpointKind for Unconnected {
    const CARRIERS: &'static [Carrier] =
        &[Carrier::Iceoryx2, Carrier::Nanomsg, Carrier::Nng, Carrier::Zeromq];

    fn check(check: &Check<'_>) -> Result<(), Error> {
        check::experiment(check)
    }

    /// Opens and binds the socket of a rank.
    fn prepare(spec: &PartSpec, site: &mut Site<'_>) -> Result<Self, Error> {
        let rank = site.rank;
        let options = site.sockets;
        let reachable = Reachable::own(&options.net, Family::Ipv4, None)?;
        let role = match spec.message.socket.protocol {
            Protocol::Pair => (rank == 0).then_some(Role::Pair),
            Protocol::PubSub => Some(Role::Publisher),
        };
        let token = token()?;
        let first = options.port.and_then(|first| first.checked_add(u16::try_from(rank).ok()?));
        let bind = |role| match spec.message.endpoint {
            Carrier::Iceoryx2 => offering(spec, role, token),
            _ => listening(spec, role, &options.net, first),
        };
        let (bound, place) = role.map(bind).transpose()?.unzip();
        let mut offer = Offer::new(Address { reachable }, spec.links.ranks());
        for partner in spec.links.partners(rank) {
            offer.give(*partner, PeerParams { place, token });
        }
        Ok(Self { spec: spec.clone(), rank, clock: site.rank_clock.clock, offer, bound })
    }
}

/// Opens a socket that the peer finds by a name.
fn offering(spec: &PartSpec, role: Role, token: u64) -> Result<(Socket, Place), Error> {
    let mut socket = open(spec, role)?;
    let failed = |reason| Error::System {
        what: format!("create the {} service", spec.message.endpoint.name()),
        cause: std::io::Error::other(reason),
    };
    socket.bind(&service(token)).map_err(failed)?;
    Ok((socket, Place::Memory))
}

/// Returns the name of a rank's service.
fn service(token: u64) -> CString {
    CString::new(format!("rdmascope/{token:016x}")).unwrap_or_default()
}

/// Opens a socket that listens on a given port, or on any.
fn listening(spec: &PartSpec, role: Role, net: &Net, given: Option<u16>) -> Result<(Socket, Place), Error> {
    let ip = net.bound_address(Family::Ipv4);
    let mut why = String::new();
    for _ in 0..TRIES {
        let port = match given {
            Some(port) => port,
            // Not every library reports which port the kernel chose.
            None => {
                TcpListener::bind((ip, 0)).and_then(|listener| listener.local_addr()).map_err(no_port)?.port()
            }
        };
        let mut socket = open(spec, role)?;
        match socket.bind(&url(ip, port)) {
            Ok(()) => return Ok((socket, Place::Port(port))),
            Err(reason) if given.is_some() => {
                return Err(Error::PortTaken { port: format!("TCP port {port} ({reason})") });
            }
            Err(reason) => why = reason,
        }
    }
    Err(no_port(std::io::Error::other(why)))
}

fn no_port(cause: std::io::Error) -> Error {
    Error::System { what: "listen on a port".to_owned(), cause }
}

/// Opens a socket of the point's library, if the library is installed.
fn open(spec: &PartSpec, role: Role) -> Result<Socket, Error> {
    Socket::open(spec, role).map_err(|reason| Error::Impossible { reason })
}

fn url(ip: IpAddr, port: u16) -> CString {
    CString::new(format!("tcp://{ip}:{port}")).unwrap_or_default()
}

impl UnconnectedEndpoint for Unconnected {
    type Connected = LibraryEndpoint;
    type Address = Address;
    type PeerParams = PeerParams;

    fn offer(&self) -> &Offer<Address, PeerParams> {
        &self.offer
    }

    fn connect(
        self,
        ranks: &[PeerInfo<Address, PeerParams>],
        yields_cpu: bool,
    ) -> Result<LibraryEndpoint, Error> {
        let peer = self.spec.links.partners(self.rank).first().copied().unwrap_or_default();
        let Peer { address, params, own_params } = self.offer.peer(ranks, self.rank, peer)?;
        let (_, theirs) = self.offer.address.reachable.route(&address.reachable)?;
        let path = format!("{} to rank {peer} at {}", self.spec.message.endpoint.name(), theirs.address);
        let role =
            if self.spec.message.socket.protocol == Protocol::Pair { Role::Pair } else { Role::Subscriber };
        let mut connected = None;
        if let Some(place) = params.place {
            let mut socket = open(&self.spec, role)?;
            let failed = |reason| Error::Socket {
                what: "connect",
                path: path.clone(),
                reason,
                advice: "check `ip route get ADDRESS` on both hosts".to_owned(),
            };
            let place = match place {
                Place::Port(port) => url(theirs.address, port),
                Place::Memory if are_beside(ranks, self.rank, peer) => service(params.token),
                Place::Memory => {
                    let reason = "iceoryx2 connects ranks of the same host only".to_owned();
                    return Err(Error::Impossible { reason });
                }
            };
            socket.connect(&place).map_err(failed)?;
            connected = Some(socket);
        }
        let sockets = Sockets::of(self.bound, connected).ok_or_else(|| Error::PeerAddress {
            reason: format!("rank {peer} has no port that rank {} could connect to", self.rank),
        })?;
        let mut end = LibraryEndpoint::new(&self.spec, sockets, path, yields_cpu, self.clock);
        meet(&mut end, &self.spec, [own_params.token, params.token], theirs.address)?;
        Ok(end)
    }
}

/// Sends start messages until the other rank has sent one, and has acknowledged one of this rank.
fn meet(
    end: &mut LibraryEndpoint,
    spec: &PartSpec,
    [own, theirs]: [u64; 2],
    at: IpAddr,
) -> Result<(), Error> {
    let deadline = Deadline::after(PATIENCE);
    let mut has_heard = false;
    loop {
        end.send_start(&start_message(own, has_heard, spec))?;
        let until = Deadline::after(AGAIN_AFTER);
        while !until.is_over() {
            let Some(came) = end.receive_start(AGAIN_AFTER)? else { continue };
            if came == start_message(theirs, true, spec) {
                // Sent once more: the other rank may have received a start message of this rank,
                // but no acknowledgement.
                return end.send_start(&start_message(own, true, spec));
            }
            has_heard |= came == start_message(theirs, false, spec);
        }
        if deadline.is_over() {
            let reason = format!("it did not answer within {} s", PATIENCE.as_secs());
            return Err(Error::Unreachable {
                carrier: spec.message.endpoint.name(),
                to: at.to_string(),
                reason,
            });
        }
    }
}

/// Returns a start message, whose length always differs from that of a measured message.
fn start_message(token: u64, has_heard: bool, spec: &PartSpec) -> Vec<u8> {
    let mut words = token.to_le_bytes().to_vec();
    words.push(u8::from(has_heard));
    if words.len() as u64 == spec.message.size_bytes {
        words.push(0);
    }
    words
}
