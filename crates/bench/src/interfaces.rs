//! Addresses of network interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

use crate::point::LinkLayer;

/// An address of one of the named interfaces, IPv4 if there is one, and never one that needs a
/// scope.
pub(crate) fn address_of(interfaces: Vec<String>) -> Option<IpAddr> {
    usable(|interface| interfaces.iter().any(|name| name == interface)).next()
}

/// The addresses of the interfaces whose names match, except addresses that need a scope. IPv4
/// comes before IPv6, and within a family loopback comes last.
pub(crate) fn usable(is_meant: impl Fn(&str) -> bool) -> impl Iterator<Item = IpAddr> {
    let meant = all().into_iter().filter(|entry| is_meant(&entry.interface));
    let mut addresses: Vec<IpAddr> = meant.map(|entry| entry.address).collect();
    addresses.retain(|address| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()));
    addresses.sort_by_key(|address| (address.is_ipv6(), address.is_loopback()));
    addresses.into_iter()
}

/// An address of an interface, with the prefix length of its network.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) interface: String,
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
    /// The link layer of its interface, if known; loopback has none.
    pub(crate) link_layer: Option<LinkLayer>,
}

impl Entry {
    /// Whether an address lies in its network.
    pub(crate) fn is_near(&self, other: IpAddr) -> bool {
        is_in(self.address, other, self.prefix)
    }
}

/// Whether two addresses have a prefix of this length in common.
pub(crate) fn is_in(network: IpAddr, address: IpAddr, prefix: u8) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)) << 96, 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    let (network, width) = bits(network);
    let (address, other) = bits(address);
    let differ = (network ^ address).leading_zeros();
    width == other && differ >= u32::from(prefix).min(width)
}

/// Every address of the interfaces that are up.
pub(crate) fn all() -> Vec<Entry> {
    let mut found = Vec::new();
    let mut list = std::ptr::null_mut();
    // SAFETY: the result is writable.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return found;
    }
    let mut next = list;
    while !next.is_null() {
        // SAFETY: getifaddrs made a list of valid entries, which lives until it is freed below.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        // SAFETY: an interface's name is a string.
        let name = unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        let is_up = entry.ifa_flags & libc::IFF_UP.unsigned_abs() != 0;
        if let Some(address) = ip(entry.ifa_addr).filter(|_| is_up) {
            let prefix = ip(entry.ifa_netmask).map_or(0, |mask| match mask {
                IpAddr::V4(mask) => u32::from(mask).leading_ones(),
                IpAddr::V6(mask) => u128::from(mask).leading_ones(),
            });
            found.push(Entry { interface: name, address, prefix: prefix as u8, link_layer: None });
        }
    }
    // SAFETY: the list came from getifaddrs and is freed once.
    unsafe { libc::freeifaddrs(list) };
    // Any socket can query any interface.
    if let Ok(socket) = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None) {
        for entry in &mut found {
            entry.link_layer = layer(&socket, &entry.interface);
        }
    }
    found
}

/// The link layer of an interface of this network namespace (netdevice(7)).
fn layer(socket: &OwnedFd, name: &str) -> Option<LinkLayer> {
    // SAFETY: all zeroes are a request without a name.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0, the end of the name.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the request is of the type that SIOCGIFHWADDR reads and writes.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) } != 0 {
        return None;
    }
    // SAFETY: the kernel has filled in the address, whose family is the type of the interface.
    match unsafe { request.ifr_ifru.ifru_hwaddr.sa_family } {
        libc::ARPHRD_ETHER => Some(LinkLayer::Ethernet),
        libc::ARPHRD_INFINIBAND => Some(LinkLayer::Infiniband),
        _ => None,
    }
}

fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: a socket address begins with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says that it is an IPv4 address.
            let v4 = unsafe { &*address.cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is an IPv6 address.
            let v6 = unsafe { &*address.cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        let expected = Some(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(address_of(vec!["lo".to_owned()]), expected);
        assert_eq!(address_of(vec!["no-such-interface".to_owned()]), None);
        let all = all();
        let loopback = all.iter().find(|entry| entry.address == IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!((loopback.interface.as_str(), loopback.prefix), ("lo", 8));
        assert_eq!(loopback.link_layer, None, "loopback has no link layer");
    }

    #[test]
    fn an_address_is_near_in_its_network_and_family_only() {
        let entry = |address: &str, prefix| Entry {
            interface: "eth0".to_owned(),
            address: address.parse().unwrap(),
            prefix,
            link_layer: None,
        };
        let is_near = |one: &Entry, other: &str| one.is_near(other.parse().unwrap());
        let v4 = entry("10.77.1.2", 23);
        let v6 = entry("fd00:1::1", 64);
        assert!(is_near(&v4, "10.77.0.9") && !is_near(&v4, "10.77.2.9") && !is_near(&v4, "fd00:1::1"));
        assert!(is_near(&v6, "fd00:1::ffff") && !is_near(&v6, "fd00:2::1"));
        assert!(!is_near(&entry("10.0.0.1", 32), "10.0.0.2") && is_near(&entry("0.0.0.0", 0), "192.0.2.1"));
    }
}
