//! The end that was started first, by hand: waits for the one client that has the key, whoever else
//! knocks.

use std::net::SocketAddr;
use std::time::Duration;

use measure::clock::Deadline;

use super::client_session::ClientSession;
use super::interrupt::Interrupt;
use super::key::Key;
use super::listener::{Admitted, Listener};
use super::wait::wait;
use crate::Error;

/// The TCP port of everything that is started by hand. It spells RDMA on the keys of a telephone,
/// is assigned to nobody (IANA), is no port of the field's tools and none that a kernel gives to
/// outgoing connections.
pub const PORT: u16 = 7362;

/// A server that listens.
pub struct Server(Listener);

impl Server {
    /// Listens for whoever has the key. Port 0 takes one that is free.
    ///
    /// # Errors
    ///
    /// If the address is not of this host or the port is taken.
    pub fn listen(address: SocketAddr, key: Key) -> Result<Self, Error> {
        Listener::new(address, key).map(Self)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// What its client must have.
    pub fn key(&self) -> &Key {
        self.0.key()
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
