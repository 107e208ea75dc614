//! Memory that processes share: the arena, what stands in it, how bytes are moved to it and how the end of its use is awaited.
//! This layer knows nothing of verbs objects or of how peers are found.

pub(crate) mod arena;
pub(crate) mod copy;
pub(crate) mod layout;
pub(crate) mod pieces;
pub(crate) mod slots;
pub(crate) mod touching;
