//! The functions that programs call, by object. They check arguments, make and destroy objects, and
//! post; the engine does the rest.

pub(crate) mod builder;
pub(crate) mod channel;
pub(crate) mod completion;
pub(crate) mod device;
pub(crate) mod domain;
pub(crate) mod event;
pub(crate) mod extended;
pub(crate) mod memory;
pub(crate) mod multicast;
pub(crate) mod on_demand;
pub(crate) mod open;
pub(crate) mod parent_domain;
pub(crate) mod polling;
pub(crate) mod post;
pub(crate) mod query;
pub(crate) mod queue_pair;
pub(crate) mod reregister;
pub(crate) mod resize;
pub(crate) mod srq;
