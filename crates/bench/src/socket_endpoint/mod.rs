//! Sockets as an endpoint: connections (TCP, SCTP, Unix streams) and datagrams (UDP, Unix datagrams).
//!
//! ```text
//! Unconnected ── addresses over the control plane ──► SocketEndpoint
//!   setup.rs: sockets that are bound or listen    connect.rs     endpoint.rs, lane.rs: one of
//!   options.rs: how they are                      address.rs       stream.rs: bytes in their order
//!                                                 callers.rs         lent.rs: of messages that are not copied
//!                                                                  datagram.rs, lists.rs: messages by themselves
//!                                                                    alternation.rs: asked again, track.rs: counted
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
mod alternation;
mod callers;
mod connect;
mod datagram;
mod drain;
mod endpoint;
mod failure;
mod lane;
mod lent;
mod lists;
mod options;
mod setup;
mod stream;
#[cfg(test)]
mod tests;
mod track;

use serde::{Deserialize, Serialize};

use crate::endpoint::connecting;

pub use address::Net;
pub(crate) use address::Reachable;
pub(crate) use endpoint::SocketEndpoint;
pub(crate) use setup::{Unconnected, token};

/// How a rank's sockets are bound.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// Which addresses they may have.
    pub net: Net,
    /// The first port of those that they take, a rank after the other; the kernel's choice if absent.
    pub port: Option<u16>,
}

/// Where a rank is: what all ranks of a point are told.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    reachable: Reachable,
}

/// What a rank has for one other, and tells that one alone.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Way {
    /// Its sockets for this rank, one for each lane; or that to which all connect.
    sockets: Vec<Name>,
    /// What a connection says first, so that nobody else's is taken for it.
    token: u64,
}

/// What a socket is called, beside the address of its host.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    /// A port.
    Port(u16),
    /// An abstract name (unix(7)).
    Abstract(String),
}

/// What a rank has told this one.
type Told = connecting::Told<Address, Way>;
