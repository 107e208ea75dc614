//! SIDR_REQ and SIDR_REP, which find the queue pair of a datagram service.

use std::fmt;

use super::bytes::Bytes;
use super::pass::{Layout, Pass};

/// SIDR_REQ, "service ID resolution request" (12.11.1).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResolutionRequest {
    /// The sender's ID for the request.
    pub request_id: u32,
    /// Partition key.
    pub p_key: u16,
    /// The requested service.
    pub service_id: u64,
    /// The consumer's bytes.
    pub private_data: Bytes<216>,
}

impl Layout for ResolutionRequest {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.request_id);
        pass.number(4, &mut self.p_key);
        pass.number(8, &mut self.service_id);
        pass.private_data(&mut self.private_data);
    }
}

/// SIDR_REP, "service ID resolution response" (12.11.2).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResolutionReply {
    /// The receiver's ID for the request.
    pub request_id: u32,
    /// Whether the queue pair is valid, or why it is not.
    pub status: ResolutionStatus,
    /// The number of valid bytes of `additional_information` that the sender declares: up to 255,
    /// more than the field has ([`Bytes::prefix`]).
    pub additional_information_length: u8,
    /// The queue pair of the service, 24 bits.
    pub qpn: u32,
    /// The requested service.
    pub service_id: u64,
    /// Q_Key of the queue pair.
    pub q_key: u32,
    /// Additional information about the status, such as where to send the request instead.
    pub additional_information: Bytes<72>,
    /// The consumer's bytes.
    pub private_data: Bytes<136>,
}

impl Layout for ResolutionReply {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.request_id);
        pass.number(4, &mut self.status.0);
        pass.number(5, &mut self.additional_information_length);
        pass.bits(8, 0, 24, &mut self.qpn);
        pass.number(12, &mut self.service_id);
        pass.number(20, &mut self.q_key);
        pass.array(24, &mut self.additional_information.0);
        pass.private_data(&mut self.private_data);
    }
}

/// Status of a SIDR_REP (12.11.2). The text is a part of a sentence.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ResolutionStatus(pub u8);

impl ResolutionStatus {
    /// The queue pair and the Q_Key are valid.
    pub const VALID: Self = Self(0);
    /// No process serves this service ID.
    pub const SERVICE_ID_NOT_SUPPORTED: Self = Self(1);
    /// The process that serves it refuses.
    pub const REJECTED_BY_SERVICE_PROVIDER: Self = Self(2);
    /// There is no queue pair for it.
    pub const NO_QP: Self = Self(3);
    /// The request should be sent elsewhere: the additional information says where.
    pub const REDIRECT: Self = Self(4);
    /// The class version of the request is not supported.
    pub const UNSUPPORTED_VERSION: Self = Self(5);
}

impl fmt::Display for ResolutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match *self {
            Self::VALID => "valid",
            Self::SERVICE_ID_NOT_SUPPORTED => "service ID not supported",
            Self::REJECTED_BY_SERVICE_PROVIDER => "rejected by service provider",
            Self::NO_QP => "no queue pair available",
            Self::REDIRECT => "redirected",
            Self::UNSUPPORTED_VERSION => "unsupported class version",
            Self(other) => return write!(f, "status {other}, which the specification does not define"),
        };
        f.write_str(words)
    }
}
