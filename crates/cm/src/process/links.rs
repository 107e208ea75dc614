//! Sockets between processes, and listening sockets.
//!
//! Both processes belong to the same user, which the kernel's peer credentials show. A message is a
//! packet; messages that the kernel has no buffer for wait here.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};
use system::Peer;

use crate::host::Link;
use crate::process::forks::Private;

/// The key of the descriptor that wakes the thread.
pub(crate) const BELL: u64 = 0;

/// The most messages that wait for a peer that takes none. Further messages are lost, and sent
/// again some seconds later.
const MOST_WAITING: usize = 1 << 16;

/// The most messages, or connections, that are taken from one socket before other sockets.
pub(crate) const SHARE: usize = 64;

/// How long listening sockets are not watched: see [`Links::resume`].
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// An event at a socket.
pub(crate) enum Seen {
    /// A message has arrived.
    Message(Link, Vec<u8>),
    /// The peer has ended.
    End(Link),
}

struct Connection {
    socket: Private,
    /// The peer's process, if this process has connected to it and can see its ID.
    process: Option<NonZeroU32>,
    waiting: VecDeque<Vec<u8>>,
}

/// The epoll instance that the thread waits on, and the listening sockets in it by key.
struct Waited {
    epoll: OwnedFd,
    listeners: Mutex<HashMap<u64, Private>>,
}

impl Waited {
    fn listeners(&self) -> MutexGuard<'_, HashMap<u64, Private>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the events to wait for at a watched socket.
    fn watch(&self, key: u64, socket: &Private, flags: EventFlags) {
        let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(key), flags);
    }

    /// Stops watching a socket. Closing it is not enough if a child has a copy.
    fn remove(&self, socket: Private) {
        let _ = epoll::delete(&self.epoll, &socket);
    }
}

/// Dropping a `Listening` closes its socket.
pub(crate) struct Listening {
    waited: Arc<Waited>,
    key: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let socket = self.waited.listeners().remove(&self.key);
        if let Some(socket) = socket {
            self.waited.remove(socket);
        }
    }
}

/// All sockets of this process.
pub(crate) struct Links {
    waited: Arc<Waited>,
    connections: HashMap<u64, Connection>,
    /// Listening sockets that are not watched until there are descriptors for connections.
    paused: Vec<u64>,
    next: u64,
}

impl Links {
    /// Makes links with the descriptor that wakes the thread.
    pub(crate) fn new(bell: BorrowedFd<'_>) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let waited = Arc::new(Waited { epoll, listeners: Mutex::default() });
        Ok(Self { waited, connections: HashMap::new(), paused: Vec::new(), next: BELL + 1 })
    }

    /// Returns a copy of the epoll descriptor.
    pub(crate) fn waiter(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.waited.epoll, 0)
    }

    fn key(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Starts to accept connections from a listening socket.
    pub(crate) fn listen(&mut self, socket: Private) -> Result<Listening, Errno> {
        let key = self.key();
        epoll::add(&self.waited.epoll, &socket, EventData::new_u64(key), EventFlags::IN)?;
        let waited = Arc::clone(&self.waited);
        waited.listeners().insert(key, socket);
        Ok(Listening { waited, key })
    }

    /// Returns a connection to a process: the existing one, or a new one with this socket.
    ///
    /// # Errors
    /// `EPERM` if the process belongs to another user.
    pub(crate) fn add(&mut self, socket: Private) -> Result<Link, Errno> {
        let peer = Peer::of(socket.as_fd())?;
        if !peer.is_of_own_user() {
            return Err(Errno::PERM);
        }
        match self.link_to(peer.process) {
            Some(link) => Ok(link),
            None => self.insert(socket, peer.process),
        }
    }

    /// Returns the existing connection to a process. Processes with an unknown ID may all be
    /// different.
    fn link_to(&self, process: Option<NonZeroU32>) -> Option<Link> {
        let process = process?;
        let found = self.connections.iter().find(|(_, other)| other.process == Some(process));
        found.map(|(key, _)| Link(*key))
    }

    fn insert(&mut self, socket: Private, process: Option<NonZeroU32>) -> Result<Link, Errno> {
        let key = self.key();
        epoll::add(&self.waited.epoll, &socket, EventData::new_u64(key), EventFlags::IN)?;
        self.connections.insert(key, Connection { socket, process, waiting: VecDeque::new() });
        Ok(Link(key))
    }

    /// Sends a message, or keeps it until the socket has space.
    pub(crate) fn send(&mut self, link: Link, message: &[u8]) {
        let Some(connection) = self.connections.get_mut(&link.0) else { return };
        if connection.waiting.is_empty() {
            match rustix::net::send(&connection.socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::NOBUFS) => {}
                // Sent, or the peer is gone: then the thread sees the hang-up.
                _ => return,
            }
        }
        if connection.waiting.len() < MOST_WAITING {
            connection.waiting.push_back(message.to_vec());
        }
        self.watch(link.0, EventFlags::IN | EventFlags::OUT);
    }

    fn watch(&self, key: u64, flags: EventFlags) {
        if let Some(connection) = self.connections.get(&key) {
            self.waited.watch(key, &connection.socket, flags);
        }
    }

    /// Watches listening sockets again that were left out because the process or the host had no
    /// descriptors for their connections.
    pub(crate) fn resume(&mut self) {
        let paused = std::mem::take(&mut self.paused);
        let listeners = self.waited.listeners();
        for key in &paused {
            if let Some(listener) = listeners.get(key) {
                self.waited.watch(*key, listener, EventFlags::IN);
            }
        }
    }

    /// Whether [`resume`](Self::resume) must be called soon.
    pub(crate) fn is_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Returns the next event of a socket that is ready; `None` if there is no more.
    pub(crate) fn look(&mut self, key: u64) -> Option<Seen> {
        self.accept(key);
        self.flush(key);
        let connection = self.connections.get(&key)?;
        let mut message = vec![0; crate::wire::Mad::BYTES + 1];
        let mut receive = || rustix::net::recv(&connection.socket, &mut message[..], RecvFlags::DONTWAIT);
        // A peer died before it had read everything: its own messages come after this error.
        let received = match receive() {
            Err(Errno::CONNRESET) => receive(),
            received => received,
        };
        match received {
            Ok((_, bytes)) if bytes > 0 => {
                message.truncate(bytes);
                Some(Seen::Message(Link(key), message))
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok(_) | Err(_) => {
                let ended = self.connections.remove(&key)?;
                self.waited.remove(ended.socket);
                Some(Seen::End(Link(key)))
            }
        }
    }

    /// Accepts the connections of a listening socket.
    fn accept(&mut self, key: u64) {
        for _ in 0..SHARE {
            let listeners = self.waited.listeners();
            let Some(listener) = listeners.get(&key) else { return };
            let accepted = rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
            let socket = match accepted {
                Ok(socket) => Private::from(socket),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    // The connection stays in its queue: the thread would be woken for ever.
                    self.waited.watch(key, listener, EventFlags::empty());
                    self.paused.push(key);
                    return;
                }
                Err(_) => return,
            };
            drop(listeners);
            if Peer::of(socket.as_fd()).is_ok_and(|peer| peer.is_of_own_user()) {
                // Not a link that this process finds peers by: two processes that connect to each
                // other at the same time have two links.
                let _ = self.insert(socket, None);
            }
        }
    }

    /// Sends the waiting messages.
    fn flush(&mut self, key: u64) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        if connection.waiting.is_empty() {
            return;
        }
        while let Some(message) = connection.waiting.front() {
            match rustix::net::send(&connection.socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::NOBUFS) => return,
                _ => drop(connection.waiting.pop_front()),
            }
        }
        self.watch(key, EventFlags::IN);
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::net::{AddressFamily, SocketType, socketpair};

    use super::*;

    fn links() -> Links {
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        Links::new(bell.as_fd()).unwrap()
    }

    fn pair() -> (Private, OwnedFd) {
        let kind = SocketType::SEQPACKET;
        let (own, peer) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        (Private::from(own), peer)
    }

    #[test]
    fn processes_that_cannot_be_seen_have_links_of_their_own() {
        let mut links = links();
        let (first, _peer) = pair();
        assert_eq!(Peer::of(first.as_fd()).unwrap().process, NonZeroU32::new(std::process::id()));
        let known = links.add(first).unwrap();
        assert_eq!(links.add(pair().0), Ok(known), "the same process");
        links.connections.get_mut(&known.0).unwrap().process = None;
        assert_eq!(links.link_to(None), None, "it may be another one");
        assert_ne!(links.add(pair().0), Ok(known));
    }

    #[test]
    fn the_last_messages_of_a_peer_that_died_are_taken() {
        let mut links = links();
        let (own, peer) = pair();
        let link = links.add(own).unwrap();
        links.send(link, b"unread");
        for message in [b"1", b"2"] {
            rustix::net::send(&peer, message, SendFlags::empty()).unwrap();
        }
        drop(peer);
        for expected in [b"1", b"2"] {
            let seen = links.look(link.0);
            assert!(matches!(seen, Some(Seen::Message(_, message)) if message == expected));
        }
        assert!(matches!(links.look(link.0), Some(Seen::End(_))));
        assert!(links.look(link.0).is_none());
    }
}
