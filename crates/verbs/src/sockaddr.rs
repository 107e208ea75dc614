//! Socket addresses as C structures.

use std::ffi::c_int;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A `sockaddr` of IPv4 or IPv6.
pub enum Sockaddr {
    /// An IPv4 address.
    V4(libc::sockaddr_in),
    /// An IPv6 address.
    V6(libc::sockaddr_in6),
}

impl Sockaddr {
    /// Makes the structure of an address.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self::V4(libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(v6) => Self::V6(libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            }),
        }
    }

    /// Reads an address that C has written; `None` for another family.
    #[must_use]
    pub fn read(from: &libc::sockaddr_storage) -> Option<SocketAddr> {
        match c_int::from(from.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family shows the type of the structure, which fits into the storage.
                let v4 = unsafe { &*(&raw const *from).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6 = unsafe { &*(&raw const *from).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    /// A pointer for C functions that read the address.
    #[must_use]
    pub fn as_ptr(&self) -> *const libc::sockaddr {
        match self {
            Self::V4(v4) => (&raw const *v4).cast(),
            Self::V6(v6) => (&raw const *v6).cast(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_network_byte_order() {
        let Sockaddr::V4(v4) = Sockaddr::new("10.1.2.3:258".parse().unwrap()) else {
            panic!("it is of IPv4")
        };
        assert_eq!((v4.sin_addr.s_addr.to_ne_bytes(), v4.sin_port.to_ne_bytes()), ([10, 1, 2, 3], [1, 2]));
        let Sockaddr::V6(v6) = Sockaddr::new("[fe80::1%7]:258".parse().unwrap()) else {
            panic!("it is of IPv6")
        };
        assert_eq!((v6.sin6_addr.s6_addr[15], v6.sin6_scope_id), (1, 7));
    }

    #[test]
    fn an_address_is_read_as_it_is_written() {
        // SAFETY: all-zero bytes are a valid sockaddr_storage: integers.
        let nothing: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        assert_eq!(Sockaddr::read(&nothing), None);
        for text in ["10.1.2.3:258", "[fe80::1%7]:258"] {
            let address: SocketAddr = text.parse().unwrap();
            let written = Sockaddr::new(address);
            let mut storage = nothing;
            let bytes = if address.is_ipv4() {
                size_of::<libc::sockaddr_in>()
            } else {
                size_of::<libc::sockaddr_in6>()
            };
            // SAFETY: a storage has space for either structure.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    written.as_ptr().cast::<u8>(),
                    (&raw mut storage).cast(),
                    bytes,
                );
            };
            assert_eq!(Sockaddr::read(&storage), Some(address));
        }
    }
}
