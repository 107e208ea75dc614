//! How messages reach other queue pairs: the engine hands them to a `target`. The only transport so
//! far is shared memory of one host (`local`).

pub(crate) mod delivery;
pub(crate) mod local;
pub(crate) mod message;
pub(crate) mod remote;
pub(crate) mod target;
