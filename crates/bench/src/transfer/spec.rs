//! What is sent where.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::watch::Telling;

/// Trees that are sent as they are, to a directory.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TransferSpec {
    /// Paths on the host of rank 0. Of one that ends in `/.` what is in it is sent, of any other
    /// it by its own name.
    pub sources: Vec<OsString>,
    /// The directory on the host of rank 1; absent where that was started by hand with its own.
    pub to: Option<OsString>,
    /// Whether files that are there with the same size and time are not sent again.
    pub resumes: bool,
    /// Whether of those that are there with the same size the contents are compared, whatever their
    /// times.
    #[serde(default)]
    pub compares: bool,
    /// Whether files are on their disk before they get their names.
    pub syncs: bool,
    /// What is told while it goes on.
    #[serde(default)]
    pub telling: Telling,
}
