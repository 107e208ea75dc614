//! The global route header in front of a datagram's payload.

use verbs::abi::*;

use crate::sys::limits::GRH_BYTES;
use crate::sys::settings::{LinkLayer, link_layer};

/// What a datagram's buffer starts with: the header (IBTA vol. 1, section 8.3) of one that goes
/// from the first to the second GID. One without is undefined bytes there: zeroes.
pub(crate) fn grh(
    payload_bytes: u64,
    has_immediate: bool,
    traffic_class: u8,
    ends: Option<[ibv_gid; 2]>,
) -> [u8; GRH_BYTES as usize] {
    /// IPv6, as every GRH.
    const VERSION: u32 = 6;
    const HOP_LIMIT: u8 = 64;
    /// Base transport header, datagram header and integrity check of the packet that would carry
    /// it.
    const AROUND: u64 = 12 + 8 + 4;
    const IMMEDIATE: u64 = 4;
    // What the header names as the next one, and that one's bytes: UDP of RoCE v2, or InfiniBand's
    // transport.
    let (next_header, next_bytes) = match link_layer() {
        LinkLayer::Ethernet => (17, 8),
        LinkLayer::Infiniband => (0x1b, 0),
    };
    let mut header = [0; GRH_BYTES as usize];
    let Some([source, destination]) = ends else { return header };
    let immediate = if has_immediate { IMMEDIATE } else { 0 };
    let length = next_bytes + AROUND + immediate + payload_bytes.next_multiple_of(4);
    header[..4].copy_from_slice(&(VERSION << 28 | u32::from(traffic_class) << 20).to_be_bytes());
    header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    (header[6], header[7]) = (next_header, HOP_LIMIT);
    header[8..24].copy_from_slice(&source.raw);
    header[24..].copy_from_slice(&destination.raw);
    header
}
