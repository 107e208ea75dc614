//! Programs of somebody else: what a plan says of one, how a rank runs it, and what it says of
//! itself.
//!
//! ```text
//! plan ──► ApplicationSpec of a point ──► rank 0 ──► supervisor ──► launcher ──► the program's ranks
//!          coordinator: how it is started  │                                      in a scratch directory
//!                                          └─ what it printed and wrote ──► metrics, by expressions
//! ```
//!
//! * [`definition`](Application): an `[[application]]` of a plan; `ranks`: the numbers of ranks
//!   that it allows; `placeholders`: values in the words of a plan;
//! * `spec`: a program as a point has it;
//! * `prepared`: the kind of endpoint that stands in the place of one with messages; `scratch`: the
//!   directory of a run; `running`: the run; `kept`: what it printed; `found`: what that says;
//! * `hash`: what was run, so that it can be told from another version.
//!
//! # Invariants
//!
//! * A number of a program is what an expression of the plan matches once in what the program said
//!   in this run. What is not there, or not verified, is a point that has failed.
//! * Only the agent of rank 0 starts a program, and only where a coordinator has started the agent.
//!   A server that was started by hand starts none: its key lets a client measure on the host, and
//!   run nothing there.
//! * Nothing of a program outlives its point, however that, its agent or the coordinator ends.

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
