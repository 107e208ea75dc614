//! Connects to a server that was started by hand: retries until the server is there, and accepts no
//! other program.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use super::connection::Connection;
use super::interrupt::Interrupt;
use super::key::Key;
use super::secure::{Channel, Initiator};
use super::sink::Sink;
use super::wait::wait;
use crate::Error;

/// A server that was started by hand.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The name or address of its host.
    pub host: String,
    /// The TCP port that it listens on.
    pub port: u16,
    /// The key that it printed.
    pub key: Key,
    /// How long to keep trying.
    pub wait: Duration,
}

/// Why an attempt did not reach the server. The next attempt may.
enum Trouble {
    /// The connection was refused.
    Refused(io::Error),
    /// The host did not answer.
    Silent,
    /// The network reported an error.
    Unreachable(io::Error),
    /// A program accepted the connection and did not greet.
    Mute,
    /// A program accepted the connection and closed it before the handshake had ended.
    Closed,
}

/// Why an attempt failed.
enum Failure {
    /// Another attempt may succeed.
    Passing(Trouble),
    /// The program that answers is not the server that has this key.
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Passing(trouble)
    }
}

impl Peer {
    /// Returns the name of the server in errors: `node7:7362`.
    fn place(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Connects, and tries again until the wait is over.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownHost`], [`Error::NoServer`] when the wait is over, or an error about the
    /// program that answers.
    pub(super) fn dial(
        &self,
        interrupt: Option<&Interrupt>,
        sink: &mut dyn Sink,
    ) -> Result<Connection, Error> {
        let (stream, _, channel) = self.reach(interrupt, &mut |text| sink.notice(text))?;
        Ok(Connection::new(self.place(), stream, channel))
    }

    /// Connects as [`Peer::dial`] does, and returns the unused, non-blocking connection. `told` is
    /// called once, with the reason for waiting.
    pub(super) fn reach(
        &self,
        interrupt: Option<&Interrupt>,
        told: &mut dyn FnMut(&str),
    ) -> Result<(TcpStream, SocketAddr, Channel), Error> {
        let addresses = self.addresses()?;
        let deadline = Deadline::after(self.wait);
        let mut is_told = false;
        loop {
            let mut last = None;
            for address in &addresses {
                match self.attempt(*address, deadline, interrupt) {
                    Ok((stream, channel)) => return Ok((stream, *address, channel)),
                    Err(Failure::Final(error)) => return Err(self.explain(error)),
                    Err(Failure::Passing(trouble)) => last = Some((*address, trouble)),
                }
            }
            let server = self.place();
            let waited_s = self.wait.as_secs();
            if let Some((address, trouble)) = last {
                let reason = trouble.what(address);
                if deadline.is_over() {
                    return Err(Error::NoServer {
                        server,
                        waited_s,
                        reason,
                        remedy: trouble.remedy(address),
                    });
                }
                if !is_told {
                    is_told = true;
                    told(&format!("waiting up to {waited_s} s for the server {server}: {reason}"));
                }
            }
            wait(Vec::new(), deadline.earlier(Deadline::after(PAUSE)), interrupt)?;
        }
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let unknown = |reason: String| {
            let with_port = self.host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            let reason = if with_port { "the port is given with -p".to_owned() } else { reason };
            Error::UnknownHost { host: self.host.clone(), reason }
        };
        let addresses: Vec<SocketAddr> = found.map_err(|error| unknown(error.to_string()))?.collect();
        if addresses.is_empty() { Err(unknown("it has no address".to_owned())) } else { Ok(addresses) }
    }

    /// Connects once and does the handshake.
    fn attempt(
        &self,
        address: SocketAddr,
        deadline: Deadline,
        interrupt: Option<&Interrupt>,
    ) -> Result<(TcpStream, Channel), Failure> {
        // The last attempt, too, has enough time to succeed.
        let end = Deadline::after(ATTEMPT_TIMEOUT.min(deadline.remaining().max(ATTEMPT_MIN)));
        let mut stream = reach(address, end, interrupt)?;
        let mut initiator = Initiator::new(&self.key);
        let mut bytes = [0; 512];
        loop {
            // These few bytes fit into the buffer of a socket that has sent hardly anything.
            stream.write_all(&initiator.outgoing()).map_err(|_| Trouble::Closed)?;
            let count = match stream.read(&mut bytes) {
                Ok(0) => {
                    let foreign = initiator.foreign().map(|line| Failure::Final(Error::NoGreeting { line }));
                    return Err(foreign.unwrap_or(Trouble::Closed.into()));
                }
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if end.is_over() {
                        return Err(Trouble::Mute.into());
                    }
                    wait(vec![PollFd::new(&stream, PollFlags::IN)], end, interrupt)?;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(Trouble::Closed.into()),
            };
            if let Some(channel) = initiator.take(&bytes[..count])? {
                stream.write_all(&initiator.outgoing()).map_err(|_| Trouble::Closed)?;
                return Ok((stream, channel));
            }
        }
    }

    /// Adds the name of the server to an error.
    fn explain(&self, error: Error) -> Error {
        match error {
            Error::NoGreeting { line } => Error::OtherProgram { place: self.place(), line },
            Error::WrongKey | Error::OtherProtocol { .. } | Error::BrokenChannel { .. } => {
                Error::BadAgent { who: format!("the server {}", self.place()), cause: Box::new(error) }
            }
            other => other,
        }
    }
}

impl Trouble {
    /// Returns the reason, in words.
    fn what(&self, address: SocketAddr) -> String {
        match self {
            Self::Refused(error) => {
                format!("nothing listens on {address}, or a firewall refuses it ({error})")
            }
            Self::Silent => {
                format!("{address} does not answer: its host is down, or a firewall drops the packets")
            }
            Self::Unreachable(error) => format!("{address} cannot be reached ({error})"),
            Self::Mute => {
                format!("something listens on {address} but does not answer like an rdmascope server")
            }
            Self::Closed => format!("something listens on {address} but closes the connection at once"),
        }
    }

    /// Returns what the user can do, in words.
    fn remedy(&self, address: SocketAddr) -> String {
        let port = address.port();
        match self {
            Self::Refused(_) => format!(
                "start the server there, with --listen if its clients are on other hosts, and open TCP port {port}"
            ),
            Self::Silent => format!("check the host, and open TCP port {port} in its firewall"),
            Self::Unreachable(_) => "check the name, the network and the firewall".to_owned(),
            Self::Mute => {
                "give the server's port with -p, and make sure that the server is not stopped".to_owned()
            }
            Self::Closed => {
                "give the server's port with -p, or start the server at the other end of the tunnel"
                    .to_owned()
            }
        }
    }
}

/// Opens a non-blocking connection.
fn reach(address: SocketAddr, end: Deadline, interrupt: Option<&Interrupt>) -> Result<TcpStream, Failure> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd =
        socket_with(family, SocketType::STREAM, flags, None).map_err(Error::system("make a socket"))?;
    let trouble = |error: io::Error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Trouble::Refused(error),
        io::ErrorKind::TimedOut => Trouble::Silent,
        _ => Trouble::Unreachable(error),
    };
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            while !wait(vec![PollFd::new(&socket, PollFlags::OUT)], end, interrupt)? {
                if end.is_over() {
                    return Err(Trouble::Silent.into());
                }
            }
        }
        Err(errno) => return Err(trouble(errno.into()).into()),
    }
    let stream = TcpStream::from(socket);
    if let Some(error) = stream.take_error().ok().flatten() {
        return Err(trouble(error).into());
    }
    // Each request waits for its answer, and Nagle's algorithm would add to that wait.
    let _ = stream.set_nodelay(true);
    // On a port of the kernel's range for outgoing connections, a socket may connect to itself if
    // no program listens.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(Trouble::Refused(Errno::CONNREFUSED.into()).into());
    }
    Ok(stream)
}

/// The time for one attempt to connect and do the handshake: many round trips of the slowest path.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// The least time for an attempt, even if less of the wait is left.
const ATTEMPT_MIN: Duration = Duration::from_secs(1);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
