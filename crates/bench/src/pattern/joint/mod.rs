//! What all ranks do together, timed on every rank: how they begin each call together, what each
//! stamps, and what the stamps of all come to.
//!
//! ```text
//! start.rs: how calls begin ─► calls.rs: a rank's calls ─► stamps.rs: what it tells ─► merge.rs
//!    └ clocks.rs: those of several hosts, compared by messages ───► times.rs: stamps by one clock
//!    work.rs: what is between the stamps ─┘     overlap.rs: what a calculation beside them hides ─┘
//! ```
//!
//! # Invariants
//!
//! * A rank stamps a call right before and right after it, and nothing else is between the stamps
//!   but a delay that a test asks for, or the calculation of a call that is to overlap with one.
//! * What a call brings is compared with what it should have brought before the first call that is
//!   timed and after the last, never in between. A wrong result fails the point.
//! * A call that a rank came to late is kept and counted.

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
