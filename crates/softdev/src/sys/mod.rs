//! The foundation of the other layers: locks, clocks, memory orders, limits, settings. This layer
//! knows nothing of verbs objects, peers or messages.

pub(crate) mod clock;
pub(crate) mod errno;
pub(crate) mod indexes;
pub(crate) mod limits;
pub(crate) mod netlink;
pub(crate) mod own_lock;
pub(crate) mod probe;
pub(crate) mod settings;
pub(crate) mod spin;
pub(crate) mod sync;
pub(crate) mod timer;
