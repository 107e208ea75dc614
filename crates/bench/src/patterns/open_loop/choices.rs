//! The words of messages at a set rate: where the load goes.

use crate::point::Operation;
use crate::point::choice::choice;

choice! {
    /// Where a load goes, relative to the messages from rank 0 to rank 1 and their answers. It
    /// streams over RC, whatever service the messages use.
    pub enum Load {
        /// From each loader to a separate rank: RDMA Write. Load and messages share the network
        /// between hosts, and the device of ranks on one host.
        Beside = "beside",
        /// From all loaders to rank 1, which answers: RDMA Write into its memory.
        Incast = "incast",
        /// From rank 0, which sends the messages, to all loaders: RDMA Read of its memory.
        Outcast = "outcast",
    }
}

impl Load {
    /// The operation that carries the load.
    pub fn operation(self) -> Operation {
        match self {
            Self::Beside | Self::Incast => Operation::Write,
            Self::Outcast => Operation::Read,
        }
    }
}
