//! How messages get to other queue pairs. Shared memory of one host is the only way that there is yet.

pub(crate) mod delivery;
pub(crate) mod local;
pub(crate) mod message;
pub(crate) mod remote;
