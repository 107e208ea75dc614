//! Why bytes are not a message.

/// Why bytes are refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The length is not that of a management datagram.
    #[error("a management datagram has 256 bytes, not {found} (IBA 13.4.2)")]
    Length {
        /// The number of bytes.
        found: usize,
    },
    /// The base version of management datagrams.
    #[error("the base version of the datagram is {found}, not 1 (IBA 13.4.3)")]
    BaseVersion {
        /// The value in the datagram.
        found: u8,
    },
    /// A datagram of another management class.
    #[error(
        "the datagram is of management class {found:#04x}, not 0x07, communication management (IBA 16.7)"
    )]
    Class {
        /// The value in the datagram.
        found: u8,
    },
    /// Another version of communication management.
    #[error("the datagram is of version {found} of communication management, not 2 (IBA 16.7)")]
    ClassVersion {
        /// The value in the datagram.
        found: u8,
    },
    /// A method that communication management does not have.
    #[error(
        "the method of the datagram is {found:#04x}, not 0x03, Send, the only one of the class (IBA 16.7)"
    )]
    Method {
        /// The value in the datagram, with the bit of responses.
        found: u8,
    },
    /// A message that is not decoded here.
    #[error(
        "the datagram's attribute {found:#06x} is not a message that this connection manager knows (IBA 16.7)"
    )]
    Attribute {
        /// The value in the datagram.
        found: u16,
    },
    /// An undefined value of a field, which makes the whole message undefined.
    #[error("the field `{field}` of {message} is {found}, which the specification does not define")]
    Undefined {
        /// The message's abbreviation.
        message: &'static str,
        /// The field's name in the specification.
        field: &'static str,
        /// The value in the datagram.
        found: u8,
    },
    /// Private data too short for the IP addressing header.
    #[error("the header of IP addresses has 36 bytes, but there are {found} of private data (IBA annex A11)")]
    IpLength {
        /// The number of bytes.
        found: usize,
    },
    /// Another version of the IP addressing header.
    #[error("the header of IP addresses is of version {major}.{minor}, not 0.0 (IBA annex A11)")]
    IpHeaderVersion {
        /// The upper half of the byte.
        major: u8,
        /// The lower half of the byte.
        minor: u8,
    },
    /// Another version of IP.
    #[error("the IP version in the header of IP addresses is {found}, not 4 or 6 (IBA annex A11)")]
    IpVersion {
        /// The value in the header.
        found: u8,
    },
}
