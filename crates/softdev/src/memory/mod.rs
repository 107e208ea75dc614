//! Memory that processes share: the arena, what stands in it, how bytes are moved to it and how the
//! end of its use is awaited. This layer knows nothing of verbs objects or of how peers are found.
//!
//! # Invariants
//!
//! * Nothing is pinned. Registration makes the pages present (`madvise`, `MADV_POPULATE_*`), so
//!   that memory that an adapter could not pin is refused. What is unmapped or truncated while it
//!   is registered is gone: a peer that reaches for it, in another process or in the same one, is
//!   denied access, because the kernel copies whatever does not lie in an arena. What a work
//!   request of the process itself names, and what polling places from the lane, is copied
//!   directly, and a program dies of that as of its own access: a system call for each message
//!   would cost more than the message, and a handler of SIGSEGV belongs to the program.

pub(crate) mod arena;
pub(crate) mod copy;
pub(crate) mod layout;
pub(crate) mod pieces;
pub(crate) mod slots;
pub(crate) mod touching;
