//! Where files go that are received, and how.

use super::directory::Target;
use crate::transfer::digest::Checksum;

/// Where files go, and how.
pub(crate) struct Receipt {
    /// The directory; without one, bytes are verified and forgotten.
    pub(crate) target: Option<Target>,
    pub(crate) checksum: Checksum,
    /// Whether files are written past the page cache.
    pub(crate) is_direct: bool,
    /// Whether files that the source offers are compared by their contents.
    pub(crate) compares: bool,
    /// Whether files are on their disk before they get their names.
    pub(crate) syncs: bool,
}

impl Receipt {
    /// Files that go through the page cache, and replace those that there are.
    pub(crate) fn new(target: Option<Target>, checksum: Checksum) -> Self {
        Self { target, checksum, is_direct: false, compares: false, syncs: false }
    }
}
