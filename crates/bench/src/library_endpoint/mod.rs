//! Message libraries as endpoints: ZeroMQ, NNG and nanomsg as they are installed on the host, and
//! iceoryx2 if it is built in.
//!
//! ```text
//! errors.rs, functions.rs, socket.rs: the common parts
//!   ─► zeromq.rs, nng.rs, nanomsg.rs, iceoryx.rs: their functions
//!   ─► any.rs: a socket of any library ─► setup.rs ─► endpoint.rs
//! ```
//!
//! A library is opened when a point asks for it, so neither a build nor any other point needs it.
//! Its threads are its own: they run on any CPU of the process, not on the CPU of the pinned rank.

mod any;
mod check;
mod endpoint;
mod errors;
mod functions;
#[cfg(feature = "iceoryx2")]
mod iceoryx;
mod nanomsg;
mod nng;
mod setup;
mod socket;
#[cfg(test)]
mod tests;
mod zeromq;

pub(crate) use setup::Unconnected;
