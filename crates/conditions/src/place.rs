//! Where ranks are.

use serde::{Deserialize, Serialize};

/// Where a rank is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Its number.
    pub rank: u32,
    /// CPUs that it is pinned to, if so.
    pub pinned: Option<Vec<u32>>,
    /// CPUs that all ranks of the host are pinned to, each as often as a rank has it.
    pub ranks: Vec<u32>,
    /// Name of its RDMA device.
    pub device: Option<String>,
    /// IPoIB interfaces that its messages may take.
    pub ipoib: Vec<String>,
}

/// The ranks of a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ranks {
    /// How many there are, where they are pinned: none elsewhere.
    pub(crate) count: usize,
    /// CPUs that they are pinned to, each as often as a rank has it.
    pub(crate) cpus: Vec<u32>,
    /// IPoIB interfaces that their messages may take.
    pub(crate) interfaces: Vec<String>,
}
