//! What changes the machine for a measurement, and takes the changes back: the only code of ours
//! that changes a host.
//!
//! ```text
//!              ┌► own: the process's own (scheduling class, memory, /dev/cpu_dma_latency), gone with it at the latest
//! Arranger ────┤
//!              └► guardian ══ pipes ══► guard: a process that changes what is the host's, with a journal, and takes it
//!                                       back when it is told to or the pipe ends: SIGKILL of the agent ends it, too
//! ```
//!
//! Each technique ends as applied, not applied or not permitted (`measure::conditions::Outcome`);
//! none ever fails a point. After each point the guard looks again whether what it applied is still
//! so. A value is in the journal, on disk, before it is changed. One that somebody else has changed
//! meanwhile is left alone, and said so. Where the guard dies too the journal stays:
//! [`left_behind`] finds it, [`restore()`] takes it back.
//!
//! A crate of its own for the arrow: whoever measures asks, and only what stands behind that arrow
//! changes anything.
//!
//! # Invariants
//!
//! * Only a guard, a process that outlives the agents, changes what is the host's; what it changes
//!   is in a journal on disk before, and taken back even after SIGKILL. A value that somebody else
//!   has changed is left alone and said so; after each point the guard looks again, and what did
//!   not last is not called applied. An environment never fails a point: what cannot be applied is
//!   a reason in the record. The client of a server changes its host only where the server was told
//!   to let it.

mod arranger;
mod cpus;
mod guard;
mod guardian;
mod host;
mod journal;
mod keeper;
mod own;
mod pause;
mod place;
mod refusal;
mod request;
mod restore;
mod rights;
mod setting;
mod shield;
mod stress;
mod survey;
mod targets;
#[cfg(test)]
mod tests;

pub use arranger::{ARRANGE_TIMEOUT, Arranger, Leave};
pub use guard::guard;
pub use host::Host;
pub use own::{every_cpu, pin};
pub use place::Place;
pub use restore::{FACTS, LEFT_BEHIND, Restored, left_behind, restore};
pub use survey::{Can, State, survey};
