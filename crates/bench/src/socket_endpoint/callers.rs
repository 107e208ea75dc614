//! Connections whose rank is not known yet.
//!
//! A rank first sends its token. A connection that sends anything else, or nothing in time, is
//! closed. All connections are read at the same time, so a silent one delays no other, and a rank
//! whose first packet was lost can repeat it until the deadline (SCTP does so after three seconds;
//! RFC 4960, section 15).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, bind, connect, recv, send, sockopt};

/// The size of a token, a rank and the number of a lane.
const HELLO_BYTES: usize = 16;
/// How many connections are read at once; beyond that, the oldest silent one is closed.
const AT_ONCE: usize = 64;

/// The first bytes that a connection has sent.
pub(super) struct Said([u8; HELLO_BYTES]);

impl Said {
    fn new(token: u64, rank: u32, lane: u32) -> Self {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&token.to_le_bytes());
        bytes[8..12].copy_from_slice(&rank.to_le_bytes());
        bytes[12..].copy_from_slice(&lane.to_le_bytes());
        Self(bytes)
    }

    /// Returns the lane of the connection, if it is from a rank that knows the token.
    pub(super) fn lane_of(&self, token: u64, rank: u32) -> Option<usize> {
        let lane = u32::from_le_bytes(self.0[12..].try_into().ok()?);
        (self.0 == Self::new(token, rank, lane).0).then_some(lane as usize)
    }
}

/// Sends the token, the rank and the lane of a connection.
///
/// # Errors
/// The error of send(2).
pub(super) fn say(socket: &OwnedFd, token: u64, rank: u32, lane: u32) -> Result<(), Errno> {
    send(socket, &Said::new(token, rank, lane).0, SendFlags::NOSIGNAL).map(drop)
}

/// Binds a connecting socket to the address that both ranks have chosen.
///
/// # Errors
/// The error of bind(2).
pub(super) fn leave_by(socket: &OwnedFd, address: IpAddr) -> Result<(), Errno> {
    if address.is_loopback() { Ok(()) } else { bind(socket, &SocketAddr::new(address, 0)) }
}

/// Connects a socket to a listener.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] at the deadline; the error of connect(2).
pub(super) fn reach(socket: &OwnedFd, to: &impl SocketAddrArg, deadline: Deadline) -> io::Result<()> {
    rustix::io::ioctl_fionbio(socket, true)?;
    loop {
        match connect(socket, to) {
            Ok(()) | Err(Errno::ISCONN) => break,
            Err(Errno::INTR) => {}
            Err(Errno::INPROGRESS | Errno::ALREADY | Errno::AGAIN) => {
                await_any([socket], PollFlags::OUT, deadline)?;
                match sockopt::socket_error(socket) {
                    Ok(Ok(())) => break,
                    Ok(Err(error)) | Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rustix::io::ioctl_fionbio(socket, false)?)
}

/// A connection whose rank is not known yet.
struct Caller {
    socket: OwnedFd,
    said: Said,
    heard: usize,
}

impl Caller {
    /// Reads what has arrived; returns whether the connection is still open and may be a rank's.
    fn hear(&mut self) -> bool {
        while self.heard < HELLO_BYTES {
            match recv(&self.socket, &mut self.said.0[self.heard..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok((count, _)) => self.heard += count,
                Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
        true
    }
}

/// The connections to a listener whose ranks are not known yet.
pub(super) struct Callers<'a> {
    /// The listener, which never blocks.
    listener: &'a OwnedFd,
    deadline: Deadline,
    waiting: Vec<Caller>,
}

impl<'a> Callers<'a> {
    pub(super) fn new(listener: &'a OwnedFd, deadline: Deadline) -> Self {
        Self { listener, deadline, waiting: Vec::new() }
    }

    /// Returns the next connection that has sent its first bytes, with these bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] at the deadline, with the number of silent connections; the
    /// error of accept4(2) or poll(2).
    pub(super) fn hear(&mut self) -> io::Result<(OwnedFd, Said)> {
        loop {
            self.waiting.retain_mut(Caller::hear);
            if let Some(place) = self.waiting.iter().position(|caller| caller.heard == HELLO_BYTES) {
                let Caller { socket, said, .. } = self.waiting.remove(place);
                return Ok((socket, said));
            }
            self.wait()?;
            match accept_with(self.listener, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    if self.waiting.len() == AT_ONCE {
                        self.waiting.remove(0);
                    }
                    self.waiting.push(Caller { socket, said: Said([0; HELLO_BYTES]), heard: 0 });
                }
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until a connection is opened, sends something or is closed.
    fn wait(&self) -> io::Result<()> {
        let all = [self.listener].into_iter().chain(self.waiting.iter().map(|caller| &caller.socket));
        let ready = await_any(all, PollFlags::IN, self.deadline);
        // A stream of new connections could keep poll(2) from timing out.
        let ready = ready.and_then(|()| if self.deadline.is_over() { Err(timed_out()) } else { Ok(()) });
        ready.map_err(|error| match self.waiting.len() {
            0 => error,
            silent => {
                let why = format!("{error}; connections that did not identify themselves: {silent}");
                io::Error::new(error.kind(), why)
            }
        })
    }
}

/// Waits until one of several sockets is ready.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] at the deadline; the error of poll(2).
fn await_any<'a>(
    sockets: impl IntoIterator<Item = &'a OwnedFd>,
    flags: PollFlags,
    deadline: Deadline,
) -> io::Result<()> {
    let mut all: Vec<PollFd<'_>> =
        sockets.into_iter().map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), flags)).collect();
    loop {
        match poll(&mut all, Some(&deadline.timespec())) {
            Ok(0) => return Err(timed_out()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    fn listening() -> (OwnedFd, impl Fn() -> TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        (listener.into(), move || TcpStream::connect(address).unwrap())
    }

    /// A connection that sends its first bytes is returned before silent ones, and these as soon as
    /// they send.
    #[test]
    fn nobody_waits_for_who_is_silent() {
        let (listener, connect) = listening();
        let mut callers = Callers::new(&listener, Deadline::after(Duration::from_secs(20)));
        let mut slow = connect();
        let silent = connect();
        let quick = connect();
        let hello = Said::new(7, 2, 3).0;
        slow.write_all(&hello[..5]).unwrap();
        drop(connect());
        say(&quick.into(), 7, 1, 0).unwrap();
        let (_, said) = callers.hear().unwrap();
        assert_eq!((said.lane_of(7, 1), said.lane_of(7, 2), said.lane_of(8, 1)), (Some(0), None, None));
        slow.write_all(&hello[5..]).unwrap();
        assert_eq!(callers.hear().unwrap().1.lane_of(7, 2), Some(3));
        assert_eq!(callers.waiting.len(), 1, "a closed connection is not waited for");
        callers.deadline = Deadline::after(Duration::from_millis(20));
        let error = callers.hear().map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().ends_with("; connections that did not identify themselves: 1"), "{error}");
        drop(silent);
    }

    #[test]
    fn of_too_many_who_are_silent_the_first_goes() {
        let (listener, connect) = listening();
        let mut callers = Callers::new(&listener, Deadline::after(Duration::from_secs(20)));
        let mut silent: Vec<TcpStream> = (0..AT_ONCE + 2).map(|_| connect()).collect();
        say(&connect().into(), 7, 1, 0).unwrap();
        assert_eq!(callers.hear().unwrap().1.lane_of(7, 1), Some(0));
        // All connections but three are open: the one that identified itself also took a place
        // until then.
        assert_eq!(callers.waiting.len(), AT_ONCE - 1);
        for gone in &mut silent[..3] {
            assert_eq!(gone.read(&mut [0]).unwrap(), 0);
        }
        silent[3].set_nonblocking(true).unwrap();
        assert_eq!(silent[3].read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
