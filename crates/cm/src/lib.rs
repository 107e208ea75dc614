//! The connection manager: InfiniBand's messages that make and end connections.
//!
//! * [`wire`]: the messages, encoded as they are on the wire. No input or output.

pub mod wire;
