//! Shared memory of two ranks of a host as an endpoint: the cost of a message that neither a kernel
//! nor a device carries.
//!
//! ```text
//! Unopened ── place of its memory, over the control connection ──► ShmemEndpoint
//!   setup.rs: a bell and a ring for each rank      endpoint.rs: lanes in turn, limits, sleep
//!     that sends to this one                         lane.rs: messages as cells, both ways
//!                                                      ring.rs: the cells of one direction
//!                                                      bell.rs: wakes a sleeping rank (futex(2))
//! ```
//!
//! A message is copied into the ring and out of it, as by MPI within a host: it starts and ends in
//! the ranks' private memory. It counts as sent when it is in the ring.

mod bell;
mod endpoint;
mod lane;
mod ring;
mod setup;
#[cfg(test)]
mod tests;

pub(crate) use setup::Unopened;
