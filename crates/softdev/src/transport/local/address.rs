//! Addresses of ports: the GUIDs, GIDs and LIDs of this host's devices, and the destinations of
//! routes.
//!
//! A device's first GID is its own and distinguishes it from others. On Ethernet, the addresses of
//! the host's network interfaces follow (`gids`); those of one interface belong to one device.
//!
//! Devices differ only in their addresses. A queue pair belongs to the device of its context and is
//! reached only by that device's addresses, as through an adapter's port. Ports of different link
//! layers do not reach each other.

use verbs::abi::*;

use crate::sys::limits::{GIDS, PORT};
use crate::sys::settings::{LinkLayer, MAX_DEVICES, link_layer, settings};
use crate::transport::local::gids::{Entry, Gids, gids};
use crate::transport::local::host::guid;

/// Returns the GUID of a device and of its port. The GUIDs of a host's devices differ in their last
/// four bits.
pub(crate) fn device_guid(device: u8) -> u64 {
    guid() ^ u64::from(device)
}

/// The LID of the first device; the others follow. The LID before it is the subnet manager's.
const FIRST_LID: u16 = 2;

pub(crate) const SUBNET_MANAGER_LID: u16 = 1;

/// Multicast LIDs, without the permissive LID behind them (IBTA vol. 1, section 4.1.3).
pub(crate) const MULTICAST_LIDS: std::ops::Range<u16> = 0xc000..0xffff;

/// Returns the LID of a device's port; 0 on Ethernet.
pub(crate) fn lid(device: u8) -> u16 {
    match link_layer() {
        LinkLayer::Ethernet => 0,
        LinkLayer::Infiniband => FIRST_LID + u16::from(device),
    }
}

/// Returns the GID of a device's port: the link-local prefix, which is also InfiniBand's default,
/// and the GUID.
pub(crate) fn gid(device: u8) -> ibv_gid {
    let mut raw = [0; 16];
    raw[..2].copy_from_slice(&[0xfe, 0x80]);
    raw[8..].copy_from_slice(&device_guid(device).to_be_bytes());
    ibv_gid { raw }
}

/// Returns the number of entries of a port's GID table, used or not.
pub(crate) fn table_length() -> u8 {
    match link_layer() {
        LinkLayer::Ethernet => GIDS,
        LinkLayer::Infiniband => 1,
    }
}

/// Returns the number of devices of this process.
pub(crate) fn device_count() -> u8 {
    settings().map_or(1, |settings| settings.devices)
}

/// Returns an entry of a device's GID table; `gids` has the tables of all devices.
pub(crate) fn held(gids: &Gids, device: u8, index: u8) -> Option<Entry> {
    if index == 0 {
        let interface = gids.first(device, device_count()).map_or(0, |interface| interface.index);
        return Some(Entry { gid: gid(device), interface });
    }
    gids.entry(device, index)
}

/// Returns the word for a port in a queue pair's table entry: the device's number, the number of
/// devices of its process, and a bit for the link layer.
pub(crate) fn port_word(device: u8) -> u32 {
    network() | u32::from(device) | u32::from(device_count()) << COUNT_AT
}

/// The position of the number of devices in a port's word.
const COUNT_AT: u32 = 16;

/// Returns the bits of a port's word that all ports of one network share.
#[inline]
fn network() -> u32 {
    const IN_USE: u32 = 1 << 8;
    const INFINIBAND: u32 = 1 << 9;
    IN_USE | if link_layer() == LinkLayer::Infiniband { INFINIBAND } else { 0 }
}

/// Returns the device of a port.
#[inline]
pub(crate) fn device_of(port: u32) -> u8 {
    port as u8
}

/// Whether a port is in the same network as this process's port, that is, has the same link layer.
#[inline]
pub(crate) fn is_same_network(port: u32, own: u32) -> bool {
    (port ^ own) & !(0xff | 0xff << COUNT_AT) == 0
}

/// The port at which a route ends, by its address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The device's own address.
    Device(u8),
    /// An address of the host's interface with this rank (see [`Gids::rank_of`]): the device
    /// depends on how many devices the process at the destination has.
    Interface(u32),
}

impl End {
    /// Whether this is the address of a port that can be reached from this process's port.
    #[inline]
    pub(crate) fn is_at(self, port: u32, own: u32) -> bool {
        let device = u32::from(device_of(port));
        let is_its = match self {
            Self::Device(number) => device == u32::from(number),
            // The usual case needs no division.
            Self::Interface(rank) => rank == device || rank % (port >> COUNT_AT & 0xff).max(1) == device,
        };
        is_its && is_same_network(port, own)
    }
}

/// The destination of a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// To a port of this host.
    Port(End),
    /// To all queue pairs of the multicast group that it names.
    Group,
    /// To another host, or to none.
    Elsewhere,
}

/// Whether a GID is that of a multicast group (IBTA vol. 1, section 4.1.1). For RoCE, it may also
/// be made from an IPv4 address (`rdma_is_multicast_addr()` in the kernel's rdma/ib_addr.h).
pub(crate) fn is_group(gid: &ibv_gid) -> bool {
    let address = std::net::Ipv6Addr::from(gid.raw);
    address.is_multicast() || address.to_ipv4_mapped().is_some_and(|address| address.is_multicast())
}

/// Returns the destination of a route: on Ethernet by its GID; on InfiniBand by its LID, and the
/// GID of a global route must agree.
pub(crate) fn follow(route: &ibv_ah_attr) -> Way {
    let dgid = &route.grh.dgid;
    if link_layer() == LinkLayer::Ethernet {
        return follow_gid(dgid);
    }
    let device = route.dlid.checked_sub(FIRST_LID).filter(|device| *device < u16::from(MAX_DEVICES));
    let port = |device| Way::Port(End::Device(device as u8));
    match (device, route.is_global != 0) {
        (Some(device), false) => port(device),
        (Some(device), true) if *dgid == gid(device as u8) => port(device),
        // A datagram to a group has a global header (IBTA vol. 1, section 10.5.1).
        (None, true) if MULTICAST_LIDS.contains(&route.dlid) && is_group(dgid) => Way::Group,
        _ => Way::Elsewhere,
    }
}

fn follow_gid(dgid: &ibv_gid) -> Way {
    if is_group(dgid) {
        return Way::Group;
    }
    let device = (0..MAX_DEVICES).find(|device| gid(*device) == *dgid).map(End::Device);
    let end = device.or_else(|| gids().rank_of(dgid).map(End::Interface));
    end.map_or(Way::Elsewhere, Way::Port)
}

/// Whether a route from a device can be used. RoCE has no LIDs, so every route there must be
/// global, as in the kernel (`rdma_check_ah_attr()` in core/verbs.c). The destination is looked up
/// when the route is used.
pub(crate) fn is_valid_route(device: u8, attr: &ibv_ah_attr) -> bool {
    let global = attr.is_global != 0;
    (global || link_layer() == LinkLayer::Infiniband)
        && (!global || source_of(device, attr).is_some())
        && attr.port_num == PORT
        && attr.sl < 16
}

/// Returns the local GID of a global route from a device, if that entry of the table is in use.
pub(crate) fn source_of(device: u8, attr: &ibv_ah_attr) -> Option<ibv_gid> {
    // The first entry always exists, whatever interfaces there are.
    let index = attr.grh.sgid_index;
    if index == 0 { Some(gid(device)) } else { gids().entry(device, index).map(|entry| entry.gid) }
}

/// The queue-pair number of datagrams to a group (IBTA vol. 1, section 3.5.10).
pub(crate) const MULTICAST_QP: u32 = 0xff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_says_whose_it_is() {
        for device in 0..MAX_DEVICES {
            assert_eq!(device_of(port_word(device)), device);
            assert!(is_same_network(port_word(device), port_word(0)));
        }
        assert!(!is_same_network(port_word(0) | 1 << 31, port_word(0)), "it is down");
        assert!(!is_same_network(0, port_word(0)), "it was never there");
    }

    #[test]
    fn an_address_is_at_the_device_that_its_interface_was_dealt_to() {
        let port = |device: u32, devices: u32| network() | device | devices << COUNT_AT;
        for (rank, devices, device) in [(0, 1, 0), (5, 1, 0), (1, 2, 1), (4, 2, 0), (5, 3, 2), (3, 16, 3)] {
            for other in 0..devices {
                let is_at = End::Interface(rank).is_at(port(other, devices), network());
                assert_eq!(is_at, other == device, "rank {rank} at device {other} of {devices}");
                assert_eq!(End::Device(device as u8).is_at(port(other, devices), network()), other == device);
            }
        }
        assert!(!End::Interface(0).is_at(0, network()), "whatever a peer says");
    }

    #[test]
    fn groups_are_told_from_ports() {
        let gid = |text: &str| ibv_gid { raw: text.parse::<std::net::Ipv6Addr>().unwrap().octets() };
        assert!(
            ["ff12::1", "ff02::2", "::ffff:224.0.0.1", "::ffff:239.1.2.3"].iter().all(|t| is_group(&gid(t)))
        );
        assert!(!["fe80::1", "::ffff:10.0.0.1", "::", "2001:db8::ff"].iter().any(|t| is_group(&gid(t))));
    }
}
