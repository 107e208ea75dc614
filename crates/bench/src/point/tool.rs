//! Programs of others that measure the same.

use super::carrier::Carrier;
use super::choice::choice;

choice! {
    /// Another program that measures points: the axis `tool`, where `rdmascope` is this one. Its
    /// ends run where the ranks do, and its messages go between the same addresses as this
    /// program's, so that their numbers can be compared (G34 of the evaluations).
    pub enum Tool {
        /// iperf3 (ESnet), of which throughput is taken.
        Iperf3 = "iperf3",
        /// qperf (linux-rdma).
        Qperf = "qperf",
        /// sockperf (Mellanox), of which latency is taken.
        Sockperf = "sockperf",
    }
}

impl Tool {
    /// The shortest message that it sends, in bytes: its header must have room (sockperf's
    /// `MIN_PAYLOAD`; iperf3's of UDP).
    pub fn size_bytes_min(self, endpoint: Carrier) -> u64 {
        match self {
            Self::Iperf3 if endpoint == Carrier::Udp => 16,
            Self::Sockperf => 14,
            Self::Iperf3 | Self::Qperf => 1,
        }
    }
}

/// What of a point's axes is so whoever measures it: the rest is as each program has it, and no
/// part of others' points.
const COMMON: [&str; 8] =
    ["direction", "endpoint", "environment", "family", "ipoib_mode", "link_layer", "size_bytes", "tool"];

/// Whether an axis says something of points that other programs measure.
pub(crate) fn is_common(axis: &str) -> bool {
    COMMON.contains(&axis)
}
