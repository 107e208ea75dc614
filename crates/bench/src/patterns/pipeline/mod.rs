//! Samples at a fixed rate: a generator with a timer, a node at each end, and what both ends stamped put together.
//!
//! ```text
//! rank 0: timer ─► signal ─► node ──────────► node :rank 1      (the nodes are endpoints)
//!           due, submitted ─┐      ┌─ received
//!                           └─┬────┘
//!            the coordinator: arrival, one_way, lateness; missed, not transmitted, lost
//! ```

mod merge;
pub(crate) mod rank;
mod run;
mod settings;
mod signal;
mod sink;
mod steps;
mod timer;

pub(crate) use merge::{fates, merge};
pub(crate) use run::Generated;
pub use settings::{Filling, Pipeline, Signal, Sink, Timer, VALUES_MAX};
