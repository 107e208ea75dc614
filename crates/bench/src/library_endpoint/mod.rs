//! Message libraries as endpoints: ZeroMQ, NNG and nanomsg, as the site has them installed, and
//! iceoryx2, where it is built in.
//!
//! ```text
//! errors.rs, functions.rs, socket.rs: what they have in common ─► zeromq.rs, nng.rs, nanomsg.rs, iceoryx.rs: their functions
//!   ─► any.rs: a socket of any ─► setup.rs ─► endpoint.rs
//! ```
//!
//! They are opened when a point asks for them, so that neither a build nor any other point needs
//! them. Their threads are theirs: they run on any CPU of the process, not on the one that the rank
//! is pinned to.

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
