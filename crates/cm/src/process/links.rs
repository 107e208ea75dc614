//! Sockets between processes, and those by which others reach this one.
//!
//! Both ends belong to the same user: the kernel says who is there. A message is a packet; what the
//! kernel has no room for waits here.

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

/// The key of what wakes the thread.
pub(crate) const BELL: u64 = 0;

/// Messages that wait at most for a peer that takes none: after that they are lost, and sent again
/// some seconds later.
const MOST_WAITING: usize = 1 << 16;

/// Messages, or connections, that are taken from a socket before others have their turn.
pub(crate) const SHARE: usize = 64;

/// How long listening sockets are left out: see [`Links::resume`].
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// What the thread has seen.
pub(crate) enum Seen {
    /// A message has come.
    Message(Link, Vec<u8>),
    /// The peer has ended.
    End(Link),
}

struct Connection {
    socket: Private,
    /// The process at the other end, where this process has connected to it and can see it.
    process: Option<NonZeroU32>,
    waiting: VecDeque<Vec<u8>>,
}

/// What the thread waits for, and the listening sockets among it, by key.
struct Waited {
    epoll: OwnedFd,
    listeners: Mutex<HashMap<u64, Private>>,
}

impl Waited {
    fn listeners(&self) -> MutexGuard<'_, HashMap<u64, Private>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits from now on for this at a socket, which is among those that are waited for.
    fn watch(&self, key: u64, socket: &Private, flags: EventFlags) {
        let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(key), flags);
    }

    /// Waits for a socket no longer. Closing it would not do where a child has a copy.
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
    /// Listening sockets that nobody waits for until there are descriptors for connections.
    paused: Vec<u64>,
    next: u64,
}

impl Links {
    /// With something that wakes who waits.
    pub(crate) fn new(bell: BorrowedFd<'_>) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let waited = Arc::new(Waited { epoll, listeners: Mutex::default() });
        Ok(Self { waited, connections: HashMap::new(), paused: Vec::new(), next: BELL + 1 })
    }

    /// What is waited on.
    pub(crate) fn waiter(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.waited.epoll, 0)
    }

    fn key(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Takes connections from a listening socket from now on.
    pub(crate) fn listen(&mut self, socket: Private) -> Result<Listening, Errno> {
        let key = self.key();
        epoll::add(&self.waited.epoll, &socket, EventData::new_u64(key), EventFlags::IN)?;
        let waited = Arc::clone(&self.waited);
        waited.listeners().insert(key, socket);
        Ok(Listening { waited, key })
    }

    /// A connection to a process: the one that there is already, or this one.
    ///
    /// # Errors
    /// `EPERM` where the process is another user's.
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

    /// The connection to a process that there is already. Those that cannot be seen may all be
    /// different ones.
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

    /// Sends a message, or keeps it until there is room.
    pub(crate) fn send(&mut self, link: Link, message: &[u8]) {
        let Some(connection) = self.connections.get_mut(&link.0) else { return };
        if connection.waiting.is_empty() {
            match rustix::net::send(&connection.socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::NOBUFS) => {}
                // Sent, or the peer is gone: the thread sees the hang-up.
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

    /// Waits again for listening sockets that were left out, since the process or the host had no
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

    /// Whether [`resume`](Self::resume) is to be called soon.
    pub(crate) fn is_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// What is to be seen at a socket that is ready; `None` when there is no more.
    pub(crate) fn look(&mut self, key: u64) -> Option<Seen> {
        self.accept(key);
        self.flush(key);
        let connection = self.connections.get(&key)?;
        let mut message = vec![0; crate::wire::Mad::BYTES + 1];
        let mut receive = || rustix::net::recv(&connection.socket, &mut message[..], RecvFlags::DONTWAIT);
        // A peer that died before it had read everything: its own messages come after this error.
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

    /// Takes the connections of a listening socket.
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
                // Not one of those that this process finds others by: two that connect to each
                // other at a time have two.
                let _ = self.insert(socket, None);
            }
        }
    }

    /// Sends what has waited.
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
