//! A datagram of communication management: the header of management datagrams and a message.

use super::disconnect::{DisconnectReply, DisconnectRequest};
use super::malformed::Malformed;
use super::pass::{HEADER_BYTES, Layout, MAD_BYTES, MESSAGE_BYTES};
use super::reject::{MessageReceipt, Reject};
use super::reply::{ReadyToUse, Reply};
use super::request::Request;
use super::resolution::{ResolutionReply, ResolutionRequest};

/// Base version of management datagrams (13.4.3).
const BASE_VERSION: u8 = 1;
/// Management class of communication management (16.7).
const CLASS: u8 = 0x07;
/// Its version (16.7).
const CLASS_VERSION: u8 = 2;
/// The method Send, the only one of this class (16.7).
const SEND: u8 = 0x03;

/// A management datagram with a message of the communication manager (13.4.2, 16.7).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mad {
    /// The transaction, which answers repeat: a REP repeats that of its REQ, and an RTU that of
    /// both.
    pub transaction: u64,
    /// The message.
    pub message: Message,
}

impl Mad {
    /// The size of a datagram.
    pub const BYTES: usize = MAD_BYTES;

    /// Returns the datagram's bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&[BASE_VERSION, CLASS, CLASS_VERSION, SEND]);
        // A status and class-specific bytes follow, which are zero in this class.
        bytes[8..16].copy_from_slice(&self.transaction.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.message.attribute().to_be_bytes());
        bytes[HEADER_BYTES..].copy_from_slice(&self.message.encode());
        bytes
    }

    /// Reads a datagram. The header's status and attribute modifier are ignored.
    ///
    /// # Errors
    ///
    /// [`Malformed`], with the first of these reasons: other than 256 bytes, a header of another
    /// version, class or method, an unknown message, or an MRA or REJ that answers an undefined
    /// message.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; MAD_BYTES] =
            bytes.try_into().map_err(|_| Malformed::Length { found: bytes.len() })?;
        match *bytes {
            [found, ..] if found != BASE_VERSION => return Err(Malformed::BaseVersion { found }),
            [_, found, ..] if found != CLASS => return Err(Malformed::Class { found }),
            [_, _, found, ..] if found != CLASS_VERSION => return Err(Malformed::ClassVersion { found }),
            [_, _, _, found, ..] if found != SEND => return Err(Malformed::Method { found }),
            _ => {}
        }
        let transaction = u64::from_be_bytes(std::array::from_fn(|n| bytes[8 + n]));
        let attribute = u16::from_be_bytes([bytes[16], bytes[17]]);
        let message = Message::decode(attribute, std::array::from_fn(|n| bytes[HEADER_BYTES + n]))?;
        Ok(Self { transaction, message })
    }
}

/// The messages: name, abbreviation, attribute (16.7).
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident, $abbreviation:literal, $attribute:literal;)*) => {
        /// A message of the communication manager.
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub enum Message {
            $($(#[$doc])* $name($name),)*
        }

        impl Message {
            /// The attribute ID, the type of the message in the header (16.7).
            pub fn attribute(&self) -> u16 {
                match self {
                    $(Self::$name(_) => $attribute,)*
                }
            }

            /// The specification's abbreviation, such as `REQ`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $abbreviation,)*
                }
            }

            fn encode(&self) -> [u8; MESSAGE_BYTES] {
                match self {
                    $(Self::$name(message) => message.encode(),)*
                }
            }

            fn decode(attribute: u16, bytes: [u8; MESSAGE_BYTES]) -> Result<Self, Malformed> {
                match attribute {
                    $($attribute => Layout::decode(bytes).map(Self::$name),)*
                    found => Err(Malformed::Attribute { found }),
                }
            }
        }

        $(impl From<$name> for Message {
            fn from(message: $name) -> Self {
                Self::$name(message)
            }
        })*
    };
}

messages! {
    /// REQ.
    Request, "REQ", 0x0010;
    /// MRA.
    MessageReceipt, "MRA", 0x0011;
    /// REJ.
    Reject, "REJ", 0x0012;
    /// REP.
    Reply, "REP", 0x0013;
    /// RTU.
    ReadyToUse, "RTU", 0x0014;
    /// DREQ.
    DisconnectRequest, "DREQ", 0x0015;
    /// DREP.
    DisconnectReply, "DREP", 0x0016;
    /// SIDR_REQ.
    ResolutionRequest, "SIDR_REQ", 0x0017;
    /// SIDR_REP.
    ResolutionReply, "SIDR_REP", 0x0018;
}
