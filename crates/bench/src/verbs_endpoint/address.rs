//! What ranks tell each other, so that their queue pairs can be connected.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use verbs::{GidEntry, GidKind, Remote};

use crate::Error;
use crate::endpoint::connecting;

/// Where a rank is: what all ranks of a point are told.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    pub(super) gid: Option<GidAddress>,
    pub(super) lid: u16,
    /// RDMA Reads and atomics of a queue pair that this end can answer, and can have under way, at
    /// the same time.
    pub(super) responder_reads: u8,
    pub(super) initiator_reads: u8,
    /// Where RDMA CM finds it, at the rank that listens.
    pub(super) manager: Option<SocketAddr>,
    /// The multicast group that it sends to.
    pub(super) group: Option<[u8; 16]>,
}

/// What a rank has for one other, and tells that one alone.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerParams {
    /// Queue pairs, in turn.
    pub(super) pairs: Vec<PairAddress>,
    /// Where the other's one-sided operations go.
    pub(super) target: Option<Target>,
    /// Where the other's signals go.
    pub(super) signal: Option<Target>,
    /// Where the other's messages of what all ranks do together go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) joint: Option<Targets>,
}

/// What a rank has told this one.
pub(super) type PeerInfo = connecting::PeerInfo<Address, PeerParams>;

/// A queue pair, as a peer has to know it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PairAddress {
    pub(super) qp_num: u32,
    pub(super) psn: u32,
}

/// Memory for one-sided operations.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    pub(super) addr: u64,
    pub(super) rkey: u32,
}

/// Memory for the messages of what all ranks do together.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Targets {
    /// Those of the calls that are measured.
    pub(super) measured: Target,
    /// Those by which ranks begin together.
    pub(super) control: Target,
    /// Numbers between two ranks.
    pub(super) mailboxes: Target,
}

impl Target {
    /// The memory so many bytes behind this.
    ///
    /// # Errors
    /// [`Error::PeerAddress`] where the peer told an address behind which there is no more.
    pub(super) fn at(self, offset: usize) -> Result<Remote, Error> {
        let addr = self.addr.checked_add(offset as u64).ok_or_else(|| Error::PeerAddress {
            reason: format!("{offset} bytes behind {:#x} no memory has an address", self.addr),
        })?;
        Ok(Remote { addr, rkey: self.rkey })
    }
}

impl From<Remote> for Target {
    fn from(remote: Remote) -> Self {
        Self { addr: remote.addr, rkey: remote.rkey }
    }
}

/// A GID as ranks tell it each other.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GidAddress {
    gid: [u8; 16],
    index: u8,
    #[serde(with = "Kind")]
    kind: GidKind,
}

/// How a [`GidKind`] is told.
#[derive(Deserialize, Serialize)]
#[serde(remote = "GidKind", rename_all = "snake_case")]
enum Kind {
    InfiniBand,
    RoceV1,
    RoceV2,
    Unknown,
}

impl GidAddress {
    pub(crate) fn new(entry: &GidEntry) -> Self {
        Self { gid: entry.gid.0, index: entry.index, kind: entry.kind }
    }

    pub(crate) fn entry(&self) -> GidEntry {
        GidEntry { index: self.index, gid: verbs::Gid(self.gid), kind: self.kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_behind_the_last_address_is_refused() {
        let target = |addr| Target { addr, rkey: 3 };
        assert_eq!(target(16).at(8).unwrap().addr, 24);
        assert!(matches!(target(u64::MAX - 4).at(8), Err(Error::PeerAddress { .. })));
    }
}
