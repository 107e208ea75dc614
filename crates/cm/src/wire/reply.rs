//! REP and RTU, which answer a REQ and a REP.

use super::bytes::Bytes;
use super::pass::{Layout, Pass};

/// REP, "reply to request for communication": the passive side agrees (12.6.8).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reply {
    /// The sender's communication ID.
    pub local_communication_id: u32,
    /// The receiver's communication ID.
    pub remote_communication_id: u32,
    /// The sender's Q_Key if its queue pair is a datagram one; else zero.
    pub local_q_key: u32,
    /// The sender's queue pair, 24 bits.
    pub local_qpn: u32,
    /// The sender's end-to-end context, 24 bits; for an extended reliable connection, its queue
    /// pair (annex A14).
    pub local_eecn: u32,
    /// The first packet sequence number that the sender will send, 24 bits.
    pub starting_psn: u32,
    /// How many RDMA Reads and atomics the sender answers at the same time.
    pub responder_resources: u8,
    /// How many RDMA Reads and atomics the sender wants to have outstanding.
    pub initiator_depth: u8,
    /// The time that the sender takes to acknowledge a request: 4.096 us x 2^n; 5 bits.
    pub target_ack_delay: u8,
    /// Whether the alternate path was accepted, 2 bits.
    pub failover_accepted: FailoverAccepted,
    /// Whether the sender supports end-to-end flow control (9.7.7.2).
    pub end_to_end_flow_control: bool,
    /// How often the receiver repeats a message after an RNR NAK of the sender, 3 bits; 7 is for
    /// ever.
    pub rnr_retry_count: u8,
    /// Whether the sender's queue pair takes its receive buffers from a shared queue.
    pub srq: bool,
    /// EUI-64 of the sender's channel adapter.
    pub local_ca_guid: u64,
    /// The consumer's bytes.
    pub private_data: Bytes<196>,
}

impl Layout for Reply {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.local_communication_id);
        pass.number(4, &mut self.remote_communication_id);
        pass.number(8, &mut self.local_q_key);
        pass.bits(12, 0, 24, &mut self.local_qpn);
        pass.bits(16, 0, 24, &mut self.local_eecn);
        pass.bits(20, 0, 24, &mut self.starting_psn);
        pass.number(24, &mut self.responder_resources);
        pass.number(25, &mut self.initiator_depth);
        pass.bits(26, 0, 5, &mut self.target_ack_delay);
        pass.bits(26, 5, 2, &mut self.failover_accepted.0);
        pass.flag(26, 7, &mut self.end_to_end_flow_control);
        pass.bits(27, 0, 3, &mut self.rnr_retry_count);
        pass.flag(27, 3, &mut self.srq);
        pass.number(28, &mut self.local_ca_guid);
        pass.private_data(&mut self.private_data);
    }
}

/// The answer of a REP about the alternate path, 2 bits (12.6.8).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FailoverAccepted(pub u8);

impl FailoverAccepted {
    /// The path was accepted, or none was asked for.
    pub const ACCEPTED: Self = Self(0);
    /// The sender does not migrate paths.
    pub const NOT_SUPPORTED: Self = Self(1);
    /// The sender does not accept this path.
    pub const REJECTED: Self = Self(2);
}

/// RTU, "ready to use": the active side has received the REP (12.6.9).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReadyToUse {
    /// The sender's communication ID.
    pub local_communication_id: u32,
    /// The receiver's communication ID.
    pub remote_communication_id: u32,
    /// The consumer's bytes.
    pub private_data: Bytes<224>,
}

impl Layout for ReadyToUse {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.local_communication_id);
        pass.number(4, &mut self.remote_communication_id);
        pass.private_data(&mut self.private_data);
    }
}
