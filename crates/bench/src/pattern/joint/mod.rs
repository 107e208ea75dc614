//! Collective calls, timed on every rank: how the ranks start each call together, what each rank
//! stamps, and how the stamps of all ranks are merged.
//!
//! ```text
//! start.rs: how calls start ─► calls.rs: a rank's calls ─► stamps.rs: what it reports ─► merge.rs
//!    └ clocks.rs: clocks of several hosts, compared by messages ──► times.rs: stamps by one clock
//!    work.rs: what is between the stamps ─┘     overlap.rs: how much of a call a computation hides
//! ```
//!
//! # Invariants
//!
//! * A rank stamps a call right before and right after it. Nothing else is between the stamps
//!   except a delay that a test asks for, or the computation that overlaps with the call.
//! * The result of a call is verified before the first call that is timed and after the last, never
//!   in between. A wrong result fails the point.
//! * A call for which a rank was late is kept and counted.

mod calculation;
mod calls;
mod check;
mod choices;
mod clock_note;
mod clocks;
mod dissemination;
mod instants;
mod merge;
mod overlap;
mod pass;
mod stamps;
mod start;
mod times;
mod topology;
mod work;

pub(crate) use calls::Share;
pub(crate) use check::experiment;
pub use choices::Start;
pub(crate) use clock_note::clock_note;
pub(crate) use merge::merge;
pub(crate) use stamps::CallStamps;
pub(crate) use topology::{defaults, topology};
