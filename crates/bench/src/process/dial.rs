//! The way to a server that was started by hand: waits until it is there, and for no stranger.

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
    /// Name or address of its host.
    pub host: String,
    /// TCP port that it listens on.
    pub port: u16,
    /// What it printed.
    pub key: Key,
    /// How long to try.
    pub wait: Duration,
}

/// Why a server was not reached this time. It may be the next.
enum Trouble {
    /// Nobody listens.
    Refused(io::Error),
    /// Nobody answers.
    Silent,
    /// The network says no.
    Unreachable(io::Error),
    /// Somebody listens and does not greet.
    Mute,
    /// Somebody listens and hung up before a key was asked for.
    Closed,
}

/// How an attempt ended that reached no server.
enum Failure {
    /// Another attempt may go better.
    Passing(Trouble),
    /// Whoever answers is none, or not ours.
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
    /// `node7:7362`, as errors name it.
    fn place(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Connects, again and again until the wait is over.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownHost`], [`Error::NoServer`] when the wait is over, or what whoever answers
    /// did wrong.
    pub(super) fn dial(
        &self,
        interrupt: Option<&Interrupt>,
        sink: &mut dyn Sink,
    ) -> Result<Connection, Error> {
        let (stream, _, channel) = self.reach(interrupt, &mut |text| sink.notice(text))?;
        Ok(Connection::new(self.place(), stream, channel))
    }

    /// The same, as a connection that nobody has used yet: it is non-blocking. `told` hears why
    /// whoever dials has to wait.
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
        let unknown = |reason| Error::UnknownHost { host: self.host.clone(), reason };
        let addresses: Vec<SocketAddr> = found.map_err(|error| unknown(error.to_string()))?.collect();
        if addresses.is_empty() { Err(unknown("it has no address".to_owned())) } else { Ok(addresses) }
    }

    /// Connects once and shakes hands.
    fn attempt(
        &self,
        address: SocketAddr,
        deadline: Deadline,
        interrupt: Option<&Interrupt>,
    ) -> Result<(TcpStream, Channel), Failure> {
        // The last attempt, too, has the time to succeed.
        let end = Deadline::after(ATTEMPT_TIMEOUT.min(deadline.remaining().max(ATTEMPT_MIN)));
        let mut stream = reach(address, end, interrupt)?;
        let mut initiator = Initiator::new(&self.key);
        let mut bytes = [0; 512];
        loop {
            // A few bytes fit into the buffer of a socket that has sent hardly any.
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

    /// The error with the server's name.
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
    /// What was found.
    fn what(&self, address: SocketAddr) -> String {
        match self {
            Self::Refused(error) => {
                format!("nothing listens on {address}, or a firewall refuses it ({error})")
            }
            Self::Silent => {
                format!("{address} does not answer: its host is down, or a firewall drops what comes")
            }
            Self::Unreachable(error) => format!("{address} cannot be reached ({error})"),
            Self::Mute => {
                format!("something listens on {address} but does not answer as a server of rdmascope does")
            }
            Self::Closed => format!("something listens on {address} but hangs up at once"),
        }
    }

    /// What to do.
    fn remedy(&self, address: SocketAddr) -> String {
        let port = address.port();
        match self {
            Self::Refused(_) => format!(
                "start the server there, with --listen if its clients are on other hosts, and let TCP port {port} pass"
            ),
            Self::Silent => format!("check the host, and let its firewall pass TCP port {port}"),
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

/// A non-blocking connection.
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
    // A request waits for its answer: Nagle's algorithm would only add to that.
    let _ = stream.set_nodelay(true);
    // Where nobody listens on a port that the kernel gives to outgoing connections, a socket may
    // meet itself.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(Trouble::Refused(Errno::CONNREFUSED.into()).into());
    }
    Ok(stream)
}

/// Longest attempt to connect and shake hands: many times the slowest path's round trips.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Shortest, however little of the wait is left.
const ATTEMPT_MIN: Duration = Duration::from_secs(1);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
