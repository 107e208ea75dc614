//! The multicast groups of a queue pair (IBTA vol. 1, section 10.5).

use super::{CanReceive, QpInner, QueuePair};
use crate::abi::ibv_gid;
use crate::address::Gid;
use crate::error::{Error, Result};

impl<State: CanReceive> QueuePair<State> {
    /// Joins a multicast group (`ibv_attach_mcast`) until this is dropped. On InfiniBand the subnet
    /// manager must know the membership, and `lid` is the LID that it assigned to the group; on
    /// Ethernet, `lid` is 0.
    ///
    /// # Errors
    /// EINVAL if this is not a datagram queue pair, or the GID is not a group; ENOMEM if the device
    /// has no space for a member.
    pub fn join(&mut self, group: Gid, lid: u16) -> Result<()> {
        let gid = ibv_gid { raw: group.0 };
        // SAFETY: the queue pair is alive and the GID is readable.
        let returned = unsafe { (self.inner.provider().attach_mcast)(self.inner.raw, &raw const gid, lid) };
        Error::check(
            "attach_mcast",
            || format!("queue pair {:#08x}, group {group}", self.number()),
            returned,
        )?;
        self.inner.groups.push((gid, lid));
        Ok(())
    }
}

impl QpInner {
    /// Leaves all groups: a queue pair in a group cannot be destroyed (man ibv_destroy_qp).
    pub(super) fn leave_groups(&mut self) {
        for (gid, lid) in self.groups.drain(..) {
            // SAFETY: the queue pair is alive and joined this group; the GID is readable.
            unsafe { (self.pd.context.provider().detach_mcast)(self.raw, &raw const gid, lid) };
        }
    }
}
