//! Points in which ranks do several things beside each other, with queue pairs of their own for each.

use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::{Memory, Operation, Pattern, PointSpec, QueuePoll, Service, Setup};

/// What ranks do beside each other.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What the plan says; the only part of most points.
    Main,
    /// What loads the device meanwhile.
    Load,
    /// How those who load it are told when.
    Control,
}

choice! {
    /// Where a load goes that meets messages from rank 0 to rank 1 and their answers. It floods
    /// over RC, whatever the messages are.
    pub enum Load {
        /// From each loader to a rank of its own: RDMA Write. They share with the messages what is between hosts, and a device
        /// where they share a host.
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

impl PointSpec {
    /// The parts of the point.
    pub(crate) fn parts(&self) -> Vec<Self> {
        match self.loaders {
            0 => vec![self.clone()],
            _ => vec![self.clone(), self.load_part(), self.control_part()],
        }
    }

    /// Whether a rank has to do with this part.
    pub(crate) fn is_for(&self, rank: u32) -> bool {
        !self.partners(rank).is_empty()
    }

    /// Floods over a reliable connection, which tells the loader how far it is.
    fn load_part(&self) -> Self {
        Self {
            part: Part::Load,
            pattern: Pattern::Stream,
            operation: self.load.operation(),
            size_bytes: self.load_bytes,
            // Often enough to know how far it is.
            signal_interval: (LOAD_SIGNALED_BYTES / self.load_bytes.max(1)).clamp(1, LOAD_SIGNAL_INTERVAL)
                as u32,
            tx_depth: LOAD_DEPTH,
            outstanding_reads: None,
            ..self.beside()
        }
    }

    /// A byte from rank 0 to each loader, and one back.
    fn control_part(&self) -> Self {
        Self {
            part: Part::Control,
            pattern: Pattern::FanOut,
            operation: Operation::Send,
            peers: self.loaders,
            size_bytes: 1,
            signal_interval: 1,
            tx_depth: CONTROL_DEPTH,
            rx_depth: CONTROL_DEPTH,
            rx_fill: CONTROL_DEPTH,
            ..self.beside()
        }
    }

    /// What parts beside the main one have in common: nothing that a plan varies of that.
    fn beside(&self) -> Self {
        Self {
            service: Service::Rc,
            poll: QueuePoll::Busy,
            send_poll: QueuePoll::Busy,
            inline: false,
            sge: 1,
            setup: Setup::Exchange,
            memory: Memory::Device,
            ..self.clone()
        }
    }
}

/// Messages that a loader has under way: perftest's.
const LOAD_DEPTH: u32 = 128;
/// Every how many messages of a load one asks for a completion, at most, and every how many bytes.
const LOAD_SIGNAL_INTERVAL: u64 = 16;
const LOAD_SIGNALED_BYTES: u64 = 256 << 10;
/// More than the messages that rank 0 and a loader have under way.
const CONTROL_DEPTH: u32 = 8;
