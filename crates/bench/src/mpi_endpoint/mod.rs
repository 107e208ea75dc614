//! MPI as an endpoint: ranks that a launcher has started, and the MPI library of the host.
//!
//! ```text
//! choices.rs, transports.rs: what plans choose ─► check.rs: what they cannot ask
//!   ─► rank.rs: the MPI of this process ─► setup.rs: one world, a communicator for each part
//!   ─► sends.rs, lane.rs, tag.rs: messages between two ranks; windows.rs: windows of a stream;
//!   one_sided.rs: puts and gets
//!   ─► endpoint.rs ─► carried.rs, port_counts.rs: the transport that MPI used
//!   ─► collective.rs, nonblocking.rs, halo.rs: joint operations ─► call.rs ─► joint.rs
//! ```
//!
//! A message has its mark in its tag, so its payload belongs to the pattern and may be empty.
//! Messages between two ranks never overtake each other (MPI 4.0, section 3.5), so both ranks count
//! them and no message carries its number.
//!
//! # Invariants
//!
//! * All calls of MPI are made by the thread that measures. MPI is initialised with
//!   MPI_THREAD_SINGLE, as by MPI_Init and in nearly all programs: with the next level, each small
//!   message costs 50 % more in Open MPI 4.1. The agent's other threads never call MPI.
//! * A stream is sent in windows, as in the OSU benchmarks: the receiver answers each window with a
//!   message, so messages that count as sent have arrived.
//! * MPI delivers messages that wait for room only while it is called. A rank that has finished
//!   calls it until all ranks have finished (`RankMpi::progress`): the last answer of a stream may
//!   be such a message.

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
