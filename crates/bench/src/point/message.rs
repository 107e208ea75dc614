//! The messages of a point.

use serde::{Deserialize, Serialize};

use super::carrier::{Carrier, LinkLayer, SocketSettings};
use super::choices::{Memory, Operation, QueuePoll, Service, Setup};
use crate::mpi_endpoint::choices::{MpiCall, MpiOperation, MpiSync};

/// The messages of a point, and how its endpoint carries them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessageSpec {
    /// The endpoint that carries them.
    pub endpoint: Carrier,
    /// The settings of sockets, if sockets carry them.
    pub socket: SocketSettings,
    /// Transport service of the queue pairs.
    pub service: Service,
    /// Operation that carries a message.
    pub operation: Operation,
    /// Payload of a message, in bytes; 0 over verbs and MPI only.
    pub size_bytes: u64,
    /// How a rank waits for the completion of a receive.
    pub poll: QueuePoll,
    /// How a rank waits for the completion of a send.
    pub send_poll: QueuePoll,
    /// Whether the payload is copied into the work request at post time.
    pub inline: bool,
    /// Interval of signalled sends: every Nth send asks for a completion; at least 1.
    pub signal_interval: u32,
    /// Scatter/gather elements of a message; at least 1.
    pub sge: u32,
    /// Messages that are posted or sent by one call; at least 1.
    pub post_list: u32,
    /// Number of queue pairs, which messages take in turn; at least 1.
    pub queue_pairs: u32,
    /// Outstanding RDMA Reads or atomics of a queue pair; absent for as many as both devices allow.
    pub outstanding_reads: Option<u8>,
    /// How the queue pairs are connected.
    pub setup: Setup,
    /// Path MTU: 256, 512, 1024, 2048 or 4096; absent for the largest that both ports allow.
    pub mtu_bytes: Option<u32>,
    /// Link layer that the messages must use; absent for either.
    pub link_layer: Option<LinkLayer>,
    /// Memory that messages are sent from and received into.
    pub memory: Memory,
    /// Number of send buffers, and of receive buffers; absent for as many as fit in a page.
    pub buffers: Option<u32>,
    /// The settings of MPI, if MPI carries them.
    pub mpi: MpiSettings,
    /// Depth of the send queue: the bound on outstanding messages of a stream.
    pub tx_depth: u32,
    /// Depth of the receive queue.
    pub rx_depth: u32,
    /// Number of receives that are kept posted; at most `rx_depth`.
    pub rx_fill: u32,
}

/// How MPI carries messages.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MpiSettings {
    /// The calls that send and receive them.
    pub call: MpiCall,
    /// The operation that carries them.
    pub operation: MpiOperation,
    /// The call that completes a put or a get.
    pub sync: MpiSync,
    /// Whether ranks may share CPUs although waiting ranks do not yield the CPU.
    pub may_oversubscribe: bool,
}

impl MessageSpec {
    /// Whether the receiver gets a completion or a message for each message.
    pub(crate) fn arrives(&self) -> bool {
        self.operation.arrives() && !self.mpi.operation.is_one_sided()
    }

    /// Whether one rank alone times each message, until it is complete there.
    pub(crate) fn completes_alone(&self) -> bool {
        self.operation.is_fetch() || self.mpi.operation.is_one_sided()
    }

    /// Payload of a message as a length in memory; `usize::MAX` if memory cannot be so long.
    pub(crate) fn size(&self) -> usize {
        usize::try_from(self.size_bytes).unwrap_or(usize::MAX)
    }
}
