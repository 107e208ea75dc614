//! Sockets as an endpoint: connections (TCP, SCTP, Unix streams) and datagrams (UDP, Unix
//! datagrams).
//!
//! ```text
//! Unconnected ── addresses over the control connection ──► SocketEndpoint
//!   setup.rs: bound or listening sockets   connect.rs     endpoint.rs, lane.rs: one of
//!   options.rs: their options              address.rs       stream.rs: a byte stream
//!                                          callers.rs         zero_copy.rs: sending without a copy
//!                                                           datagram.rs, lists.rs: datagrams
//!                                                             stop_and_wait.rs, track.rs: losses
//!                                                         drain.rs: a thread that receives a load
//! ```
//!
//! A message has exactly the size of the point: its first bytes hold its header.
//!
//! # Invariants
//!
//! * A message over sockets has exactly the size of the point: its first bytes hold its header.
//!   Where messages alternate on a lossy lane, the asking rank repeats a message that seems to be
//!   lost; the time of this wait is no latency, and the loss is counted. Messages that a stream
//!   loses stay lost, and are counted apart from duplicate and reordered ones.
//! * A sleep for a message of one socket costs one system call, in which the kernel waits; an alarm
//!   keeps the time limit.

mod address;
mod bare;
mod callers;
mod check;
mod connect;
mod datagram;
mod drain;
mod endpoint;
mod failure;
mod lane;
mod lists;
mod options;
mod peer;
mod setup;
mod stop_and_wait;
mod stream;
#[cfg(test)]
mod tests;
mod track;
mod zero_copy;

pub(crate) use address::Reachable;
pub use address::{Net, SocketOptions};
pub(crate) use bare::{Listening, connect as connect_bare};
pub(crate) use setup::{Unconnected, token};
