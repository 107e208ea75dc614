//! The target and the settings of a sink.

use super::directory::Target;
use crate::transfer::digest::Checksum;

/// The target and the settings of a sink.
pub(crate) struct Receipt {
    /// The directory; without one, bytes are verified and dropped.
    pub(crate) target: Option<Target>,
    pub(crate) checksum: Checksum,
    /// Whether files are written with O_DIRECT.
    pub(crate) is_direct: bool,
    /// Whether offered files are compared by their contents.
    pub(crate) compares: bool,
    /// Whether files are on the disk before they get their names.
    pub(crate) syncs: bool,
}

impl Receipt {
    /// Returns the settings of a sink that writes through the page cache and replaces existing
    /// files.
    pub(crate) fn new(target: Option<Target>, checksum: Checksum) -> Self {
        Self { target, checksum, is_direct: false, compares: false, syncs: false }
    }
}
