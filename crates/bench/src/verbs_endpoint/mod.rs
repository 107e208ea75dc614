//! The adapter that makes an endpoint of queue pairs: the only place where verbs meet patterns.
//!
//! ```text
//! LocalPort ─► Unconnected ── addresses over the control plane ──► VerbsEndpoint
//!   port.rs      setup.rs, buffers.rs   connect.rs, requests.rs,   endpoint.rs, lane.rs, numbering.rs,
//!                                       managed.rs                 samples.rs, signs.rs, waiting.rs
//!                objects.rs: objects that are made and taken away, to time that
//! ```

mod buffers;
mod connect;
mod endpoint;
mod failure;
mod lane;
mod managed;
mod numbering;
mod objects;
mod parts;
mod port;
mod requests;
mod samples;
mod setup;
mod signs;
#[cfg(test)]
mod tests;
mod waiting;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use verbs::Remote;

use crate::endpoint::connecting;

pub(crate) use endpoint::VerbsEndpoint;
pub(crate) use objects::Objects;
use port::GidAddress;
pub use port::{LocalPort, PortOptions};
pub(crate) use setup::{Unconnected, inline_bytes_max};

/// Q_Key of datagrams: perftest's.
const QKEY: u32 = 0x1111_1111;
/// Receives that a queue pair keeps posted where nothing but greetings arrives.
const GREETINGS: u32 = 4;
/// Immediate data of the last message and of greetings.
const LAST: u32 = u32::from_be_bytes(*b"last");
/// Immediate data of every other message, where the operation has some.
const MORE: u32 = u32::from_be_bytes(*b"more");

/// Where a rank is: what all ranks of a point are told.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    gid: Option<GidAddress>,
    lid: u16,
    /// RDMA Reads and atomics of a queue pair that this end can answer, and can have under way, at the same time.
    responder_reads: u8,
    initiator_reads: u8,
    /// Where RDMA CM finds it, at the rank that listens.
    manager: Option<SocketAddr>,
    /// The multicast group that it sends to.
    group: Option<[u8; 16]>,
}

/// What a rank has for one other, and tells that one alone.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Way {
    /// Queue pairs, in turn.
    pairs: Vec<PairAddress>,
    /// Where the other's one-sided operations go.
    target: Option<Target>,
    /// Where the other's signals go.
    signal: Option<Target>,
}

/// What a rank has told this one.
pub(crate) type Told = connecting::Told<Address, Way>;

/// A queue pair, as a peer has to know it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PairAddress {
    qp_num: u32,
    psn: u32,
}

/// Memory for one-sided operations.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Target {
    addr: u64,
    rkey: u32,
}

impl From<Remote> for Target {
    fn from(remote: Remote) -> Self {
        Self { addr: remote.addr, rkey: remote.rkey }
    }
}
