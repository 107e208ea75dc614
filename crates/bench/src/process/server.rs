//! The server, which a user started by hand: waits for the one client that has the key, and rejects
//! all other connections.

use std::net::SocketAddr;
use std::time::Duration;

use measure::clock::Deadline;

use super::client_session::ClientSession;
use super::interrupt::Interrupt;
use super::key::Key;
use super::listener::{Admitted, Listener};
use super::wait::wait;
use crate::Error;

/// The default TCP port of servers. It spells RDMA on the keys of a telephone. It is unassigned
/// (IANA), no port of perftest, qperf and similar tools, and outside of the kernel's range for
/// outgoing connections.
pub const PORT: u16 = 7362;

/// A server that listens.
pub struct Server(Listener);

impl Server {
    /// Listens for a client with the key. Port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// If the address is not of this host or the port is taken.
    pub fn listen(address: SocketAddr, key: Key) -> Result<Self, Error> {
        Listener::new(address, key).map(Self)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Returns the key that the client must have.
    pub fn key(&self) -> &Key {
        self.0.key()
    }

    /// Waits for the client with the key, and then stops listening. Other callers do not delay it.
    /// `told` is called for the first few callers with another key or version.
    ///
    /// # Errors
    ///
    /// [`Error::NoClient`] when the wait is over, [`Error::StoppedWaiting`] after a signal.
    pub fn wait(
        self,
        patience: Duration,
        interrupt: Option<&Interrupt>,
        told: &mut dyn FnMut(&str),
    ) -> Result<ClientSession, Error> {
        let mut listener = self.0;
        let deadline = Deadline::after(patience);
        while !deadline.is_over() {
            wait(listener.interest(), listener.next_turn(deadline), interrupt).map_err(
                |error| match error {
                    Error::Interrupted { signal } => Error::StoppedWaiting { signal },
                    other => other,
                },
            )?;
            if let Some(Admitted { stream, address, channel }) = listener.turn(told) {
                return Ok(ClientSession::new(stream, address, channel));
            }
        }
        Err(Error::NoClient { waited_s: patience.as_secs() })
    }
}
