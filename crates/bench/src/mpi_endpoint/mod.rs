//! MPI as an endpoint: ranks that a launcher has started, and the library that the site has.
//!
//! ```text
//! choices.rs, transports.rs: what a plan chooses ─► check.rs: what it must not ask
//!   ─► rank.rs: the MPI of this process ─► setup.rs: one world, a communicator for each part
//!   ─► sends.rs, lane.rs, tag.rs: messages between two ranks; windows.rs: their windows in a flood;
//!   one_sided.rs: puts and gets
//!   ─► endpoint.rs ─► carried.rs, port_counts.rs: what they went over
//!   ─► collective.rs, nonblocking.rs, halo.rs: what all ranks do together ─► call.rs ─► joint.rs
//! ```
//!
//! A message has its mark in its tag, so that its payload is the pattern's alone and may be empty.
//! Messages between two ranks never overtake each other (MPI 4.0, section 3.5), so that both ends
//! count them and none has to say its number.
//!
//! # Invariants
//!
//! * All calls of MPI are made by the thread that measures. MPI is initialised as MPI_Init does it
//!   (MPI_THREAD_SINGLE), as nearly all programs have it: the next level costs Open MPI 4.1 half as
//!   much again for each small message. The agent's other threads never call MPI.
//! * A flood goes by windows, as that of the OSU benchmarks does: after each the receiver answers
//!   with a message of its own, so that what counts as sent has arrived.
//! * MPI delivers what waits for room only while it is called. A rank that has finished calls it
//!   until all have (`RankMpi::progress`): the last answer of a flood may be such a message.

mod call;
mod carried;
mod check;
pub(crate) mod choices;
mod collective;
mod endpoint;
mod halo;
mod joint;
mod lane;
mod memory;
mod nonblocking;
mod one_sided;
mod port_counts;
mod rank;
mod sends;
mod setup;
mod tag;
pub(crate) mod transports;
mod windows;

pub use carried::UcxLog;
pub(crate) use check::link as check_link;
pub use rank::MpiOptions;
pub(crate) use rank::RankMpi;
pub(crate) use setup::Unconnected;
