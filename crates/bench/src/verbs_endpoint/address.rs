//! What ranks tell each other to connect their queue pairs.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use verbs::{GidEntry, GidKind, Remote};

use crate::Error;
use crate::endpoint::connecting;

/// The addresses of a rank, which all ranks of a point get.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    pub(super) gid: Option<GidAddress>,
    pub(super) lid: u16,
    /// How many RDMA Reads and atomics a queue pair of this rank can answer, and can have
    /// outstanding, at the same time.
    pub(super) responder_reads: u8,
    pub(super) initiator_reads: u8,
    /// The address of the rank that listens, for RDMA CM.
    pub(super) manager: Option<SocketAddr>,
    /// The multicast group that the rank sends to.
    pub(super) group: Option<[u8; 16]>,
}

/// What a rank tells one other rank alone.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerParams {
    /// Its queue pairs, in turn.
    pub(super) pairs: Vec<PairAddress>,
    /// The target of the other rank's one-sided operations.
    pub(super) target: Option<Target>,
    /// The target of the other rank's signals.
    pub(super) signal: Option<Target>,
    /// The targets of the other rank's messages in joint operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) joint: Option<Targets>,
}

/// What a rank has told this one.
pub(super) type PeerInfo = connecting::PeerInfo<Address, PeerParams>;

/// A queue pair, as a peer needs to know it.
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

/// Memory for the messages of joint operations.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Targets {
    /// For the measured calls.
    pub(super) measured: Target,
    /// For the calls by which ranks start together.
    pub(super) control: Target,
    /// For numbers between two ranks.
    pub(super) mailboxes: Target,
}

impl Target {
    /// Returns the memory `offset` bytes after this address.
    ///
    /// # Errors
    /// [`Error::PeerAddress`] if the sum is no address.
    pub(super) fn at(self, offset: usize) -> Result<Remote, Error> {
        let addr = self.addr.checked_add(offset as u64).ok_or_else(|| Error::PeerAddress {
            reason: format!("there is no address {offset} bytes after {:#x}", self.addr),
        })?;
        Ok(Remote { addr, rkey: self.rkey })
    }
}

impl From<Remote> for Target {
    fn from(remote: Remote) -> Self {
        Self { addr: remote.addr, rkey: remote.rkey }
    }
}

/// A GID as ranks tell it to each other.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GidAddress {
    gid: [u8; 16],
    index: u8,
    #[serde(with = "Kind")]
    kind: GidKind,
}

/// The serialised form of [`GidKind`].
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
