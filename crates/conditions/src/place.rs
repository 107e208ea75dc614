//! The placement of ranks.

use serde::{Deserialize, Serialize};

/// The placement of a rank.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Its number.
    pub rank: u32,
    /// The CPUs that it is pinned to, if it is pinned.
    pub pinned: Option<Vec<u32>>,
    /// The CPUs that all ranks of the host are pinned to, each once for every rank on it.
    pub ranks: Vec<u32>,
    /// The name of its RDMA device.
    pub device: Option<String>,
    /// The IPoIB interfaces that its messages may take.
    pub ipoib: Vec<String>,
}

/// The ranks of a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ranks {
    /// How many there are if they are pinned, otherwise 0.
    pub(crate) count: usize,
    /// The CPUs that they are pinned to, each once for every rank on it.
    pub(crate) cpus: Vec<u32>,
    /// The IPoIB interfaces that their messages may take.
    pub(crate) interfaces: Vec<String>,
}
