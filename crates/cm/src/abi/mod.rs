//! The kernel's interface to its connection manager (`<rdma/rdma_user_cm.h>`, version 4): commands
//! that a program writes to `/dev/infiniband/rdma_cm`, and the answers in the memory that they
//! name.
//!
//! All numbers are in the byte order of the host, except those of addresses.

pub(crate) mod answer;
pub(crate) mod command;
mod fields;
pub(crate) mod sockaddr;

/// `RDMA_USER_CM_ABI_VERSION`.
pub const VERSION: u32 = 4;

/// The space for private data in a command or an event (`RDMA_MAX_PRIVATE_DATA`).
pub(crate) const MAX_PRIVATE_DATA: usize = 256;

/// The type of an event (`enum rdma_cm_event_type` of `<rdma/rdma_cma.h>`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(crate) enum EventKind {
    AddressResolved = 0,
    AddressError = 1,
    RouteResolved = 2,
    ConnectRequest = 4,
    ConnectResponse = 5,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
    MulticastJoin = 12,
    TimeWaitExit = 15,
}

/// A port space (`enum rdma_ucm_port_space`; InfiniBand Architecture Specification, volume 1, annex
/// A11.2.3): the upper bits of a service ID.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u16)]
pub enum Space {
    /// Datagrams to queue pairs of IP over InfiniBand.
    IpoIb = 0x0002,
    /// Connections, by TCP's ports.
    Tcp = 0x0106,
    /// Datagrams, by UDP's ports.
    Udp = 0x0111,
    /// Any service of InfiniBand.
    Ib = 0x013f,
}

impl Space {
    /// Returns the port space with a number.
    #[must_use]
    pub(crate) fn of(number: u16) -> Option<Self> {
        [Self::IpoIb, Self::Tcp, Self::Udp, Self::Ib].into_iter().find(|space| *space as u16 == number)
    }
}
