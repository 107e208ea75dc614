//! The bytes that a message puts on a link: its packets, and their headers.

use measure::record::Device;
use serde_json::Value;

/// The layer that carries the packets of a queue pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layer {
    /// InfiniBand, within a subnet.
    InfiniBand,
    /// RoCE over Ethernet, without IP.
    RoceV1,
    /// RoCE over UDP and IPv4.
    RoceV2,
    /// RoCE over UDP and IPv6.
    RoceV2Ipv6,
}

impl Layer {
    /// The layer of a measured device; `None` where its record does not say.
    pub fn of(device: &Device) -> Option<Self> {
        let attribute = |name| device.attributes.get(name).and_then(Value::as_str);
        match (attribute("link_layer")?, attribute("gid_type")) {
            ("InfiniBand", _) => Some(Self::InfiniBand),
            ("Ethernet", Some("RoCE v1")) => Some(Self::RoceV1),
            ("Ethernet", Some("RoCE v2")) => {
                let is_mapped =
                    attribute("gid").is_some_and(|gid| gid.contains("ffff:") && gid.starts_with("::"));
                Some(if is_mapped { Self::RoceV2 } else { Self::RoceV2Ipv6 })
            }
            _ => None,
        }
    }

    /// The bytes around the payload of a packet of a connected service. InfiniBand: local route
    /// header (8), base transport header (12), invariant and variant CRC (4 and 2; InfiniBand
    /// Architecture Specification, vol. 1, sections 7.7, 7.8 and 9.2). RoCE: preamble and gap (20),
    /// Ethernet (14 and 4), a global route header (40; Annex A16) or IPv4 (20) or IPv6 (40) and UDP
    /// (8; Annex A17), base transport header and invariant CRC.
    pub fn header_bytes(self) -> u64 {
        match self {
            Self::InfiniBand => 8 + 12 + 4 + 2,
            Self::RoceV1 => 20 + 18 + 40 + 12 + 4,
            Self::RoceV2 => 20 + 18 + 20 + 8 + 12 + 4,
            Self::RoceV2Ipv6 => 20 + 18 + 40 + 8 + 12 + 4,
        }
    }
}

/// The bytes that a message puts on a link in one direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Transfer {
    /// Bytes of the program's payload.
    pub(crate) payload_bytes: u64,
    /// Packets that carry them.
    pub(crate) packets: u64,
    /// Extended transport headers of all packets together, in bytes.
    pub(crate) extended_bytes: u64,
}

impl Transfer {
    /// Computes what a message of an operation over a service puts on its link, where packets carry
    /// up to `mtu` bytes: in the direction of its payload, and in the other direction.
    /// Acknowledgements are not counted: one may answer any number of messages (section 9.7.5.1 of
    /// the specification, coalesced acknowledge messages). The request of a read and both
    /// directions of an atomic are counted. `None` for an unknown service or operation.
    pub(crate) fn of(service: &str, operation: &str, mtu: u64, size: u64) -> Option<(Self, Option<Self>)> {
        let packets = size.div_ceil(mtu).max(1);
        let with = |extended_bytes| Self { payload_bytes: size, packets, extended_bytes };
        let alone = |extended_bytes| Some(Self { payload_bytes: 0, packets: 1, extended_bytes });
        // A datagram is one packet.
        let datagram = if service == "UD" { DATAGRAM } else { 0 };
        Some(match operation {
            "multicast" | "send" => (with(datagram), None),
            "send_imm" => (with(datagram + IMMEDIATE), None),
            "write" => (with(RDMA), None),
            "write_imm" => (with(RDMA + IMMEDIATE), None),
            // In the response of a read, the first and the last packet acknowledge.
            "read" => (with(ACKNOWLEDGE * packets.min(2)), alone(RDMA)),
            // The old value comes in the header AtomicAckETH, which has as many bytes as the
            // operand.
            "fetch_add" | "compare_swap" => (with(ACKNOWLEDGE), alone(ATOMIC)),
            _ => return None,
        })
    }
}

/// Extended transport headers, in bytes (section 9.3): datagram (DETH), immediate data (ImmDt),
/// RDMA (RETH), acknowledgement (AETH), atomic (AtomicETH).
const DATAGRAM: u64 = 8;
const IMMEDIATE: u64 = 4;
const RDMA: u64 = 16;
const ACKNOWLEDGE: u64 = 4;
const ATOMIC: u64 = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_its_packets_with_their_headers() {
        let way =
            |(payload_bytes, packets, extended_bytes)| Transfer { payload_bytes, packets, extended_bytes };
        for (service, operation, size, with, other) in [
            ("RC", "send", 0, (0, 1, 0), None),
            ("UC", "send", 2048, (2048, 1, 0), None),
            ("RC", "send", 2049, (2049, 2, 0), None),
            ("RC", "send_imm", 4096, (4096, 2, 4), None),
            ("UD", "send", 64, (64, 1, 8), None),
            ("UD", "send_imm", 64, (64, 1, 8 + 4), None),
            ("RC", "write", 1 << 20, (1 << 20, 512, 16), None),
            ("UC", "write_imm", 4096, (4096, 2, 16 + 4), None),
            ("RC", "read", 64, (64, 1, 4), Some((0, 1, 16))),
            ("RC", "read", 8192, (8192, 4, 8), Some((0, 1, 16))),
            ("RC", "fetch_add", 8, (8, 1, 4), Some((0, 1, 28))),
        ] {
            let expected = Some((way(with), other.map(way)));
            assert_eq!(
                Transfer::of(service, operation, 2048, size),
                expected,
                "{service} {operation} {size}"
            );
        }
        assert_eq!(Transfer::of("RC", "pray", 2048, 8), None);
    }

    #[test]
    fn a_packet_has_the_headers_of_its_layer() {
        let bytes =
            [Layer::InfiniBand, Layer::RoceV1, Layer::RoceV2, Layer::RoceV2Ipv6].map(Layer::header_bytes);
        assert_eq!(bytes, [26, 94, 82, 102]);
    }

    #[test]
    fn the_layer_is_that_of_the_device() {
        let layer = |link: &str, kind: &str, gid: &str| {
            let attributes = serde_json::json!({ "link_layer": link, "gid_type": kind, "gid": gid });
            let device =
                serde_json::json!({ "rank": 0, "name": "d", "provider": "p", "attributes": attributes });
            Layer::of(&serde_json::from_value(device).unwrap())
        };
        assert_eq!(layer("InfiniBand", "IB", "fe80::1"), Some(Layer::InfiniBand));
        assert_eq!(layer("Ethernet", "RoCE v1", "fe80::1"), Some(Layer::RoceV1));
        assert_eq!(layer("Ethernet", "RoCE v2", "::ffff:10.0.2.15"), Some(Layer::RoceV2));
        assert_eq!(layer("Ethernet", "RoCE v2", "fe80::1"), Some(Layer::RoceV2Ipv6));
        assert_eq!(layer("Other(0)", "type unknown", "fe80::1"), None);
    }
}
