//! What happens when objects are used: posting, delivering, retrying, arriving, polling, failing.
//!
//! Each file is a part of this, mostly as methods of `Qp`, `Cq` or `Srq`. The files import types of
//! lower layers, and rarely each other. By design, they call each other's methods all the same: a
//! send that fails flushes receives, and a poll makes progress with waiting sends. These calls stay
//! within this layer.

pub(crate) mod arrive;
pub(crate) mod channel;
pub(crate) mod eager;
pub(crate) mod flight;
pub(crate) mod keeper;
pub(crate) mod multicast;
pub(crate) mod poll;
pub(crate) mod port;
pub(crate) mod progress;
pub(crate) mod quiesce;
pub(crate) mod receive;
pub(crate) mod retry;
pub(crate) mod send;
pub(crate) mod srq;
pub(crate) mod state;
pub(crate) mod task;
