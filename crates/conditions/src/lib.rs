//! Changes the machine for a measurement, and reverts the changes. No other crate changes a host.
//!
//! ```text
//!              ┌► own: settings of this process (scheduling class, memory, /dev/cpu_dma_latency);
//!              │       they end with it
//! Arranger ────┤
//!              └► guardian ══ pipes ══► guard: a process that changes settings of the host, keeps a
//!                                       journal, and reverts the changes on request or when the
//!                                       pipe ends, as after SIGKILL of the agent
//! ```
//!
//! Each technique ends as applied, not applied or not permitted (`measure::conditions::Outcome`);
//! none ever fails a point. After each point the guard checks that every setting still has the
//! value that it applied. A setting is in the journal, on disk, before it is changed. A setting
//! that another process has changed meanwhile is left alone, and the user is told. If the guard
//! dies too, the journal stays: [`left_behind`] finds it, and [`restore()`] reverts what it lists.
//!
//! This is a separate crate so that the dependency graph shows which crates can change a host.
//!
//! # Invariants
//!
//! * Only a guard changes settings of the host. It is a process that outlives the agents. Each
//!   change is in a journal on disk before it is made, and is reverted even after SIGKILL. A
//!   setting that another process has changed is left alone, and the user is told. The guard checks
//!   the settings after each point; a technique that did not last is not recorded as applied. An
//!   environment never fails a point: a technique that cannot be applied is a reason in the record.
//!   The client of a server changes the server's host only if the server was started with
//!   permission for it.

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
