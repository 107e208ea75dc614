//! Memory that processes share: the arena and its contents, how bytes are copied to it, and how a
//! process waits until a peer has stopped using it. This layer knows nothing of verbs objects or of
//! how peers are found.
//!
//! # Invariants
//!
//! * Nothing is pinned. Registration makes the pages present (`madvise`, `MADV_POPULATE_*`), so
//!   memory that an adapter could not pin is refused.
//! * Memory that is unmapped or truncated while it is registered is gone. A peer that accesses it,
//!   in another process or in the same one, is denied access, because the kernel copies everything
//!   that does not lie in an arena.
//! * Memory that a work request of the process itself names, and memory that polling fills from the
//!   lane, is copied directly. If it is gone, the program dies as it would on its own access: a
//!   system call for each message would cost more than the message, and a handler of SIGSEGV
//!   belongs to the program.

pub(crate) mod arena;
pub(crate) mod copy;
pub(crate) mod layout;
pub(crate) mod pieces;
pub(crate) mod slots;
pub(crate) mod touching;
