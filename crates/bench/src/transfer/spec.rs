//! The description of a transfer.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::watch::Telling;

/// A transfer of existing trees to a directory.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TransferSpec {
    /// The paths on the host of rank 0. Of a path that ends in `/.`, the contents of the directory
    /// are sent. Any other path is sent by its own name.
    pub sources: Vec<OsString>,
    /// The directory on the host of rank 1; absent where rank 1 was started by hand with its own.
    pub to: Option<OsString>,
    /// Whether files that the sink has with the same size and time are skipped.
    pub resumes: bool,
    /// Whether files that the sink has with the same size are compared by their contents, whatever
    /// their times.
    #[serde(default)]
    pub compares: bool,
    /// Whether files are on the disk before they get their names.
    pub syncs: bool,
    /// What is reported during the transfer.
    #[serde(default)]
    pub telling: Telling,
}
