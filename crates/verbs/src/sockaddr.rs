//! Socket addresses in C's form.

use std::net::SocketAddr;

/// A `sockaddr` of either family.
pub(crate) enum Sockaddr {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl Sockaddr {
    pub(crate) fn new(address: SocketAddr) -> Self {
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

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
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
}
