//! Queue pairs as an endpoint: the only place where verbs meet patterns.
//!
//! ```text
//! LocalPort ─► Unconnected ── addresses over the control connection ──► VerbsEndpoint
//!   device.rs    setup.rs, buffers.rs    address.rs, connect.rs,     endpoint.rs, lane.rs,
//!   port.rs                              requests.rs, managed.rs     numbering.rs, samples.rs,
//!                                                                    memory_flags.rs, waiting.rs
//! objects.rs: objects that are created and destroyed, to time that
//! joint/: joint operations by RDMA Writes; endpoint/joint.rs makes the calls
//! ```

mod address;
mod buffers;
mod connect;
mod constants;
mod device;
mod endpoint;
mod failure;
mod joint;
mod lane;
mod managed;
mod memory_flags;
mod numbering;
mod objects;
mod parts;
mod port;
mod requests;
mod samples;
mod setup;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use address::GidAddress;
pub(crate) use device::{Open, RankDevice};
pub use device::{check, find};
pub(crate) use objects::Objects;
pub use port::{LocalPort, PortOptions};
pub(crate) use setup::{Unconnected, inline_bytes_max};
