//! Addresses of ports: the GUIDs, GIDs and LIDs of this host's devices, and where a route leads.
//!
//! Devices differ in their addresses only. A queue pair belongs to the device of its context and is
//! reached by that device's address alone, as through an adapter's port. Ports of different link
//! layers do not reach each other.

use verbs::abi::*;

use crate::sys::limits::{GIDS, PORT};
use crate::sys::settings::{LinkLayer, MAX_DEVICES, link_layer};
use crate::transport::local::host::guid;

/// The GUID of a device and of its port. It differs between the devices of a host in its last four
/// bits.
pub(crate) fn device_guid(device: u8) -> u64 {
    guid() ^ u64::from(device)
}

/// LID of the first device; the others follow. The one before is the subnet manager's.
const FIRST_LID: u16 = 2;

pub(crate) const SUBNET_MANAGER_LID: u16 = 1;

/// Multicast LIDs, without the permissive one behind them (IBTA vol. 1, section 4.1.3).
pub(crate) const MULTICAST_LIDS: std::ops::Range<u16> = 0xc000..0xffff;

/// LID of a device's port; 0 on Ethernet.
pub(crate) fn lid(device: u8) -> u16 {
    match link_layer() {
        LinkLayer::Ethernet => 0,
        LinkLayer::Infiniband => FIRST_LID + u16::from(device),
    }
}

/// GID of a device's port: the link-local prefix, which is InfiniBand's default one as well, and
/// the GUID.
pub(crate) fn gid(device: u8) -> ibv_gid {
    let mut raw = [0; 16];
    raw[..2].copy_from_slice(&[0xfe, 0x80]);
    raw[8..].copy_from_slice(&device_guid(device).to_be_bytes());
    ibv_gid { raw }
}

/// How a queue pair's table entry says which port it has: the device's number, and a bit for the
/// link layer.
pub(crate) fn port_word(device: u8) -> u32 {
    const IN_USE: u32 = 1 << 8;
    const INFINIBAND: u32 = 1 << 9;
    IN_USE | u32::from(device) | if link_layer() == LinkLayer::Infiniband { INFINIBAND } else { 0 }
}

/// The device that a port is of.
pub(crate) fn device_of(port: u32) -> u8 {
    port as u8
}

/// Whether a port is of the same network as this process's: of the same link layer.
pub(crate) fn is_same_network(port: u32) -> bool {
    (port ^ port_word(0)) & !0xff == 0
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// To a device of this host.
    Device(u8),
    /// To all queue pairs of a multicast group.
    Group(ibv_gid),
    /// To another host, or to nobody.
    Elsewhere,
}

/// Whether a GID is a multicast group's (IBTA vol. 1, section 4.1.1), for RoCE also one made from
/// an IPv4 address (`rdma_is_multicast_addr()` in the kernel's rdma/ib_addr.h).
pub(crate) fn is_group(gid: &ibv_gid) -> bool {
    let address = std::net::Ipv6Addr::from(gid.raw);
    address.is_multicast() || address.to_ipv4_mapped().is_some_and(|address| address.is_multicast())
}

/// Follows a route: on Ethernet by its GID; on InfiniBand by its LID, and the GID of a global one
/// must agree.
pub(crate) fn follow(route: &ibv_ah_attr) -> Way {
    let dgid = &route.grh.dgid;
    let by_gid = || match dgid {
        dgid if is_group(dgid) => Way::Group(*dgid),
        dgid => (0..MAX_DEVICES).find(|device| gid(*device) == *dgid).map_or(Way::Elsewhere, Way::Device),
    };
    if link_layer() == LinkLayer::Ethernet {
        return by_gid();
    }
    let device = route.dlid.checked_sub(FIRST_LID).filter(|device| *device < u16::from(MAX_DEVICES));
    match (device, route.is_global != 0) {
        (Some(device), false) => Way::Device(device as u8),
        (Some(device), true) if *dgid == gid(device as u8) => Way::Device(device as u8),
        // A datagram to a group has a global header (IBTA vol. 1, section 10.5.1).
        (None, true) if MULTICAST_LIDS.contains(&route.dlid) && is_group(dgid) => Way::Group(*dgid),
        _ => Way::Elsewhere,
    }
}

/// Whether a route can be used. RoCE has no LIDs, so every route is global there, as the kernel has
/// it (`rdma_check_ah_attr()` in core/verbs.c). Where it leads is seen when it is used.
pub(crate) fn is_valid_route(attr: &ibv_ah_attr) -> bool {
    let global = attr.is_global != 0;
    let has_origin = !global || i32::from(attr.grh.sgid_index) < GIDS;
    (global || link_layer() == LinkLayer::Infiniband) && has_origin && attr.port_num == PORT && attr.sl < 16
}

/// The number that datagrams to a group name instead of a queue pair's (IBTA vol. 1, section
/// 3.5.10).
pub(crate) const MULTICAST_QP: u32 = 0xff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_says_whose_it_is() {
        for device in 0..MAX_DEVICES {
            assert_eq!(device_of(port_word(device)), device);
        }
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
