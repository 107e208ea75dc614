//! Sockets as an endpoint: connections (TCP, SCTP, Unix streams) and datagrams (UDP, Unix
//! datagrams).
//!
//! ```text
//! Unconnected ── addresses over the control plane ──► SocketEndpoint
//!   setup.rs: sockets that are bound or listen    connect.rs     endpoint.rs, lane.rs: one of
//!   options.rs: how they are                      address.rs       stream.rs: bytes in their order
//!                                                 callers.rs         zero_copy.rs: of messages that are not copied
//!                                                                  datagram.rs, lists.rs: messages by themselves
//!                                                                    stop_and_wait.rs: asked again, track.rs: counted
//!                                                                drain.rs: a thread that takes what a load sends
//! ```
//!
//! A message is of the size that the point says, no byte more: its first ones say what it is.
//!
//! # Invariants
//!
//! * Messages over sockets are of the size that is said, no byte more: their first ones say what
//!   they are. Where messages alternate over what loses some, who asked asks again; the time of
//!   that patience is no latency, and the loss is counted. A flood loses what it loses, told from
//!   what came twice and what came late.
//! * A sleep for a message of one socket costs one system call, in which the kernel waits; an alarm
//!   keeps its limit.

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
