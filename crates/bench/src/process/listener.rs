//! A socket that listens for whoever has the key, whoever else knocks.
//!
//! # Invariants
//!
//! * Whoever has not shown the key is told nothing but the version, costs next to nothing and stops
//!   nobody else.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::key::Key;
use super::secure::{Channel, Responder};
use crate::Error;

/// A listening socket, and those who have connected and not shown the key yet.
pub(super) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    key: Key,
    callers: Vec<Caller>,
    /// Callers with another key or of another version, so far.
    rejections: u32,
    /// Where the system can take no more connections, it is asked again a little later.
    accept_from: Deadline,
}

/// Somebody who has shown that they have the key.
pub(super) struct Admitted {
    /// Non-blocking.
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) channel: Channel,
}

/// Somebody who has connected and not yet shown that they have the key.
struct Caller {
    stream: TcpStream,
    address: SocketAddr,
    responder: Responder,
    deadline: Deadline,
}

/// What became of a caller.
enum Call {
    /// There is more to come.
    Going,
    /// It has the key.
    Admitted(Channel),
    /// It has not.
    Over(Option<Error>),
}

impl Listener {
    /// Listens for whoever has the key. Port 0 takes one that is free.
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

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What callers must have.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// What to wait for before the next [`turn`](Self::turn).
    pub(super) fn interest(&self) -> Vec<PollFd<'_>> {
        let callers = self.callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN));
        let socket = self.accept_from.is_over().then(|| PollFd::new(&self.socket, PollFlags::IN));
        callers.chain(socket).collect()
    }

    /// When the next turn is due although nothing has come.
    pub(super) fn next_turn(&self, latest: Deadline) -> Deadline {
        let next = self.callers.iter().map(|caller| caller.deadline).fold(latest, Deadline::earlier);
        if self.accept_from.is_over() { next } else { next.earlier(self.accept_from) }
    }

    /// Accepts and listens to callers; gives one that has shown the key, if there is one. `told`
    /// hears of the first few who have another key or version.
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

    /// Accepts a few callers. False if the system refuses.
    fn accept(&mut self) -> bool {
        for _ in 0..ACCEPTED_A_TURN {
            let (stream, address) = match self.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return true,
                    // Hung up while waiting to be accepted.
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
            // A reply goes out at once: Nagle's algorithm would only delay it.
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
    /// Takes in what has come and answers.
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
            // A few bytes fit into the buffer of a socket that has sent hardly any: whoever has no
            // room hangs up.
            let sent = self.stream.write_all(&self.responder.outgoing());
            match (taken, sent) {
                (Ok(Some(channel)), _) => return Call::Admitted(channel),
                (Ok(None), Ok(())) => {}
                (Ok(None), Err(_)) => return Call::Over(None),
                (Err(error), _) => return Call::Over(Some(error)),
            }
        }
    }

    /// Says why it was rejected if it speaks as a client does. Anybody can do that, so not for
    /// ever.
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

/// Makes room: the oldest of those who have not even greeted, or else the oldest.
fn drop_one(callers: &mut Vec<Caller>) {
    let oldest = callers
        .iter()
        .enumerate()
        .min_by_key(|(_, caller)| (caller.responder.is_greeted(), caller.deadline.remaining()))
        .map(|(index, _)| index);
    oldest.into_iter().for_each(|index| drop(callers.swap_remove(index)));
}

/// How long anybody may take to show that they have the key: many times the round trips of the
/// slowest path.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many may be about it at the same time.
const CALLERS_MAX: usize = 64;
/// How many are let in before those inside are listened to again: so few that a crowd of newcomers
/// cannot push out one who has had no chance to greet.
const ACCEPTED_A_TURN: usize = 16;
/// Where the system can take no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many rejected clients are told of.
const REJECTIONS_TOLD: u32 = 3;
