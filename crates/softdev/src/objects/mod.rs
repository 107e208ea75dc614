//! The state of the objects that verbs make: queue pairs with their queues, completion queues,
//! shared receive queues, contexts.
//!
//! The types are separate from the code that uses them (`engine`), because everything uses a queue
//! pair: with its methods in one place with it, 45 files depended on each other.

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
