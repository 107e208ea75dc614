//! Socket addresses as structures of the system.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::abi::fields::{Fields, put};

/// The size of a `struct sockaddr_in6`.
pub(crate) const IN6_BYTES: usize = 28;
/// The size of a `struct sockaddr_in`.
const IN_BYTES: usize = 16;
/// The size of a `struct sockaddr_ib`.
const IB_BYTES: usize = 48;
/// The size of a `struct __kernel_sockaddr_storage`.
pub(crate) const STORAGE_BYTES: usize = 128;

const AF_UNSPEC: u16 = 0;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// InfiniBand addresses.
const AF_IB: u16 = 27;

/// The content of an address structure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Address {
    /// No family: no address was given.
    None,
    /// An IP address.
    Ip(SocketAddr),
    /// An InfiniBand address (`AF_IB`).
    InfiniBand,
    /// An unsupported family.
    Other,
}

impl Address {
    /// Reads a structure of any family.
    #[must_use]
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let fields = Fields(bytes);
        let port = u16::from_be_bytes(fields.array(2));
        match fields.u16(0) {
            AF_UNSPEC => Self::None,
            AF_INET => Self::Ip(SocketAddrV4::new(Ipv4Addr::from(fields.array::<4>(4)), port).into()),
            AF_INET6 => {
                let address = Ipv6Addr::from(fields.array::<16>(8));
                Self::Ip(SocketAddrV6::new(address, port, fields.u32(4), fields.u32(24)).into())
            }
            AF_IB => Self::InfiniBand,
            _ => Self::Other,
        }
    }

    /// The size of its structure (`rdma_addr_size()` of the kernel); 0 for an unknown family.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Ip(SocketAddr::V4(_)) => IN_BYTES,
            Self::Ip(SocketAddr::V6(_)) => IN6_BYTES,
            Self::InfiniBand => IB_BYTES,
            Self::None | Self::Other => 0,
        }
    }
}

/// Writes the structure of an address; writes nothing for `None`.
pub(crate) fn write(to: &mut [u8], address: Option<SocketAddr>) {
    match address {
        None => {}
        Some(SocketAddr::V4(address)) => {
            put(to, 0, &AF_INET.to_ne_bytes());
            put(to, 2, &address.port().to_be_bytes());
            put(to, 4, &address.ip().octets());
        }
        Some(SocketAddr::V6(address)) => {
            put(to, 0, &AF_INET6.to_ne_bytes());
            put(to, 2, &address.port().to_be_bytes());
            put(to, 4, &address.flowinfo().to_ne_bytes());
            put(to, 8, &address.ip().octets());
            put(to, 24, &address.scope_id().to_ne_bytes());
        }
    }
}

/// Writes a `struct sockaddr_ib`: partition key, GID and service ID.
pub(crate) fn write_ib(to: &mut [u8], pkey: u16, gid: [u8; 16], service: u64) {
    put(to, 0, &AF_IB.to_ne_bytes());
    put(to, 2, &pkey.to_be_bytes());
    put(to, 8, &gid);
    put(to, 24, &service.to_be_bytes());
    put(to, 32, &u64::MAX.to_be_bytes());
}

/// The size of an address's structure.
pub(crate) fn size(address: Option<SocketAddr>) -> usize {
    address.map_or(0, |address| Address::Ip(address).bytes())
}

/// The size of the structure that [`write_ib`] writes.
pub(crate) const fn ib_size() -> usize {
    IB_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for text in ["127.0.0.1:7471", "[fd00::2]:1", "0.0.0.0:0", "[fe80::1%3]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut bytes = [0; STORAGE_BYTES];
            write(&mut bytes, Some(address));
            assert_eq!(Address::read(&bytes), Address::Ip(address));
            assert_eq!(size(Some(address)), if address.is_ipv4() { 16 } else { 28 });
        }
        assert_eq!(Address::read(&[0; 28]), Address::None);
        assert_eq!(Address::read(&[]), Address::None);
        assert_eq!(Address::read(&[27, 0]), Address::InfiniBand);
        assert_eq!(Address::read(&[1, 0]), Address::Other);
    }
}
