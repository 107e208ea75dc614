//! The words of messages at a set rate: where a load beside them goes.

use crate::point::Operation;
use crate::point::choice::choice;

choice! {
    /// Where a load goes that meets messages from rank 0 to rank 1 and their answers. It floods
    /// over RC, whatever the messages are.
    pub enum Load {
        /// From each loader to a rank of its own: RDMA Write. They share with the messages what is
        /// between hosts, and a device where they share a host.
        Beside = "beside",
        /// From all loaders to rank 1, which answers: RDMA Write into its memory.
        Incast = "incast",
        /// From rank 0, which asks, to all loaders: RDMA Read of its memory.
        Outcast = "outcast",
    }
}

impl Load {
    /// The operation that carries it.
    pub fn operation(self) -> Operation {
        match self {
            Self::Beside | Self::Incast => Operation::Write,
            Self::Outcast => Operation::Read,
        }
    }
}
