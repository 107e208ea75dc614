//! The result of a technique: what it found, or why it was not applied.

use std::io;

use measure::conditions::{Condition, Outcome, Technique};
use rustix::process::geteuid;

use crate::host::Host;
use crate::rights::{CAP_SYS_ADMIN, ROOT, has_capability};

/// What a technique found, and its remark.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) before: Option<String>,
    pub(crate) reason: Option<String>,
}

/// Why a technique was not applied.
pub(crate) type Refusal = (Outcome, String);

/// Returns the refusal for an error of the system. `remedy` says how to get the right that may be
/// missing.
pub(crate) fn refused(what: &str, error: &io::Error, remedy: &str) -> Refusal {
    match error.kind() {
        io::ErrorKind::PermissionDenied if remedy == ROOT && geteuid().is_root() => {
            // Root with all rights may still be refused: turbo that the firmware disables, ASPM
            // that it keeps.
            let (outcome, why) = match has_capability(&Host::here(), CAP_SYS_ADMIN) {
                true => (Outcome::NotApplied, "the kernel refuses this even to root"),
                false => (
                    Outcome::NotPermitted,
                    "root lacks CAP_SYS_ADMIN here, as in a container: run rdmascope on the host",
                ),
            };
            (outcome, format!("cannot {what}: {error}; {why}"))
        }
        io::ErrorKind::PermissionDenied => {
            (Outcome::NotPermitted, format!("cannot {what}: {error}; {remedy}"))
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            let where_else = "as in most containers: run rdmascope on the host or in a privileged container";
            (Outcome::NotPermitted, format!("cannot {what}: {error}; {where_else}"))
        }
        _ => (Outcome::NotApplied, format!("cannot {what}: {error}")),
    }
}

/// Returns the outcome of a technique for the record.
pub(crate) fn condition(
    rank: u32,
    technique: Technique,
    asked: String,
    result: Result<Found, Refusal>,
) -> Condition {
    let (outcome, found) = match result {
        Ok(found) => (Outcome::Applied, found),
        Err((outcome, reason)) => (outcome, Found { before: None, reason: Some(reason) }),
    };
    Condition { rank, technique, asked, outcome, before: found.before, reason: found.reason }
}
