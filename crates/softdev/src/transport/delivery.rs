//! The result of a delivery.

use crate::transport::message::Message;

/// The result of a delivery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Delivery {
    /// The payload is in place and the receive is complete.
    Done,
    /// No receive is posted.
    NotReady,
    /// The receive is too small. A reliable connection has completed it with an error.
    TooLong,
    /// The receive names memory that may not be written to; it was completed with an error.
    BadReceive,
    /// The peer takes no messages from this queue pair, or does not exist.
    NoAnswer,
    /// A remote access that no registration allows.
    Denied,
    /// A request that the peer does not serve.
    Invalid,
}

impl Delivery {
    /// Whether the receive is complete. A receive that is too small completes, with an error, only
    /// on a connection that can report it (class C of IBTA vol. 1, section 9.9.3). The others drop
    /// the message and keep the receive (class D), and nothing needs to be announced; an unneeded
    /// announcement does no harm.
    pub(crate) fn completes(self, message: &Message<'_>) -> bool {
        match self {
            Self::Done | Self::BadReceive => true,
            Self::TooLong => message.datagram.is_none(),
            Self::NotReady | Self::NoAnswer | Self::Denied | Self::Invalid => false,
        }
    }
}
