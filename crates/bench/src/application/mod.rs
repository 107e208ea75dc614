//! Applications: their description in a plan, how a rank runs them, and their metrics.
//!
//! ```text
//! plan ──► ApplicationSpec of a point ──► rank 0 ──► supervisor ──► launcher ──► its ranks, in a
//!          coordinator: how to start it     │                                    scratch directory
//!                                           └─ its output and files ──► metrics, by expressions
//! ```
//!
//! * [`definition`](Application): an `[[application]]` of a plan; `ranks`: the numbers of ranks
//!   that it allows; `placeholders`: values in the texts of a plan;
//! * `spec`: the application of a point;
//! * `prepared`: the kind of endpoint that runs an application instead of sending messages;
//!   `scratch`: the directory of a run; `running`: the run; `kept`: its output; `found`: the
//!   metrics in the output;
//! * `hash`: the hash of a file, which identifies its version.
//!
//! # Invariants
//!
//! * An expression of the plan must match a metric exactly once in the output of this run. If a
//!   metric is missing, or the output is not verified, the point has failed.
//! * Only the agent of rank 0 starts an application, and only if a coordinator has started the
//!   agent. A server that was started by hand starts none: its key lets a client measure on the
//!   host, but not run programs there.
//! * No process and no file of an application outlives its point, however the point, the agent or
//!   the coordinator ends.

mod definition;
mod found;
mod hash;
mod kept;
mod placeholders;
mod prepared;
mod ranks;
mod running;
mod scratch;
mod spec;
mod told;

pub use definition::{Application, File, Metric, Said, Starter};
pub(crate) use definition::{STDERR, STDOUT};
pub use found::metrics_of;
pub(crate) use found::{RANKS, VALUE, expression};
pub(crate) use placeholders::{Fault, fill};
pub(crate) use prepared::{check, prepare};
pub use ranks::RanksAllowed;
pub(crate) use spec::DIRECTORY;
pub use spec::{ApplicationSpec, Started};
pub(crate) use told::Ran;
