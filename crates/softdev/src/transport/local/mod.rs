//! How the queue pairs of one host reach each other: through arenas that both have mapped, and what
//! else the kernel copies.
//!
//! # Invariants
//!
//! * Between processes there is only the arena (a sealed memfd per process). The lines of a queue
//!   pair's lane are written by requesters, what it has posted by its owner. A message of a
//!   connection is shown by one plain store; datagrams and receives of a shared queue are claimed
//!   by an exchange first: a process that dies leaves nothing half-done that others wait for, and
//!   the kernel frees its memory.
//! * Nothing read from a peer's arena is believed beyond its own bounds.

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
