//! What ranks tell each other, so that their sockets can be connected.

use serde::{Deserialize, Serialize};

use super::address::Reachable;
use crate::endpoint::connecting;

/// Where a rank is: what all ranks of a point are told.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    pub(super) reachable: Reachable,
}

/// What a rank has for one other, and tells that one alone.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerParams {
    /// Its sockets for this rank, one for each lane; or that to which all connect.
    pub(super) sockets: Vec<Name>,
    /// What a connection says first, so that nobody else's is taken for it.
    pub(super) token: u64,
}

/// What a socket is called, beside the address of its host.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Name {
    /// A port.
    Port(u16),
    /// An abstract name (unix(7)).
    Abstract(String),
}

/// What a rank has told this one.
pub(super) type PeerInfo = connecting::PeerInfo<Address, PeerParams>;
