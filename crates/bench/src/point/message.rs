//! The messages of a point.

use serde::{Deserialize, Serialize};

use super::carrier::{Carrier, LinkLayer, SocketSettings};
use super::choices::{Memory, Operation, QueuePoll, Service, Setup};
use crate::mpi_endpoint::choices::{MpiCall, MpiOperation, MpiSync};

/// The messages of a point, and how an endpoint carries them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessageSpec {
    /// What carries them.
    pub endpoint: Carrier,
    /// How, where sockets do.
    pub socket: SocketSettings,
    /// Transport service of the queue pairs.
    pub service: Service,
    /// Operation that carries a message.
    pub operation: Operation,
    /// Payload of a message, in bytes; at least 1 but over verbs.
    pub size_bytes: u64,
    /// How the completion of a receive is waited for.
    pub poll: QueuePoll,
    /// How the completion of a send is waited for.
    pub send_poll: QueuePoll,
    /// Whether the payload is copied into the work request at post time.
    pub inline: bool,
    /// Every how many sends one asks for a completion; at least 1.
    pub signal_interval: u32,
    /// Elements that a message is gathered from and scattered to; at least 1.
    pub sge: u32,
    /// Sends that the device is told of at once; at least 1.
    pub post_list: u32,
    /// Queue pairs that messages take in turn; at least 1.
    pub queue_pairs: u32,
    /// RDMA Reads or atomics that a queue pair has under way; absent for as many as both devices
    /// allow.
    pub outstanding_reads: Option<u8>,
    /// How the queue pairs are connected.
    pub setup: Setup,
    /// Path MTU: 256, 512, 1024, 2048 or 4096; absent for the largest that both ports have.
    pub mtu_bytes: Option<u32>,
    /// What messages must go over; absent where it is whatever is there.
    pub link_layer: Option<LinkLayer>,
    /// Whose memory messages come from and go to.
    pub memory: Memory,
    /// Buffers that messages are sent from and arrive in; absent for as many as fit in a page.
    pub buffers: Option<u32>,
    /// How MPI carries it, where it does.
    pub mpi: MpiSettings,
    /// Send-queue depth: the bound on outstanding messages of a stream.
    pub tx_depth: u32,
    /// Receive-queue depth.
    pub rx_depth: u32,
    /// Receives that are kept posted; at most `rx_depth`.
    pub rx_fill: u32,
}

/// How MPI carries messages.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MpiSettings {
    /// Which calls send and receive them.
    pub call: MpiCall,
    /// What carries them.
    pub operation: MpiOperation,
    /// Which call completes a put or a get.
    pub sync: MpiSync,
    /// Whether ranks may share CPUs although those that wait keep theirs.
    pub may_oversubscribe: bool,
}

impl MessageSpec {
    /// Whether a message tells the rank that it goes to that it has come.
    pub(crate) fn arrives(&self) -> bool {
        self.operation.arrives() && !self.mpi.operation.is_one_sided()
    }

    /// Whether each message is timed at one rank alone, until it is complete there.
    pub(crate) fn completes_alone(&self) -> bool {
        self.operation.is_fetch() || self.mpi.operation.is_one_sided()
    }

    /// Payload of a message as a length in memory; the largest where no memory is so long.
    pub(crate) fn size(&self) -> usize {
        usize::try_from(self.size_bytes).unwrap_or(usize::MAX)
    }
}
