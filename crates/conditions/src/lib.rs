//! What changes the machine for a measurement, and takes the changes back: the only code of ours that changes a host.
//!
//! ```text
//!              ┌► own: the process's own (scheduling class, memory, /dev/cpu_dma_latency), gone with it at the latest
//! Arranger ────┤
//!              └► guardian ══ pipes ══► guard: a process that changes what is the host's, with a journal, and takes it
//!                                       back when it is told to or the pipe ends: SIGKILL of the agent ends it, too
//! ```
//!
//! Each technique ends as applied, not applied or not permitted (`measure::conditions::Outcome`); none ever fails a point.
//! After each point the guard looks again whether what it applied is still so.
//! A value is in the journal, on disk, before it is changed. One that somebody else has changed meanwhile is left alone,
//! and said so. Where the guard dies too the journal stays: [`left_behind`] finds it, [`restore()`] takes it back.
//!
//! A crate of its own for the arrow: whoever measures asks, and only what stands behind that arrow changes anything.
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
mod restore;
mod setting;
mod shield;
mod stress;
mod survey;
mod targets;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use measure::clock::Deadline;
use measure::conditions::Outcome;
use rustix::event::poll;
use rustix::process::geteuid;

pub use arranger::{ARRANGE_TIMEOUT, Arranger, Leave, Place};
pub use guard::guard;
pub use host::Host;
pub use own::pin;
pub use restore::{Restored, left_behind, restore};
pub use survey::{Can, State, survey};

/// The group of facts about a host (`measure::record::Environment`) that are this crate's.
pub const FACTS: &str = "conditions";
/// The fact that says what [`left_behind`] finds.
pub const LEFT_BEHIND: &str = "left_behind";

/// Why a technique was not applied.
pub(crate) type Refusal = (Outcome, String);

/// The refusal for what the system refused; `remedy` gives the right that is missing, if that is why.
pub(crate) fn refused(what: &str, error: &io::Error, remedy: &str) -> Refusal {
    match error.kind() {
        io::ErrorKind::PermissionDenied if remedy == own::ROOT && geteuid().is_root() => {
            // Root that lacks nothing is refused by what is no right: turbo that firmware has switched off, ASPM that it keeps.
            let (outcome, why) = match own::has_capability(&Host::here(), own::CAP_SYS_ADMIN) {
                true => (Outcome::NotApplied, "the kernel refuses that even to root here"),
                false => (
                    Outcome::NotPermitted,
                    "root has not all rights here (a container?), so run it on the host",
                ),
            };
            (outcome, format!("cannot {what}: {error}; {why}"))
        }
        io::ErrorKind::PermissionDenied => {
            (Outcome::NotPermitted, format!("cannot {what}: {error}; {remedy}"))
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            let where_else = "that is so in most containers, so run it on the host or in a privileged one";
            (Outcome::NotPermitted, format!("cannot {what}: {error}; {where_else}"))
        }
        _ => (Outcome::NotApplied, format!("cannot {what}: {error}")),
    }
}

/// Waits.
pub(crate) fn pause(time: Duration) {
    // A signal makes it shorter, and what is waited for is looked at again.
    let _ = poll(&mut [], Some(&Deadline::after(time).timespec()));
}
