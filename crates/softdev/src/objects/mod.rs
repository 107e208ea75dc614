//! The objects that verbs make, and their state: what each of them keeps, without what happens when it is used.

pub(crate) mod blank;
pub(crate) mod builder;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod flights;
pub(crate) mod keeper;
pub(crate) mod own;
pub(crate) mod polling;
pub(crate) mod queue_pair;
pub(crate) mod receiving;
pub(crate) mod send_queue;
pub(crate) mod spot;
pub(crate) mod srq;
pub(crate) mod waiting;
pub(crate) mod work;
pub(crate) mod wqe;
