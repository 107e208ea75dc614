//! Messages that are timed one way: what each rank stamps, and what the stamps of both come to.
//!
//! ```text
//! rank 0: submitted, completed ─┐
//! rank 1: received, sent       ─┴─► the coordinator: one_way, one_way_send, completion
//! ```

mod merge;
pub(crate) mod messages;
mod run;
mod stamped;
#[cfg(test)]
mod tests;

pub(crate) use merge::Messages;
pub(crate) use merge::{Merged, merge};
pub(crate) use run::run;
pub(crate) use stamped::{Column, Stamped, Watched};
