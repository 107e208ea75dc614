//! What ranks tell each other to connect their sockets.

use serde::{Deserialize, Serialize};

use super::address::Reachable;
use crate::endpoint::connecting;

/// The addresses of a rank, which all ranks of a point get.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    pub(super) reachable: Reachable,
}

/// What a rank tells one other rank alone.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerParams {
    /// Its sockets for this rank, one for each lane; or the listener for all lanes.
    pub(super) sockets: Vec<Name>,
    /// The first bytes of a connection, which identify its rank.
    pub(super) token: u64,
}

/// The name of a socket on its host.
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
