//! The objects of a rig that librdmacm has created, by number.

use verbs::abi::ibv_pd;
use verbs::abi::rdma_cm::*;

/// Event channels and identifiers, null after their destruction, and domains that belong to
/// librdmacm.
#[derive(Default)]
pub(super) struct Identifiers {
    pub(super) channels: Vec<*mut rdma_event_channel>,
    pub(super) ids: Vec<*mut rdma_cm_id>,
    pub(super) domains: Vec<*mut ibv_pd>,
}

impl Identifiers {
    pub(super) fn id(&self, i: u64) -> *mut rdma_cm_id {
        let id = self.ids[i as usize];
        assert!(!id.is_null(), "identifier {i} is destroyed");
        id
    }

    /// A channel by its number + 1, or null.
    pub(super) fn channel_or_none(&self, i: u64) -> *mut rdma_event_channel {
        i.checked_sub(1).map_or(std::ptr::null_mut(), |i| self.channels[i as usize])
    }

    /// The number of an identifier. A new identifier gets the next number.
    pub(super) fn number(&mut self, id: *mut rdma_cm_id) -> u64 {
        let known = self.ids.iter().position(|other| *other == id);
        let number = known.unwrap_or_else(|| {
            self.ids.push(id);
            self.ids.len() - 1
        });
        number as u64
    }
}
