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
    /// Whether files are on their disk before they get their names.
    pub(crate) syncs: bool,
}
