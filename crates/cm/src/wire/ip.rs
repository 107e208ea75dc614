//! IP addresses in messages: service IDs, and a header of the private data.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::malformed::Malformed;

/// A port space (annex A11): the bytes of the service ID above the port. The last byte is the
/// number of the IP protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PortSpace(pub u16);

impl PortSpace {
    /// Datagrams to queue pairs of IP over InfiniBand: `RDMA_PS_IPOIB` of librdmacm.
    pub const IPOIB: Self = Self(0x0002);
    /// Reliable connections by TCP's ports: `RDMA_PS_TCP`.
    pub const TCP: Self = Self(0x0106);
    /// Datagrams by UDP's ports: `RDMA_PS_UDP`.
    pub const UDP: Self = Self(0x0111);
    /// Any service of InfiniBand: `RDMA_PS_IB`.
    pub const IB: Self = Self(0x013F);
}

/// Returns the service ID of a port (annex A11).
pub fn service_id(space: PortSpace, port: u16) -> u64 {
    u64::from(space.0) << 16 | u64::from(port)
}

/// Returns the port of a service ID; `None` if its port space is not one of these.
pub fn port_of(service_id: u64) -> Option<(PortSpace, u16)> {
    let space = PortSpace(u16::try_from(service_id >> 16).ok()?);
    let is_known = [PortSpace::IPOIB, PortSpace::TCP, PortSpace::UDP, PortSpace::IB].contains(&space);
    is_known.then_some((space, service_id as u16))
}

/// The header in front of the consumer's private data, in a REQ or a SIDR_REQ with the service ID
/// of a port (annex A11). Its version is 0.0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The addresses of the sender and of the receiver.
    pub addresses: Addresses,
}

/// The two addresses of a header, which have the same IP version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Addresses {
    /// IP version 4: the last 4 bytes of each 16-byte address.
    V4 {
        /// The sender's address.
        source: Ipv4Addr,
        /// The requested address.
        destination: Ipv4Addr,
    },
    /// IP version 6.
    V6 {
        /// The sender's address.
        source: Ipv6Addr,
        /// The requested address.
        destination: Ipv6Addr,
    },
}

impl Addresses {
    /// Makes a pair of addresses; `None` if their IP versions differ.
    pub fn of(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Self::V4 { source, destination }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6 { source, destination }),
            _ => None,
        }
    }

    /// The sender's address.
    pub fn source(&self) -> IpAddr {
        match *self {
            Self::V4 { source, .. } => source.into(),
            Self::V6 { source, .. } => source.into(),
        }
    }

    /// The requested address.
    pub fn destination(&self) -> IpAddr {
        match *self {
            Self::V4 { destination, .. } => destination.into(),
            Self::V6 { destination, .. } => destination.into(),
        }
    }
}

impl IpHeader {
    /// The size of the header; the consumer's private data follows it.
    pub const BYTES: usize = 36;

    /// Returns the header's bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[2..4].copy_from_slice(&self.source_port.to_be_bytes());
        match self.addresses {
            Addresses::V4 { source, destination } => {
                bytes[1] = 4 << 4;
                bytes[16..20].copy_from_slice(&source.octets());
                bytes[32..36].copy_from_slice(&destination.octets());
            }
            Addresses::V6 { source, destination } => {
                bytes[1] = 6 << 4;
                bytes[4..20].copy_from_slice(&source.octets());
                bytes[20..36].copy_from_slice(&destination.octets());
            }
        }
        bytes
    }

    /// Decodes the header at the start of private data. The bytes behind it are ignored.
    ///
    /// # Errors
    ///
    /// [`Malformed::IpLength`], [`Malformed::IpHeaderVersion`] and [`Malformed::IpVersion`].
    pub fn decode(private_data: &[u8]) -> Result<Self, Malformed> {
        let found = private_data.len();
        let bytes: &[u8; Self::BYTES] = private_data.first_chunk().ok_or(Malformed::IpLength { found })?;
        if bytes[0] != 0 {
            return Err(Malformed::IpHeaderVersion { major: bytes[0] >> 4, minor: bytes[0] & 0xF });
        }
        let addresses = match bytes[1] >> 4 {
            4 => Addresses::V4 { source: array(bytes, 16).into(), destination: array(bytes, 32).into() },
            6 => Addresses::V6 {
                source: array::<16>(bytes, 4).into(),
                destination: array::<16>(bytes, 20).into(),
            },
            found => return Err(Malformed::IpVersion { found }),
        };
        Ok(Self { source_port: u16::from_be_bytes(array(bytes, 2)), addresses })
    }
}

/// Returns the bytes from `at` on.
fn array<const SIZE: usize>(bytes: &[u8; IpHeader::BYTES], at: usize) -> [u8; SIZE] {
    std::array::from_fn(|n| bytes[at + n])
}
