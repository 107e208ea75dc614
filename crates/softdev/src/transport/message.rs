//! A message that is ready to be delivered, by whatever way.

use verbs::abi::*;

use crate::memory::copy::Piece;
use crate::transport::local::address::is_group;

/// A message that is ready to be delivered.
pub(crate) struct Message<'a> {
    /// Where its payload is, in this process.
    pub(crate) pieces: &'a [Piece],
    /// Payload bytes.
    pub(crate) bytes: u64,
    /// Immediate data, network byte order.
    pub(crate) imm: Option<u32>,
    pub(crate) solicited: bool,
    /// The sending queue pair.
    pub(crate) src_qp: u32,
    /// For a datagram.
    pub(crate) datagram: Option<Datagram>,
    /// The payload is in place already: an RDMA write.
    pub(crate) written: bool,
}

/// The GIDs at both ends of a route. Each pair is there once, so that two are the same where their
/// addresses are.
pub(crate) type Ends = [ibv_gid; 2];

/// What a datagram carries besides.
#[derive(Clone, Copy)]
pub(crate) struct Datagram {
    pub(crate) qkey: u32,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    /// Number of the device that it is from.
    pub(crate) device: u8,
    /// Where it comes from and where it goes, for one with a global route header.
    pub(crate) ends: Option<&'static Ends>,
}

impl Datagram {
    /// Whether it goes to a multicast group.
    pub(crate) fn is_to_group(&self) -> bool {
        self.ends.is_some_and(|[_, destination]| is_group(destination))
    }
}
