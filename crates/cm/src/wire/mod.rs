//! The messages of InfiniBand's communication manager, as they are on the wire.
//!
//! Source: InfiniBand Architecture Specification vol. 1, chapter 12 (12.6 connections, 12.11
//! service ID resolution), 13.4 (management datagrams), 16.7 (the class of communication
//! management) and annex A11 (what IP addresses add). Types have the specification's names in full;
//! the abbreviations are in their documentation and in [`Message::name`].
//!
//! A [`Mad`] is one datagram of 256 bytes. The caller transports it: nothing here sends, receives
//! or waits.
//!
//! Messages of alternate paths (LAP, APR, SAP, SPR: 12.8) and of enhanced connection establishment
//! are not supported. The former are [`Malformed::Attribute`]. The latter uses bytes that were
//! reserved; they are ignored, and sent as zeros, which tells the peer that this side does not
//! support it.
//!
//! # Invariants
//!
//! * Fields are in host byte order. A value that is wider than its field is cut to its lowest bits.
//! * Reserved bits are ignored when a message is decoded, and zero when it is encoded.
//! * Every decoded message is encoded to bytes that decode to the same message.
//! * No bytes cause a panic. [`Mad::decode`] refuses bytes that cannot be answered. A value that
//!   the specification answers with a REJ, such as an unknown transport service type, is decoded.

mod bytes;
mod disconnect;
mod ip;
mod mad;
mod malformed;
mod pass;
mod reject;
mod reply;
mod request;
mod resolution;

pub use bytes::Bytes;
pub use disconnect::{DisconnectReply, DisconnectRequest};
pub use ip::{Addresses, IpHeader, PortSpace, port_of, service_id};
pub use mad::{Mad, Message};
pub use malformed::Malformed;
pub use reject::{AnsweredMessage, MessageReceipt, Reject, RejectReason};
pub use reply::{FailoverAccepted, ReadyToUse, Reply};
pub use request::{ExtendedTransport, Path, Request, TransportService};
pub use resolution::{ResolutionReply, ResolutionRequest, ResolutionStatus};

#[cfg(test)]
mod tests;
