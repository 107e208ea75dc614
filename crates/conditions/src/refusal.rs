//! What becomes of a technique: what it found, or why it was not applied.

use std::io;

use measure::conditions::{Condition, Outcome, Technique};
use rustix::process::geteuid;

use crate::host::Host;
use crate::rights::{CAP_SYS_ADMIN, ROOT, has_capability};

/// What a technique found and says.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) before: Option<String>,
    pub(crate) reason: Option<String>,
}

/// Why a technique was not applied.
pub(crate) type Refusal = (Outcome, String);

/// The refusal for what the system refused; `remedy` gives the right that is missing, if that is
/// why.
pub(crate) fn refused(what: &str, error: &io::Error, remedy: &str) -> Refusal {
    match error.kind() {
        io::ErrorKind::PermissionDenied if remedy == ROOT && geteuid().is_root() => {
            // Root that lacks nothing is refused by what is no right: turbo that firmware has
            // switched off, ASPM that it keeps.
            let (outcome, why) = match has_capability(&Host::here(), CAP_SYS_ADMIN) {
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

/// What became of a technique, for the record.
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
