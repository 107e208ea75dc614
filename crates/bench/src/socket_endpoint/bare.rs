//! TCP connections between two ranks for transfers of bytes, without messages or lanes.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use measure::clock::Deadline;

use super::address::SocketOptions;
use super::callers::{self, Callers};
use super::options::pace;
use super::setup::token;
use crate::Error;
use crate::interfaces::Entry;
use crate::point::Family;

/// How long all connections together may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A rank that waits for connections of another rank.
pub(crate) struct Listening {
    listener: OwnedFd,
    /// The port that it listens on.
    pub(crate) port: u16,
    /// The token that the other rank must send first.
    pub(crate) token: u64,
}

impl Listening {
    /// Listens on the port of the options, or on a free one.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn new(options: &SocketOptions, family: Family) -> Result<Self, Error> {
        let address = SocketAddr::new(options.net.bound_address(family), options.port.unwrap_or(0));
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::AddrInUse => Error::PortTaken { port: format!("TCP port {}", address.port()) },
            _ => Error::system("listen for the other rank")(cause),
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener: listener.into(), port, token: token()? })
    }

    /// Accepts `count` connections of a rank, in the order of their lanes. Connections that do not
    /// begin with the token are closed.
    ///
    /// # Errors
    /// If the connections do not arrive.
    pub(crate) fn accept(&self, rank: u32, count: usize) -> Result<Vec<TcpStream>, Error> {
        let mut callers = Callers::new(&self.listener, Deadline::after(PATIENCE));
        let mut streams: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
        while streams.iter().any(Option::is_none) {
            let (socket, said) = callers.hear().map_err(|error| unreachable(rank, &error))?;
            if let Some(place) = said.lane_of(self.token, rank).and_then(|lane| streams.get_mut(lane)) {
                let stream = TcpStream::from(socket);
                stream.set_nodelay(true).map_err(|error| unreachable(rank, &error))?;
                *place = Some(stream);
            }
        }
        Ok(streams.into_iter().flatten().collect())
    }
}

/// Connects `count` times from this rank to a listening rank. Each connection sends at most
/// `pacing_bits_per_s`, if given.
///
/// # Errors
/// If the rank is not reached.
pub(crate) fn connect(
    (own, theirs): (&Entry, &Entry),
    (port, token): (u16, u64),
    (rank, peer): (u32, u32),
    (count, pacing_bits_per_s): (usize, Option<u64>),
) -> Result<Vec<TcpStream>, Error> {
    let failed = |error: io::Error| unreachable(peer, &error);
    let deadline = Deadline::after(PATIENCE);
    let one = |lane: u32| -> Result<TcpStream, Error> {
        let socket = rustix::net::socket_with(
            if own.address.is_ipv4() {
                rustix::net::AddressFamily::INET
            } else {
                rustix::net::AddressFamily::INET6
            },
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        );
        let socket = socket.map_err(|errno| failed(errno.into()))?;
        if let Some(bits_per_s) = pacing_bits_per_s {
            pace(&socket, bits_per_s).map_err(|errno| failed(errno.into()))?;
        }
        callers::leave_by(&socket, own.address).map_err(|errno| failed(errno.into()))?;
        callers::reach(&socket, &SocketAddr::new(theirs.address, port), deadline).map_err(failed)?;
        callers::say(&socket, token, rank, lane).map_err(|errno| failed(errno.into()))?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).map_err(failed)?;
        Ok(stream)
    };
    (0..u32::try_from(count).unwrap_or(u32::MAX)).map(one).collect()
}

fn unreachable(rank: u32, error: &io::Error) -> Error {
    Error::Unreachable { carrier: "TCP", to: format!("rank {rank}"), reason: error.to_string() }
}
