//! Addresses of network interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of one of the named interfaces, IPv4 if there is one, and never one that needs a scope.
pub(crate) fn address_of(interfaces: Vec<String>) -> Option<IpAddr> {
    let mut addresses: Vec<IpAddr> =
        all().into_iter().filter(|(name, _)| interfaces.contains(name)).map(|(_, address)| address).collect();
    addresses.retain(|address| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()));
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.first().copied()
}

/// Every interface's addresses.
fn all() -> Vec<(String, IpAddr)> {
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
        if let Some(address) = ip(entry.ifa_addr) {
            found.push((name, address));
        }
    }
    // SAFETY: the list came from getifaddrs and is freed once.
    unsafe { libc::freeifaddrs(list) };
    found
}

fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: a socket address begins with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says that it is one of IPv4.
            let v4 = unsafe { &*address.cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is one of IPv6.
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
    }
}
