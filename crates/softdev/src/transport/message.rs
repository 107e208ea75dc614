//! A message that is ready to be delivered, by any transport.

use verbs::abi::*;

use crate::memory::copy::Piece;
use crate::transport::local::address::is_group;

/// A message that is ready to be delivered.
pub(crate) struct Message<'a> {
    /// The place of its payload in this process.
    pub(crate) pieces: &'a [Piece],
    /// The payload in bytes.
    pub(crate) bytes: u64,
    /// Immediate data, in network byte order.
    pub(crate) imm: Option<u32>,
    pub(crate) solicited: bool,
    /// The sending queue pair.
    pub(crate) src_qp: u32,
    /// The datagram's further data.
    pub(crate) datagram: Option<Datagram>,
    /// Whether the payload is in place already: an RDMA Write.
    pub(crate) written: bool,
}

/// The GIDs of the sender and the receiver of a route. Each pair exists once, so equal pairs have
/// the same address.
pub(crate) type Ends = [ibv_gid; 2];

/// The further data of a datagram.
#[derive(Clone, Copy)]
pub(crate) struct Datagram {
    pub(crate) qkey: u32,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    /// The number of the sending device.
    pub(crate) device: u8,
    /// The sender's and the receiver's GID, for a datagram with a global route header.
    pub(crate) ends: Option<&'static Ends>,
}

impl Datagram {
    /// Whether it goes to a multicast group.
    pub(crate) fn is_to_group(&self) -> bool {
        self.ends.is_some_and(|[_, destination]| is_group(destination))
    }
}
