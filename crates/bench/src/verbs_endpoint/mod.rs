//! The adapter that makes an endpoint of queue pairs: the only place where verbs meet patterns.
//!
//! ```text
//! LocalPort ─► Unconnected ── addresses over the control plane ──► VerbsEndpoint
//!   port.rs      setup.rs, buffers.rs   connect.rs, requests.rs,   endpoint.rs, lane.rs, numbering.rs,
//!                                       managed.rs                 signs.rs, waiting.rs
//!                objects.rs: objects that are made and taken away, to time that
//! ```

mod alarm;
mod buffers;
mod connect;
mod endpoint;
mod failure;
mod lane;
mod managed;
mod numbering;
mod objects;
mod place;
mod port;
mod requests;
mod setup;
mod signs;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use measure::clock::Domain;
use serde::de::Error;
use serde::{Deserialize, Serialize};
use verbs::Remote;

use crate::point::Part;
use crate::process::message::Neighbour;
use crate::shared;

pub(crate) use endpoint::VerbsEndpoint;
pub(crate) use objects::Objects;
use place::Place;
use port::GidAddress;
pub use port::{LocalPort, PortOptions};
pub(crate) use setup::{Unconnected, inline_bytes_max};

/// Q_Key of datagrams: perftest's.
const QKEY: u32 = 0x1111_1111;
/// What messages consist of: anything but zeroes, which a kernel may keep as no memory at all.
const FILL: u8 = 0x5a;
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
    /// Memory of the barrier that it would lead.
    meeting: Option<shared::Handle>,
    /// Where it runs.
    place: Place,
    /// Which clock it reads.
    clock: Domain,
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
#[derive(Clone, Debug)]
pub(crate) struct Told {
    address: Address,
    /// Absent where the two do not connect.
    way: Option<Way>,
}

impl Told {
    /// Reads what came over the control plane of a part of the point. Of a rank that has nothing to do with it, the address that
    /// it has in another says where it runs.
    pub(crate) fn read(told: &Neighbour, part: Part) -> Result<Self, serde_json::Error> {
        let mut addresses = BTreeMap::<Part, Address>::deserialize(&told.address)?;
        let address = addresses.remove(&part).or_else(|| addresses.into_values().next());
        let address = address.ok_or_else(|| serde_json::Error::custom("a rank has no address"))?;
        let ways = Option::<BTreeMap<Part, Way>>::deserialize(&told.way)?;
        Ok(Self { address, way: ways.and_then(|mut ways| ways.remove(&part)) })
    }
}

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
