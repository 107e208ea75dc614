//! DREQ and DREP, which end a connection.

use super::bytes::Bytes;
use super::pass::{Layout, Pass};

/// DREQ, "request for communication release" (12.6.10).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DisconnectRequest {
    /// The sender's communication ID.
    pub local_communication_id: u32,
    /// The receiver's communication ID.
    pub remote_communication_id: u32,
    /// The receiver's queue pair, or its end-to-end context for reliable datagrams; 24 bits.
    pub remote_qpn: u32,
    /// The consumer's bytes.
    pub private_data: Bytes<220>,
}

impl Layout for DisconnectRequest {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.local_communication_id);
        pass.number(4, &mut self.remote_communication_id);
        pass.bits(8, 0, 24, &mut self.remote_qpn);
        pass.private_data(&mut self.private_data);
    }
}

/// DREP, "reply to request for communication release" (12.6.11).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DisconnectReply {
    /// The sender's communication ID.
    pub local_communication_id: u32,
    /// The receiver's communication ID.
    pub remote_communication_id: u32,
    /// The consumer's bytes.
    pub private_data: Bytes<224>,
}

impl Layout for DisconnectReply {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.local_communication_id);
        pass.number(4, &mut self.remote_communication_id);
        pass.private_data(&mut self.private_data);
    }
}
