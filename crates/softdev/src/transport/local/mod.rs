//! How the queue pairs of one host reach each other: through arenas that both have mapped, and what else the kernel copies.

pub(crate) mod address;
pub(crate) mod arming;
pub(crate) mod calibrate;
pub(crate) mod claim;
pub(crate) mod deliver;
pub(crate) mod foreign;
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
