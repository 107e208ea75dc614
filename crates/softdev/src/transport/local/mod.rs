//! How the queue pairs of one host reach each other: through arenas that both processes have
//! mapped, and through the kernel for other memory.
//!
//! # Invariants
//!
//! * Processes share memory only in their arenas (one sealed memfd per process).
//! * Requesters write the slots of a queue pair's lane, and the owner writes what it has posted.
//!   The owner also skips or reclaims slots for datagrams.
//! * A message of a connection is shown by one plain store. Datagrams and receives of a shared
//!   queue are first claimed by an atomic exchange. A process that dies therefore leaves nothing
//!   half-done that others wait for, and the kernel frees its memory.
//! * A value that is read from a peer's arena is trusted only as far as that peer's own memory: it
//!   never leads to an access elsewhere.

pub(crate) mod address;
pub(crate) mod arming;
pub(crate) mod calibrate;
pub(crate) mod claim;
pub(crate) mod deliver;
pub(crate) mod ends;
pub(crate) mod foreign;
pub(crate) mod gids;
pub(crate) mod group;
pub(crate) mod header;
pub(crate) mod host;
pub(crate) mod lane;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod notify;
pub(crate) mod order;
pub(crate) mod place;
pub(crate) mod pool;
pub(crate) mod raise;
pub(crate) mod reach;
pub(crate) mod region;
pub(crate) mod target;
