//! The end that was started first, by hand: waits for the one client that has the key, whoever else
//! knocks.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::client_session::ClientSession;
use super::interrupt::Interrupt;
use super::key::Key;
use super::secure::{Channel, Responder};
use super::wait::wait;
use crate::Error;

/// The TCP port of everything that is started by hand. It spells RDMA on the keys of a telephone,
/// is assigned to nobody (IANA), is no port of the field's tools and none that a kernel gives to
/// outgoing connections.
pub const PORT: u16 = 7362;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    key: Key,
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
    /// It is the client.
    Client(Channel),
    /// It is not.
    Over(Option<Error>),
}

impl Server {
    /// Listens for whoever has the key. Port 0 takes one that is free.
    ///
    /// # Errors
    ///
    /// If the address is not of this host or the port is taken.
    pub fn listen(address: SocketAddr, key: Key) -> Result<Self, Error> {
        let failed = |cause| Error::Listen { address, cause };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, key })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its client must have.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Waits for the client. Nobody else is answered or waited for; `told` hears of the first few
    /// who seem to be a client gone wrong. From then on nothing listens any more.
    ///
    /// # Errors
    ///
    /// [`Error::NoClient`] when the wait is over, [`Error::StoppedWaiting`].
    pub fn wait(
        self,
        patience: Duration,
        interrupt: Option<&Interrupt>,
        told: &mut dyn FnMut(&str),
    ) -> Result<ClientSession, Error> {
        let deadline = Deadline::after(patience);
        let mut callers = Vec::<Caller>::new();
        let mut rejections = 0;
        // Where the system can take no more connections, it is asked again a little later.
        let mut accept_from = Deadline::after(Duration::ZERO);
        while !deadline.is_over() {
            let next = callers.iter().map(|caller| caller.deadline).fold(deadline, Deadline::earlier);
            let mut fds: Vec<_> =
                callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN)).collect();
            let next = if accept_from.is_over() {
                fds.push(PollFd::new(&self.listener, PollFlags::IN));
                next
            } else {
                next.earlier(accept_from)
            };
            wait(fds, next, interrupt).map_err(|error| match error {
                Error::Interrupted { signal } => Error::StoppedWaiting { signal },
                other => other,
            })?;
            if accept_from.is_over() && !self.accept(&mut callers) {
                accept_from = Deadline::after(ACCEPT_PAUSE);
            }
            let mut index = 0;
            while let Some(caller) = callers.get_mut(index) {
                match caller.listen() {
                    Call::Going => index += 1,
                    Call::Client(channel) => {
                        let Caller { stream, address, .. } = callers.swap_remove(index);
                        return Ok(ClientSession::new(stream, address, channel));
                    }
                    Call::Over(why) => {
                        let caller = callers.swap_remove(index);
                        why.iter().for_each(|why| caller.tell(why, &mut rejections, told));
                    }
                }
            }
        }
        Err(Error::NoClient { waited_s: patience.as_secs() })
    }

    /// Accepts a few callers. False if the system refuses.
    fn accept(&self, callers: &mut Vec<Caller>) -> bool {
        for _ in 0..ACCEPTED_A_TURN {
            let (stream, address) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return true,
                    // Hung up while waiting to be accepted.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => continue,
                    _ => {
                        drop_one(callers);
                        return false;
                    }
                },
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            // A reply goes out at once: Nagle's algorithm would only delay it.
            let _ = stream.set_nodelay(true);
            if callers.len() == CALLERS_MAX {
                drop_one(callers);
            }
            let responder = Responder::new(&self.key);
            let deadline = Deadline::after(HANDSHAKE_TIMEOUT);
            callers.push(Caller { stream, address, responder, deadline });
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
                (Ok(Some(channel)), _) => return Call::Client(channel),
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
