//! Blocks by RDMA Write with immediate data, into slots of the sink's ring.
//!
//! Each end has queue pairs (RC), slots that it fills, and slots that the other end fills. Slots
//! are registered one by one: memory that is registered once serves every block. The immediate data
//! of a message say what it is, and how many of its receiver's blocks its sender has released so
//! far: these are the credits. Where there is nothing to send, a Send without bytes carries them.
//!
//! An end that waits polls for a while and then sleeps until a completion is announced: two ends
//! that spin on busy CPUs take the time that the other needs.

mod another;
mod connected;
mod constants;
mod ends;
mod registered;
mod setup;

pub(crate) use another::{Another, RENEWED_SLOTS_MAX};
pub(crate) use ends::{VerbsInlet, VerbsOutlet};
pub(crate) use setup::{Unconnected, VerbsAddress, Wanted};
