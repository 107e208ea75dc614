//! How messages get to other queue pairs: `target` is where the engine hands them over. Shared
//! memory of one host (`local`) is the only way that there is yet.

pub(crate) mod delivery;
pub(crate) mod local;
pub(crate) mod message;
pub(crate) mod remote;
pub(crate) mod target;
