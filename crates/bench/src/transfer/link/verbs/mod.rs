//! Blocks by RDMA Write with immediate data, into slots of the sink's ring.
//!
//! Each rank has queue pairs (RC), slots that it fills, and slots that its peer fills. Slots are
//! registered one by one: memory that is registered once serves every block. The immediate data of
//! a message have its kind and the credits: the number of blocks of the receiver that the sender
//! has released so far. Without a block to send, an empty Send carries the credits.
//!
//! A rank that waits polls for a while and then sleeps until a completion event: two ranks that
//! only poll would take each other's CPU time on a busy host.

mod another;
mod connected;
mod constants;
mod ends;
mod registered;
mod setup;

pub(crate) use another::{Another, RENEWED_SLOTS_MAX};
pub(crate) use ends::{VerbsInlet, VerbsOutlet};
pub(crate) use setup::{Unconnected, VerbsAddress, Wanted};
