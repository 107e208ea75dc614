//! Other tools that measure the same points: iperf3, qperf and sockperf.

use super::carrier::Carrier;
use super::choice::choice;

choice! {
    /// Another program that measures points: the axis `tool`, whose value `rdmascope` is this
    /// program. It runs in place of the ranks, between the same addresses, so that the numbers of
    /// several tools can be compared, as Gamess 2016 does.
    pub enum Tool {
        /// iperf3 (ESnet), for throughput.
        Iperf3 = "iperf3",
        /// qperf (linux-rdma).
        Qperf = "qperf",
        /// sockperf (Mellanox), for latency.
        Sockperf = "sockperf",
    }
}

impl Tool {
    /// The shortest message that it sends, in bytes: its header must fit (`MIN_PAYLOAD` of
    /// sockperf; the header of iperf3 over UDP).
    pub fn size_bytes_min(self, endpoint: Carrier) -> u64 {
        match self {
            Self::Iperf3 if endpoint == Carrier::Udp => 16,
            Self::Sockperf => 14,
            Self::Iperf3 | Self::Qperf => 1,
        }
    }
}

/// The axes that mean the same for every tool. Another tool decides the rest itself, so its points
/// do not have the other axes.
const COMMON: [&str; 8] =
    ["direction", "endpoint", "environment", "family", "ipoib_mode", "link_layer", "size_bytes", "tool"];

/// Whether points that another tool measures have an axis.
pub(crate) fn is_common(axis: &str) -> bool {
    COMMON.contains(&axis)
}
