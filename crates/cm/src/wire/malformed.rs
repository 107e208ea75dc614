//! Why bytes are not a message.

/// Why bytes are refused, in a sentence.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Not as many bytes as a management datagram has.
    #[error("{found} bytes are no management datagram, which has 256 (IBA 13.4.2)")]
    Length {
        /// How many there are.
        found: usize,
    },
    /// The base version of management datagrams.
    #[error("the base version of the datagram is {found}, not 1 (IBA 13.4.3)")]
    BaseVersion {
        /// What the datagram says.
        found: u8,
    },
    /// A datagram of another management class.
    #[error(
        "the datagram is of management class {found:#04x}, not 0x07, communication management (IBA 16.7)"
    )]
    Class {
        /// What the datagram says.
        found: u8,
    },
    /// Another version of communication management.
    #[error("the datagram is of version {found} of communication management, not 2 (IBA 16.7)")]
    ClassVersion {
        /// What the datagram says.
        found: u8,
    },
    /// A method that communication management does not have.
    #[error(
        "the method of the datagram is {found:#04x}, not 0x03, Send, the only one of the class (IBA 16.7)"
    )]
    Method {
        /// What the datagram says, with the bit of responses.
        found: u8,
    },
    /// A message that is not decoded here.
    #[error(
        "the datagram's attribute {found:#06x} is no message that this connection manager knows (IBA 16.7)"
    )]
    Attribute {
        /// What the datagram says.
        found: u16,
    },
    /// A field whose value has no meaning, and without which the message has none.
    #[error("the field `{field}` of {message} is {found}, which the specification does not define")]
    Undefined {
        /// The message's abbreviation.
        message: &'static str,
        /// The field's name in the specification.
        field: &'static str,
        /// What the datagram says.
        found: u8,
    },
    /// Private data too short for the IP addressing header.
    #[error("{found} bytes of private data have no room for the 36 bytes of IP addresses (IBA annex A11)")]
    IpLength {
        /// How many there are.
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
    #[error(
        "the header of IP addresses has those of IP version {found}, which is neither 4 nor 6 (IBA annex A11)"
    )]
    IpVersion {
        /// What the header says.
        found: u8,
    },
}
