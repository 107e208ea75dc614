//! MRA, which asks for more time to answer a message, and REJ, which rejects a message.

use std::fmt;

use super::bytes::Bytes;
use super::malformed::Malformed;
use super::pass::{Layout, Pass};

/// Which message an MRA or a REJ answers, 2 bits (12.6.6, 12.6.7).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AnsweredMessage {
    /// REQ.
    #[default]
    Request,
    /// REP.
    Reply,
    /// In an MRA, LAP; in a REJ, no message, as after a timeout.
    Other,
}

impl AnsweredMessage {
    fn fields(&mut self, pass: &mut Pass, message: &'static str, field: &'static str) {
        let mut number = *self as u8;
        pass.bits(8, 0, 2, &mut number);
        match number {
            0 => *self = Self::Request,
            1 => *self = Self::Reply,
            2 => *self = Self::Other,
            found => pass.refuse(Malformed::Undefined { message, field, found }),
        }
    }
}

/// MRA, "message receipt acknowledgment": the answer to a message will take some time (12.6.6).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MessageReceipt {
    /// The sender's communication ID.
    pub local_communication_id: u32,
    /// The receiver's communication ID.
    pub remote_communication_id: u32,
    /// Which message was received.
    pub message: AnsweredMessage,
    /// The time within which the message will be answered: 4.096 us x 2^n; 5 bits.
    pub service_timeout: u8,
    /// The consumer's bytes.
    pub private_data: Bytes<222>,
}

impl Layout for MessageReceipt {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.local_communication_id);
        pass.number(4, &mut self.remote_communication_id);
        self.message.fields(pass, "MRA", "message MRAed");
        pass.bits(9, 0, 5, &mut self.service_timeout);
        pass.private_data(&mut self.private_data);
    }
}

/// REJ, "reject": there will be no connection (12.6.7).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reject {
    /// The sender's communication ID; zero if it has none.
    pub local_communication_id: u32,
    /// The receiver's communication ID; zero if the sender does not know it.
    pub remote_communication_id: u32,
    /// Which message is rejected.
    pub message: AnsweredMessage,
    /// The number of valid bytes of `additional_information` that the sender declares; 7 bits, so
    /// up to 127, more than the field has ([`Bytes::prefix`]).
    pub additional_information_length: u8,
    /// The reason.
    pub reason: RejectReason,
    /// Additional information about the reason (ARI), such as the value that would be valid.
    pub additional_information: Bytes<72>,
    /// The consumer's bytes.
    pub private_data: Bytes<148>,
}

impl Layout for Reject {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.local_communication_id);
        pass.number(4, &mut self.remote_communication_id);
        self.message.fields(pass, "REJ", "message REJected");
        pass.bits(9, 0, 7, &mut self.additional_information_length);
        pass.number(10, &mut self.reason.0);
        pass.array(12, &mut self.additional_information.0);
        pass.private_data(&mut self.private_data);
    }
}

/// Why a connection is rejected (12.6.7.2). The text is a part of a sentence.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RejectReason(pub u16);

/// The constants, their numbers and texts.
macro_rules! reasons {
    ($($name:ident = $number:literal, $words:literal;)*) => {
        impl RejectReason {
            $(#[doc = concat!("Reason ", $number, ": ", $words, ".")] pub const $name: Self = Self($number);)*
        }

        impl fmt::Display for RejectReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $($number => f.write_str($words),)*
                    other => write!(f, "reason {other}, which the specification does not define"),
                }
            }
        }
    };
}

reasons! {
    NO_QP = 1, "no queue pair available";
    NO_EEC = 2, "no end-to-end context available";
    NO_RESOURCES = 3, "no resources available";
    TIMEOUT = 4, "timeout";
    UNSUPPORTED_REQUEST = 5, "unsupported request";
    INVALID_COMMUNICATION_ID = 6, "invalid communication ID";
    INVALID_COMMUNICATION_INSTANCE = 7, "invalid communication instance";
    INVALID_SERVICE_ID = 8, "invalid service ID";
    INVALID_TRANSPORT_SERVICE_TYPE = 9, "invalid transport service type";
    STALE_CONNECTION = 10, "stale connection";
    RDC_DOES_NOT_EXIST = 11, "reliable datagram channel does not exist";
    PRIMARY_REMOTE_GID_REJECTED = 12, "primary remote port GID rejected";
    PRIMARY_REMOTE_LID_REJECTED = 13, "primary remote port LID rejected";
    INVALID_PRIMARY_SL = 14, "invalid primary service level";
    INVALID_PRIMARY_TRAFFIC_CLASS = 15, "invalid primary traffic class";
    INVALID_PRIMARY_HOP_LIMIT = 16, "invalid primary hop limit";
    INVALID_PRIMARY_PACKET_RATE = 17, "invalid primary packet rate";
    ALTERNATE_REMOTE_GID_REJECTED = 18, "alternate remote port GID rejected";
    ALTERNATE_REMOTE_LID_REJECTED = 19, "alternate remote port LID rejected";
    INVALID_ALTERNATE_SL = 20, "invalid alternate service level";
    INVALID_ALTERNATE_TRAFFIC_CLASS = 21, "invalid alternate traffic class";
    INVALID_ALTERNATE_HOP_LIMIT = 22, "invalid alternate hop limit";
    INVALID_ALTERNATE_PACKET_RATE = 23, "invalid alternate packet rate";
    PORT_AND_CM_REDIRECTION = 24, "port and connection manager redirection";
    PORT_REDIRECTION = 25, "port redirection";
    INVALID_PATH_MTU = 26, "invalid path MTU";
    INSUFFICIENT_RESPONDER_RESOURCES = 27, "insufficient responder resources";
    CONSUMER_REJECT = 28, "rejected by the consumer";
    RNR_RETRY_COUNT_REJECT = 29, "RNR retry count rejected";
    DUPLICATE_LOCAL_COMMUNICATION_ID = 30, "duplicate local communication ID";
    UNSUPPORTED_CLASS_VERSION = 31, "unsupported class version";
    INVALID_PRIMARY_FLOW_LABEL = 32, "invalid primary flow label";
    INVALID_ALTERNATE_FLOW_LABEL = 33, "invalid alternate flow label";
    VENDOR_OPTION_NOT_SUPPORTED = 35, "vendor option not supported";
}
