//! Memory that both ranks of a host have mapped, as an endpoint: what a message costs that no
//! kernel and no device carries.
//!
//! ```text
//! Unopened ── where its memory is, over the control plane ──► ShmemEndpoint
//!   setup.rs: a bell and a ring for each rank      endpoint.rs: lanes in turn, limits, sleep
//!     that sends to this one                         lane.rs: messages as cells, both ways
//!                                                      ring.rs: cells that one end fills and the other empties
//!                                                      bell.rs: wakes who sleeps (futex(2))
//! ```
//!
//! A message is copied into the ring and out of it, as with MPI within a host, so that it begins
//! and ends in memory of the ranks' own. It is sent when it is in the ring.

mod bell;
mod endpoint;
mod lane;
mod ring;
mod setup;
#[cfg(test)]
mod tests;

pub(crate) use setup::Unopened;
