//! A socket that listens for a client with the key, and rejects all others.
//!
//! # Invariants
//!
//! * Before the key is verified, a caller learns only the version, costs next to nothing and does
//!   not hinder other callers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::key::Key;
use super::secure::{Channel, Responder};
use crate::Error;

/// A listening socket, and the callers that have not yet proved that they have the key.
pub(super) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    key: Key,
    callers: Vec<Caller>,
    /// The number of callers with another key or of another version, so far.
    rejections: u32,
    /// When to accept again, after the system has refused a connection.
    accept_from: Deadline,
}

/// A caller that has proved that it has the key.
pub(super) struct Admitted {
    /// Non-blocking.
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) channel: Channel,
}

/// A connection whose key is not verified yet.
struct Caller {
    stream: TcpStream,
    address: SocketAddr,
    responder: Responder,
    deadline: Deadline,
}

/// The state of a caller.
enum Call {
    /// The handshake goes on.
    Going,
    /// The caller has the key.
    Admitted(Channel),
    /// The caller does not have the key, or has gone.
    Over(Option<Error>),
}

impl Listener {
    /// Listens for a client with the key. Port 0 selects a free port.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address is not of this host or the port is taken.
    pub(super) fn new(address: SocketAddr, key: Key) -> Result<Self, Error> {
        let failed = |cause| Error::Listen { address, cause };
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let accept_from = Deadline::after(Duration::ZERO);
        Ok(Self { socket, address, key, callers: Vec::new(), rejections: 0, accept_from })
    }

    /// Returns the address that it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the key that callers must have.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the descriptors to wait for before the next [`turn`](Self::turn).
    pub(super) fn interest(&self) -> Vec<PollFd<'_>> {
        let callers = self.callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN));
        let socket = self.accept_from.is_over().then(|| PollFd::new(&self.socket, PollFlags::IN));
        callers.chain(socket).collect()
    }

    /// Returns when the next turn is due even if nothing has arrived, `latest` at the latest.
    pub(super) fn next_turn(&self, latest: Deadline) -> Deadline {
        let next = self.callers.iter().map(|caller| caller.deadline).fold(latest, Deadline::earlier);
        if self.accept_from.is_over() { next } else { next.earlier(self.accept_from) }
    }

    /// Accepts callers and reads from them. Returns one that has proved that it has the key, if
    /// there is one. `told` is called for the first few callers with another key or version.
    pub(super) fn turn(&mut self, told: &mut dyn FnMut(&str)) -> Option<Admitted> {
        if self.accept_from.is_over() && !self.accept() {
            self.accept_from = Deadline::after(ACCEPT_PAUSE);
        }
        let mut index = 0;
        while let Some(caller) = self.callers.get_mut(index) {
            match caller.listen() {
                Call::Going => index += 1,
                Call::Admitted(channel) => {
                    let Caller { stream, address, .. } = self.callers.swap_remove(index);
                    return Some(Admitted { stream, address, channel });
                }
                Call::Over(why) => {
                    let caller = self.callers.swap_remove(index);
                    why.iter().for_each(|why| caller.tell(why, &mut self.rejections, told));
                }
            }
        }
        None
    }

    /// Accepts a few callers. Returns false if the system refuses.
    fn accept(&mut self) -> bool {
        for _ in 0..ACCEPTED_A_TURN {
            let (stream, address) = match self.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return true,
                    // The caller closed the connection before it was accepted.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => continue,
                    _ => {
                        drop_one(&mut self.callers);
                        return false;
                    }
                },
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            // Nagle's algorithm would delay replies.
            let _ = stream.set_nodelay(true);
            if self.callers.len() == CALLERS_MAX {
                drop_one(&mut self.callers);
            }
            let responder = Responder::new(&self.key);
            let deadline = Deadline::after(HANDSHAKE_TIMEOUT);
            self.callers.push(Caller { stream, address, responder, deadline });
        }
        true
    }
}

impl Caller {
    /// Reads from the caller and answers.
    fn listen(&mut self) -> Call {
        let mut bytes = [0; 512];
        loop {
            let count = match self.stream.read(&mut bytes) {
                Ok(0) => return Call::Over(None),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.deadline.is_over() => {
                    return Call::Going;
                }
                Err(_) => return Call::Over(None),
            };
            let taken = self.responder.take(&bytes[..count]);
            // These few bytes fit into the buffer of a socket that has sent hardly anything. If
            // they do not, the connection has failed.
            let sent = self.stream.write_all(&self.responder.outgoing());
            match (taken, sent) {
                (Ok(Some(channel)), _) => return Call::Admitted(channel),
                (Ok(None), Ok(())) => {}
                (Ok(None), Err(_)) => return Call::Over(None),
                (Err(error), _) => return Call::Over(Some(error)),
            }
        }
    }

    /// Reports why the caller was rejected, if it speaks the protocol of a client. Any program can
    /// do that, so the number of reports is limited.
    fn tell(&self, why: &Error, rejections: &mut u32, told: &mut dyn FnMut(&str)) {
        let reason = match why {
            Error::WrongKey => "has another key".to_owned(),
            Error::OtherProtocol { .. } => format!("is another version: {why}"),
            _ => return,
        };
        *rejections += 1;
        if *rejections <= REJECTIONS_TOLD {
            let last = if *rejections == REJECTIONS_TOLD { " (more are not reported)" } else { "" };
            told(&format!("the client at {} was rejected: it {reason}{last}", self.address.ip()));
        }
    }
}

/// Drops a caller to make room: the oldest that has not greeted, or else the oldest.
fn drop_one(callers: &mut Vec<Caller>) {
    let oldest = callers
        .iter()
        .enumerate()
        .min_by_key(|(_, caller)| (caller.responder.is_greeted(), caller.deadline.remaining()))
        .map(|(index, _)| index);
    oldest.into_iter().for_each(|index| drop(callers.swap_remove(index)));
}

/// The time that a caller has to prove that it has the key: many round trips of the slowest path.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most handshakes at the same time.
const CALLERS_MAX: usize = 64;
/// The most callers that are accepted before the others are read again: so few that a crowd of new
/// callers cannot push out one that has had no chance to greet.
const ACCEPTED_A_TURN: usize = 16;
/// The pause after the system has refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The number of rejected clients that are reported.
const REJECTIONS_TOLD: u32 = 3;
