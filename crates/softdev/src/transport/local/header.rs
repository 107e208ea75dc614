//! The global route header in front of a datagram's payload.

use verbs::abi::*;

use crate::sys::limits::GRH_BYTES;
use crate::sys::settings::{LinkLayer, link_layer};

type Header = [u8; GRH_BYTES as usize];

/// The hop limit of packets.
const HOP_LIMIT: u8 = 64;
/// The protocol number of UDP.
const UDP: u8 = 17;

/// Returns the start of a datagram's buffer: the header (IBTA vol. 1, section 8.3) of a datagram
/// from the first to the second GID; for RoCE v2, the header of IPv6 or IPv4 (annex A17.4.5).
/// Without a header, these bytes are undefined: zeroes.
pub(crate) fn grh(
    payload_bytes: u64,
    has_immediate: bool,
    traffic_class: u8,
    ends: Option<[ibv_gid; 2]>,
) -> Header {
    /// IPv6, as in every GRH.
    const VERSION: u32 = 6;
    /// Base transport header, datagram header and integrity check of the packet that would carry
    /// it.
    const AROUND: u64 = 12 + 8 + 4;
    const IMMEDIATE: u64 = 4;
    let mut header = [0; GRH_BYTES as usize];
    let Some(ends) = ends else { return header };
    // The next header, and its size: UDP for RoCE v2, or InfiniBand's transport.
    let (next_header, next_bytes) = match link_layer() {
        LinkLayer::Ethernet => (UDP, 8),
        LinkLayer::Infiniband => (0x1b, 0),
    };
    let immediate = if has_immediate { IMMEDIATE } else { 0 };
    let length = (next_bytes + AROUND + immediate + payload_bytes.next_multiple_of(4)) as u16;
    if next_header == UDP
        && let Some(source) = ipv4(ends[0])
        && let Some(destination) = ipv4(ends[1])
    {
        return ipv4_header(length, traffic_class, source, destination);
    }
    header[..4].copy_from_slice(&(VERSION << 28 | u32::from(traffic_class) << 20).to_be_bytes());
    header[4..6].copy_from_slice(&length.to_be_bytes());
    (header[6], header[7]) = (next_header, HOP_LIMIT);
    header[8..24].copy_from_slice(&ends[0].raw);
    header[24..].copy_from_slice(&ends[1].raw);
    header
}

/// Returns what a datagram's completion on Ethernet has instead of the service level, which these
/// packets lack: the kind of header (annex A17.4.5.1 of RoCE v2), as in mlx5. UCX drops datagrams
/// with another kind of header (`uct_ud_iface_check_grh()`).
pub(crate) fn packet_type(ends: &[ibv_gid; 2]) -> u8 {
    const WITH_UDP: u8 = 8;
    const IPV6: u8 = 1;
    const IPV4: u8 = 2;
    let is_ipv4 = ends.iter().all(|end| ipv4(*end).is_some());
    WITH_UDP | if is_ipv4 { IPV4 } else { IPV6 }
}

/// The position of the IPv4 header: the bytes before it are undefined.
const IPV4_AT: usize = GRH_BYTES as usize - IPV4_BYTES;
/// The size of an IPv4 header without options.
const IPV4_BYTES: usize = 20;

/// Returns the IPv4 address that a GID is made of.
#[inline]
fn ipv4(gid: ibv_gid) -> Option<u32> {
    let whole = u128::from_be_bytes(gid.raw);
    (whole >> 32 == 0xffff).then_some(whole as u32)
}

/// Returns an IPv4 header (RFC 791) before `length` bytes of UDP.
#[inline(never)]
fn ipv4_header(length: u16, traffic_class: u8, source: u32, destination: u32) -> Header {
    /// Version 4, five words.
    const VERSION_AND_LENGTH: u32 = 0x45;
    /// As in all packets of RoCE v2.
    const DO_NOT_FRAGMENT: u32 = 0x4000;
    let length = IPV4_BYTES as u32 + u32::from(length);
    let mut words = [
        VERSION_AND_LENGTH << 24 | u32::from(traffic_class) << 16 | length,
        DO_NOT_FRAGMENT,
        u32::from(HOP_LIMIT) << 24 | u32::from(UDP) << 16,
        source,
        destination,
    ];
    // The ones' complement of the ones' complement sum of 16-bit words (RFC 1071).
    let sum: u32 = words.iter().map(|word| (word >> 16) + (word & 0xffff)).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    words[2] |= !((folded & 0xffff) + (folded >> 16)) & 0xffff;
    let mut header = [0; GRH_BYTES as usize];
    for (to, word) in header[IPV4_AT..].chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn gid(address: &str) -> ibv_gid {
        ibv_gid { raw: address.parse::<Ipv6Addr>().unwrap().octets() }
    }

    #[test]
    fn between_addresses_of_ipv4_the_header_is_ipv4s() {
        let ends = ["::ffff:192.168.0.1", "::ffff:192.168.0.199"].map(gid);
        let header = grh(0x73 - 20 - 8 - 24 + 3, false, 0, Some(ends));
        assert_eq!(header[..IPV4_AT], [0; IPV4_AT]);
        // The well-known example has the checksum b861 and the length 0x73.
        let wanted =
            [0x45, 0, 0, 0x78, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x5c, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(header[IPV4_AT..], wanted);
        for (bytes, class, immediate) in [(0, 0, false), (1, 0x5a, true), (4096, 0xff, true)] {
            let header = grh(bytes, immediate, class, Some(ends));
            let words = header[IPV4_AT..].chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            let sum = words.clone().fold(0_u16, |sum, word| {
                let (sum, carry) = sum.overflowing_add(word);
                sum + u16::from(carry)
            });
            assert_eq!((sum, header[21]), (0xffff, class), "{bytes} bytes");
            let length = 20 + 8 + 24 + if immediate { 4 } else { 0 } + bytes.next_multiple_of(4);
            assert_eq!(words.clone().nth(1), Some(length as u16));
        }
    }

    #[test]
    fn a_completion_says_which_header_is_there() {
        assert_eq!(packet_type(&["::ffff:10.0.0.1", "::ffff:239.1.2.3"].map(gid)), 0xa);
        assert_eq!(packet_type(&["fe80::1", "::ffff:10.0.0.1"].map(gid)), 0x9);
    }

    #[test]
    fn between_others_it_is_ipv6s() {
        for ends in
            [["fe80::1", "fe80::2"], ["::ffff:10.0.0.1", "fe80::2"], ["2001:db8::1", "::ffff:10.0.0.1"]]
        {
            let ends = ends.map(gid);
            let header = grh(8, false, 0x12, Some(ends));
            assert_eq!(header[..8], [0x61, 0x20, 0, 0, 0, 8 + 24 + 8, 17, 64]);
            assert_eq!((&header[8..24], &header[24..]), (&ends[0].raw[..], &ends[1].raw[..]));
        }
        assert_eq!(grh(8, false, 0, None), [0; 40]);
    }
}
